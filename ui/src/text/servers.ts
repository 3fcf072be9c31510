// The window's words for servers.
// Invariant: chosen by code and state, never by reading a text of a server.
import type { DraftArgument, DraftNamed, NamedValue, Problem, ServerState } from "../bindings/app";
import type { Key } from "../i18n/i18n.svelte";

const TITLES: Record<string, Key> = {
  server_command_not_found: "fault.command_not_found",
  server_not_executable: "fault.not_executable",
  server_bad_working_folder: "fault.bad_working_folder",
  server_spawn: "fault.spawn",
  server_start_timeout: "fault.start_timeout",
  server_exited_at_start: "fault.exited_at_start",
  server_died: "fault.died",
  server_handshake: "fault.handshake",
  server_list_tools: "fault.list_tools",
  server_unreachable: "fault.unreachable",
};

/** What went wrong, in the window's own words. */
export function faultTitle(problem: Problem): Key {
  return TITLES[problem.code] ?? "servers.failed";
}

/** Whether a start makes sense now (else: a stop). */
export function isDown(state: ServerState): boolean {
  return state.type === "stopped" || state.type === "failed";
}

/** Names that usually stand for a secret. */
const SECRET = /(token|secret|passw|api[_-]?key|auth|credential|private[_-]?key|access[_-]?key)/i;

export function looksSecret(name: string): boolean {
  return SECRET.test(name);
}

/** A variable or a header while it is edited. */
export interface NamedRow {
  readonly key: number;
  name: string;
  value: string;
  secret: boolean;
  /** As it was; null when it is new. */
  readonly was: NamedValue | null;
}

/** An empty secret that was there before stays as it is. */
export function namedDrafts(rows: readonly NamedRow[]): DraftNamed[] {
  return rows
    .filter((row) => row.name.trim() !== "")
    .map((row): DraftNamed => {
      const name = row.name.trim();
      const kept = row.was !== null && row.was.name === name && row.was.secret === row.secret;
      if (kept && (row.secret ? row.value === "" : row.value === row.was?.value))
        return { name, value: { type: "keep" } };
      return { name, value: { type: row.secret ? "secret" : "plain", text: row.value } };
    });
}

/** A line break within an argument, in a field where each line is one. */
const BREAK = "⏎";

export function argumentLines(args: readonly string[]): string {
  return args.map((one) => one.replaceAll("\n", BREAK)).join("\n");
}

/** A line that was there before keeps what stands behind it: what is shown of it may be masked. */
export function argumentDrafts(text: string, before: readonly string[]): DraftArgument[] {
  const shown = before.map((one) => one.replaceAll("\n", BREAK));
  const free = new Set(shown.keys());
  const lines = text === "" ? [] : text.split("\n");
  return lines.map((line, index) => {
    const position = free.has(index) && shown[index] === line ? index : [...free].find((one) => shown[one] === line);
    if (position === undefined) return { type: "plain", text: line.replaceAll(BREAK, "\n") };
    free.delete(position);
    return { type: "keep", position };
  });
}

/** A command line cut into words, as a shell would: quotes hold blanks together. */
export function words(line: string): string[] {
  const out: string[] = [];
  let glued = false;
  for (const match of line.matchAll(/(?:"((?:\\.|[^"\\])*)"|'([^']*)'|((?:\\.|[^\s"'\\])+))(\s*)/g)) {
    const [, double, single, bare, gap] = match;
    const piece = single ?? (double ?? bare ?? "").replace(/\\(["\\ ])/g, "$1");
    out.push(glued ? (out.pop() ?? "") + piece : piece);
    glued = gap === "";
  }
  return out;
}
