import { defineConfig } from "vitest/config";

// Drives the built page in a real Chromium, over the fake host and under the policy of the app.
export default defineConfig({
  test: {
    environment: "node",
    include: ["tests/browser/**/*.test.ts"],
    fileParallelism: false,
    testTimeout: 240_000,
    hookTimeout: 240_000,
    // A machine that does other things meanwhile may miss a moment; the report names what needed a second try.
    retry: 1,
  },
});
