// Models, servers and vaults of the fake host.
import type { AppView, ModelView, ServerView, VaultView } from "../../bindings/app";
import type { ToolSpec } from "../../bindings/core";

function tool(server: string, name: string, description: string, readOnly: boolean): ToolSpec {
  return {
    name: `${server}__${name}`,
    server,
    original_name: name,
    title: null,
    description,
    input_schema: { type: "object" },
    output_schema: null,
    annotations: { read_only: readOnly, destructive: false, idempotent: null, open_world: false },
    trusted: true,
  };
}

const notes: ServerView = {
  id: "notes",
  reported: "lectern-vault 0.1.0",
  command: "lectern vault /home/lena/.local/share/lectern/sample-vault",
  state: { type: "ready" },
  protocol: "2025-11-25",
  built_in: true,
  tools: [
    tool("notes", "list_notes", "Lists the notes of a folder.", true),
    tool("notes", "search_notes", "Searches all notes for words and gives the best passages.", true),
    tool("notes", "read_note", "Gives the text of one note.", true),
    tool("notes", "create_note", "Creates a note that does not exist yet.", false),
    tool("notes", "append_note", "Adds text to the end of a note.", false),
  ],
};

const files: ServerView = {
  id: "files",
  reported: null,
  command: "npx -y @modelcontextprotocol/server-filesystem /home/lena/Documents/Projects/2024/Riverbank",
  state: {
    type: "failed",
    problem: {
      code: "server_exited",
      message: "start MCP server `files`: the process ended with exit code 1 during the handshake",
      hint: "Read its log, mend the command, then restart it.",
      detail: "npm ERR! code ENOTFOUND\nnpm ERR! network request failed",
    },
  },
  protocol: null,
  built_in: false,
  tools: [],
};

const everything: ServerView = {
  id: "everything",
  reported: "example-servers/everything 1.0.0",
  command: "node everything.js",
  state: { type: "degraded", reasons: ["two tools were dropped: their names are not unique"] },
  protocol: "2025-06-18",
  built_in: false,
  tools: [tool("everything", "longRunningOperation", "Runs for a while and tells how far it is.", false)],
};

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
    servers: [notes, everything, files],
    vaults: [{ path: "/home/lena/.local/share/lectern/sample-vault", server: "notes", sample: true }],
    ...change,
  };
}

/** The view of somebody who has just started. */
export function firstView(): Partial<AppView> {
  return { models: [starter()], servers: [notes] };
}
