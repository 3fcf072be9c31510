// Finds the notes that a text names, so that they can be opened.
// Invariant: pure; the words of the text are not changed.
import type { TokenizerAndRendererExtension } from "marked";
import type { Source } from "../bindings/core";
import type { TurnState } from "../fold/turn";

/** The paths that may be cited, longest first, and where they stand. */
export interface Cite {
  readonly paths: readonly string[];
}

/** A note that a tool told of. */
export interface CitedNote {
  readonly path: string;
  readonly server: string | null;
  readonly sources: readonly Source[];
}

export const NO_CITES: Cite = { paths: [] };
const MOST_PATHS = 2000;
/** `From PATH:` and `PATH says:`, the words of the answer's quotations, and a line of a list that is only a path. */
const LEAD = /^(From |De |来自 ?|来自：)([^\n:：]{1,300}?\.md)(?=\s*[:：])/;
const WHOLE = /^([^\n:：|<>*`[\]()]{1,300}?\.md)(?=\s*(?:$|\n| says:| dit ?:|写道[:：]))/;

export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);
}

/** Notes of all results of calls, by path. */
export function notesOf(calls: TurnState["calls"], serverOf: (tool: string) => string | null): Map<string, CitedNote> {
  const notes = new Map<string, CitedNote>();
  for (const call of Object.values(calls)) {
    if (call.result?.outcome !== "succeeded") continue;
    const server = serverOf(call.tool);
    for (const source of call.result.sources ?? []) add(notes, source.path, server, source);
    for (const path of pathsIn(call.result.structured)) add(notes, path, server, null);
    for (const path of pathsIn(call.arguments)) add(notes, path, server, null);
  }
  return notes;
}

/** The note that a text means: by its path, else the only one whose path ends so (models leave folders out). */
export function noteNamed(notes: ReadonlyMap<string, CitedNote>, name: string): CitedNote | null {
  const exact = notes.get(name);
  if (exact) return exact;
  const ending = [...notes.values()].filter((note) => note.path.endsWith(`/${name}`));
  return ending.length === 1 ? (ending[0] ?? null) : null;
}

function add(notes: Map<string, CitedNote>, path: string, server: string | null, source: Source | null): void {
  const known = notes.get(path) ?? { path, server, sources: [] };
  const sources = source ? [...known.sources, source] : known.sources;
  notes.set(path, { path, server: known.server ?? server, sources });
}

function pathsIn(value: unknown, found: string[] = []): string[] {
  if (found.length >= MOST_PATHS) return found;
  if (typeof value === "string") {
    if (value.length < 300 && /\.md$/i.test(value) && !value.includes("\n")) found.push(value);
  } else if (Array.isArray(value)) {
    for (const item of value) pathsIn(item, found);
  } else if (typeof value === "object" && value !== null) {
    for (const item of Object.values(value)) pathsIn(item, found);
  }
  return found;
}

/** Turns paths of notes in Markdown text into buttons that open them. */
export function citeExtension(cite: Cite): TokenizerAndRendererExtension {
  const longest = [...cite.paths].sort((a, b) => b.length - a.length);
  const firsts = new Set(longest.map((path) => path.charAt(0)));
  return {
    name: "cite",
    level: "inline",
    start(src) {
      for (let at = 0; at < src.length; at++) {
        if (firsts.has(src.charAt(at)) && longest.some((path) => src.startsWith(path, at))) return at;
      }
      return undefined;
    },
    tokenizer(src, tokens) {
      const known = longest.find((path) => src.startsWith(path) || src.startsWith(`\`${path}\``));
      if (known !== undefined) {
        return { type: "cite", raw: src.startsWith("`") ? `\`${known}\`` : known, lead: "", path: known };
      }
      if (tokens.length > 0) return undefined;
      const lead = LEAD.exec(src);
      if (lead?.[2]) return { type: "cite", raw: lead[0], lead: lead[1] ?? "", path: lead[2] };
      const whole = WHOLE.exec(src);
      const path = whole?.[1];
      if (path !== undefined && !longest.some((known) => path.includes(known)))
        return { type: "cite", raw: path, lead: "", path };
      return undefined;
    },
    renderer(token) {
      const path = String(token["path"]);
      return `${escapeHtml(String(token["lead"]))}${noteButton(path)}`;
    },
  };
}

function noteButton(path: string): string {
  const name = escapeHtml(path);
  return `<button type="button" class="note" data-note="${name}">${name}</button>`;
}
