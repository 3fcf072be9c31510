// The host in a plain browser: scripted conversations, chosen by the address (`?scene=…`).
// Invariant: never part of what the app runs; loaded only where there is no shell.
import type { Host } from "./host";
import { FakeHost } from "./fake/host";

export function fakeHost(query: URLSearchParams): Host {
  return new FakeHost(query);
}

/** What the address says of the window: `theme`, `lang`, `trace`. */
export function prefsOf(query: URLSearchParams): Record<string, never> {
  const out: Record<string, unknown> = {};
  for (const name of ["theme", "lang"]) {
    const value = query.get(name);
    if (value !== null) out[name] = value;
  }
  if (query.get("trace") !== null) out["trace"] = query.get("trace") === "1";
  return out as Record<string, never>;
}
