import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vite";

// The page is loaded from the app's own scheme under a strict policy: no inline scripts, no data: scripts, no eval.
export default defineConfig({
  plugins: [svelte()],
  base: "./",
  clearScreen: false,
  server: { port: 5173, strictPort: true },
  build: {
    target: ["es2022", "safari16"],
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 700,
  },
});
