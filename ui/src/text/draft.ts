// A message before it is sent: the words, a prompt of a server, what it takes along.
// Invariant: pure.
import type { Attachment, Enclosure, PromptRun, SendRequest } from "../bindings/app";

/** A resource that goes along. */
export interface Taken extends Attachment {
  /** For people; a server's text. */
  readonly name: string;
}

export interface Draft {
  readonly text: string;
  readonly prompt: PromptRun | null;
  readonly taken: readonly Taken[];
  /** Images and documents; the shell has their bytes. */
  readonly enclosed: readonly Enclosure[];
  /** By whom it is answered, when that was chosen for it alone and it waits in the queue. */
  readonly model?: string;
}

export const EMPTY: Draft = { text: "", prompt: null, taken: [], enclosed: [] };

export function textDraft(text: string): Draft {
  return { ...EMPTY, text };
}

/** Resources alone say nothing; a prompt and an image do. */
export function saysSomething(draft: Draft): boolean {
  return draft.text.trim() !== "" || draft.prompt !== null || draft.enclosed.length > 0;
}

/** With one more resource, unless it has it already. */
export function taking(draft: Draft, one: Taken): Draft {
  const has = draft.taken.some((other) => other.server === one.server && other.uri === one.uri);
  return has ? draft : { ...draft, taken: [...draft.taken, one] };
}

/** Two as one message; none when both run a prompt, since a message runs one, or when others answer them. */
export function joined(first: Draft, second: Draft): Draft | null {
  if (first.prompt !== null && second.prompt !== null) return null;
  if (first.model !== second.model) return null;
  const text = [first.text, second.text].filter((part) => part !== "").join("\n\n");
  const enclosed = [...first.enclosed, ...second.enclosed];
  const both = { ...first, text, prompt: first.prompt ?? second.prompt, enclosed };
  return second.taken.reduce(taking, both);
}

export function requestOf(conversation: string | null, draft: Draft): SendRequest {
  return {
    conversation,
    text: draft.text.trim(),
    ...(draft.prompt === null ? {} : { prompt: draft.prompt }),
    ...(draft.taken.length === 0 ? {} : { attachments: draft.taken.map(({ server, uri }) => ({ server, uri })) }),
    ...(draft.enclosed.length === 0 ? {} : { enclosed: draft.enclosed.map((one) => one.id) }),
  };
}

/** As a person would write it: `/server:name`, then its arguments. */
export function promptLine(prompt: PromptRun): string {
  const given = Object.entries(prompt.arguments).map(([name, value]) => `${name}: ${value}`);
  return [`/${prompt.server}:${prompt.name}`, ...(given.length > 0 ? [given.join(", ")] : [])].join(" ");
}

/** What was kept of a draft; what is not one is none. */
export function readKept(json: string | null): Omit<Draft, "text"> {
  const { prompt, taken, enclosed } = EMPTY;
  try {
    const kept: unknown = JSON.parse(json ?? "null");
    if (typeof kept !== "object" || kept === null) return { prompt, taken, enclosed };
    const { prompt: run, taken: list, enclosed: files } = kept as Record<string, unknown>;
    return {
      prompt: isRun(run) ? run : null,
      taken: Array.isArray(list) ? list.filter(isTaken) : [],
      enclosed: Array.isArray(files) ? files.filter(isEnclosure) : [],
    };
  } catch {
    return { prompt, taken, enclosed };
  }
}

function hasTexts(value: unknown, ...names: string[]): value is Record<string, unknown> {
  return (
    typeof value === "object" &&
    value !== null &&
    names.every((name) => typeof (value as Record<string, unknown>)[name] === "string")
  );
}

function isTaken(value: unknown): value is Taken {
  return hasTexts(value, "server", "uri", "name");
}

function isEnclosure(value: unknown): value is Enclosure {
  if (!hasTexts(value, "id", "mime")) return false;
  const { name, preview, width, height } = value;
  const sized = typeof width === "number" && typeof height === "number";
  return (
    sized && (name === null || typeof name === "string") && (preview === null || hasTexts(preview, "mime", "base64"))
  );
}

function isRun(value: unknown): value is PromptRun {
  if (!hasTexts(value, "server", "name")) return false;
  const given = value["arguments"];
  return typeof given === "object" && given !== null && hasTexts(given, ...Object.keys(given));
}
