// Models, servers and vaults of the fake host.
import type { AppView, VaultView } from "../../bindings/app";
import { brokenModel, extraModel, starter } from "./models";
import { everything, files, notes } from "./servers";

export function extraVault(): VaultView {
  return { path: "/home/lena/Documents/Notes", server: "notes-2", sample: false };
}

export function appView(change: Partial<AppView>): AppView {
  return {
    version: "0.1.0",
    home: "/home/lena/.local/share/lectern",
    model: "starter",
    models: [starter(), extraModel(), brokenModel()],
    providers: [],
    downloads: [],
    servers: [notes, everything, files],
    vaults: [{ path: "/home/lena/.local/share/lectern/sample-vault", server: "notes", sample: true }],
    ...change,
  };
}

/** The view of somebody who has just started. */
export function firstView(): Partial<AppView> {
  return { models: [starter()], servers: [notes] };
}
