// The servers of the fake host.
import type { ServerView, ToolView } from "../../bindings/app";

export function tool(server: string, name: string, description: string, readOnly = false, trusted = false): ToolView {
  return {
    spec: {
      name: `${server}__${name}`,
      server,
      original_name: name,
      title: null,
      description,
      input_schema: { type: "object" },
      output_schema: null,
      annotations: { read_only: readOnly, destructive: false, idempotent: null, open_world: false },
      trusted,
    },
    permission: null,
    changed: null,
    enabled: true,
    visible_name: name,
    visible_description: description,
  };
}

/** A server with nothing but a name and a command. */
export function bare(id: string, command: string, args: string[] = []): ServerView {
  return {
    id,
    reported: null,
    command: [command, ...args].join(" "),
    state: { type: "stopped" },
    tools: [],
    protocol: null,
    built_in: false,
    transport: { type: "stdio", command, args, env: [], cwd: null },
    enabled: true,
    trusted: false,
    approval: { type: "approved" },
    auth: { type: "none" },
    permission: null,
    instructions: null,
    resources: 0,
    prompts: 0,
    starts: 1,
    timeout_s: null,
  };
}

export const notes: ServerView = {
  ...bare("notes", "lectern", ["vault", "/home/lena/.local/share/lectern/sample-vault"]),
  reported: "lectern-vault 0.1.0",
  state: { type: "ready" },
  protocol: "2025-11-25",
  built_in: true,
  trusted: true,
  tools: [
    tool("notes", "list_notes", "Lists the notes of a folder.", true, true),
    tool("notes", "search_notes", "Searches all notes for words and gives the best passages.", true, true),
    tool("notes", "read_note", "Gives the text of one note.", true, true),
    tool("notes", "create_note", "Creates a note that does not exist yet.", false, true),
    tool("notes", "append_note", "Adds text to the end of a note.", false, true),
  ],
};

export const files: ServerView = {
  ...bare("files", "npx", [
    "-y",
    "@modelcontextprotocol/server-filesystem",
    "/home/lena/Documents/Projects/2024/Riverbank",
  ]),
  state: {
    type: "failed",
    problem: {
      code: "server_exited_at_start",
      message: "start MCP server `files`: the process ended with exit code 1 during the handshake",
      hint: "Read its log, mend the command, then restart it.",
      detail: "exit code 1\nnpm ERR! code ENOTFOUND\nnpm ERR! network request failed",
    },
  },
};

export const everything: ServerView = {
  ...bare("everything", "node", ["everything.js"]),
  reported: "example-servers/everything 1.0.0",
  state: { type: "degraded", reasons: ["two tools were dropped: their names are not unique"] },
  protocol: "2025-06-18",
  tools: [tool("everything", "longRunningOperation", "Runs for a while and tells how far it is.")],
};
