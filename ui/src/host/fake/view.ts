// Models, servers and vaults of the fake host.
import type { AppView, ModelView, VaultView } from "../../bindings/app";
import { everything, files, notes } from "./servers";

export function starter(): ModelView {
  return {
    id: "starter",
    name: "Lectern Starter",
    path: null,
    size: 3_100_000,
    architecture: "llama",
    parameters: 1_400_000,
    quantisation: "F16",
    context_length: 4096,
    tool_mode: "native",
    starter: true,
    origin: "built_in",
    missing: false,
    advice: null,
    bench: null,
    problem: null,
  };
}

export function extraModel(): ModelView {
  return {
    ...starter(),
    id: "llama-3.2-3b",
    name: "Llama 3.2 3B Instruct",
    path: "/home/lena/models/Llama-3.2-3B-Instruct-Q4_K_M.gguf",
    size: 2_020_000_000,
    parameters: 3_210_000_000,
    quantisation: "Q4_K_M",
    context_length: 131_072,
    starter: false,
    origin: "file",
  };
}

function brokenModel(): ModelView {
  return {
    ...extraModel(),
    id: "broken",
    name: "broken.gguf",
    path: "/home/lena/models/broken.gguf",
    architecture: null,
    parameters: null,
    quantisation: null,
    context_length: null,
    problem: {
      code: "bad_model_file",
      message: "open /home/lena/models/broken.gguf: tensor `blk.3.attn_q.weight` lies outside the file",
      hint: "Download the file again.",
      detail: null,
    },
  };
}

export function extraVault(): VaultView {
  return { path: "/home/lena/Documents/Notes", server: "notes-2", sample: false };
}

export function appView(change: Partial<AppView>): AppView {
  return {
    version: "0.1.0",
    home: "/home/lena/.local/share/lectern",
    model: "starter",
    models: [starter(), extraModel(), brokenModel()],
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
