// Starts the window: in the app over the shell's commands, in a plain browser over the fake host.
import { mount } from "svelte";
import App from "./App.svelte";
import type { Host } from "./host/host";
import { tauriHost } from "./host/tauri";
import "./look/tokens.css";
import "./look/base.css";
import "./look/prose.css";
import { Lectern } from "./stores/lectern.svelte";
import { Prefs } from "./stores/prefs.svelte";

async function start(): Promise<void> {
  let host: Host;
  let prefs: Prefs;
  if ("__TAURI_INTERNALS__" in window) {
    host = tauriHost();
    prefs = new Prefs();
  } else {
    const fake = await import("./host/fake");
    host = fake.fakeHost(new URLSearchParams(location.search));
    prefs = new Prefs(fake.prefsOf(new URLSearchParams(location.search)));
  }
  const target = document.getElementById("app");
  if (!target) return;
  const lectern = new Lectern(host, prefs);
  mount(App, { target, props: { lectern } });
  void lectern.attempt(() => lectern.drops.watch());
  await lectern.load();
  // Who was quicker than the page keeps the caret where they put it.
  if (document.activeElement === document.body) lectern.focusComposer();
}

void start();
