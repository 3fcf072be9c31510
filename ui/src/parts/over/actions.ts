// What can be done from the palette and by keys.
import type { Key } from "../../i18n/i18n.svelte";
import type { Lectern } from "../../stores/lectern.svelte";
import { NEW } from "../../stores/talks.svelte";

export interface Action {
  readonly label: Key;
  /** What it belongs to, said before it. */
  readonly of?: Key;
  /** As it is written in menus; `Mod` is Ctrl, or Cmd on a Mac. */
  readonly keys: string | null;
  readonly run: (lectern: Lectern) => void;
}

export const ACTIONS: readonly Action[] = [
  { label: "list.new", keys: "Mod+N", run: (lectern) => lectern.newConversation() },
  {
    label: "list.search",
    keys: "Mod+F",
    run: (lectern) => {
      if (!lectern.prefs.list) lectern.prefs.toggleList();
      lectern.floating.drawer = true;
      setTimeout(() => lectern.focusSearch());
    },
  },
  { label: "trace.toggle", keys: "Mod+J", run: (lectern) => lectern.prefs.setTrace(!lectern.prefs.trace) },
  { label: "settings.title", keys: "Mod+,", run: (lectern) => lectern.openSettings() },
  { label: "settings.models", of: "settings.title", keys: null, run: (lectern) => lectern.openSettings("models") },
  { label: "settings.servers", of: "settings.title", keys: null, run: (lectern) => lectern.openSettings("servers") },
  { label: "settings.api", of: "settings.title", keys: null, run: (lectern) => lectern.openSettings("api") },
  { label: "settings.vaults", of: "settings.title", keys: null, run: (lectern) => lectern.openSettings("vaults") },
  {
    label: "answers.button",
    keys: null,
    run: (lectern) => {
      lectern.route.back();
      lectern.floating.answers = true;
    },
  },
  { label: "models.get", keys: null, run: (lectern) => lectern.openSettings("models", ["get"]) },
  { label: "models.add", keys: null, run: (lectern) => void lectern.attempt(() => lectern.host.addModel()) },
  { label: "vaults.add", keys: null, run: (lectern) => void lectern.attempt(() => lectern.host.addVault()) },
  { label: "list.toggle", keys: "Mod+B", run: (lectern) => lectern.prefs.toggleList() },
  { label: "theme.light", of: "general.theme", keys: null, run: (lectern) => lectern.prefs.setTheme("light") },
  { label: "theme.dark", of: "general.theme", keys: null, run: (lectern) => lectern.prefs.setTheme("dark") },
  { label: "theme.system", of: "general.theme", keys: null, run: (lectern) => lectern.prefs.setTheme("system") },
  { label: "trace.export", keys: null, run: (lectern) => void lectern.exportTrace() },
  {
    label: "list.delete",
    keys: null,
    run: (lectern) => {
      if (lectern.current !== NEW) void lectern.remove(lectern.current);
    },
  },
  { label: "shortcuts.title", keys: "?", run: (lectern) => (lectern.floating.overlay = "shortcuts") },
];

export const PALETTE_KEYS = "Mod+K";
const mac = typeof navigator !== "undefined" && /mac/i.test(navigator.platform);

export function spell(keys: string): string {
  return keys.replace("Mod", mac ? "⌘" : "Ctrl");
}

/** Whether a key event is that shortcut. */
export function pressed(event: KeyboardEvent, keys: string): boolean {
  const [mod, key] = keys.split("+");
  if (mod !== "Mod" || key === undefined) return false;
  const held = mac ? event.metaKey : event.ctrlKey;
  return held && !event.altKey && !event.shiftKey && event.key.toLowerCase() === key.toLowerCase();
}
