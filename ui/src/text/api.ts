// What is said about the local API: examples for other programs, words for what went wrong, figures.
// Invariant: pure; a key stands only where it is handed in.
import type { Problem, TimeRange, TimesView } from "../bindings/app";
import type { Key } from "../i18n/i18n.svelte";

/** As in the shell: this computer alone, at the usual port. */
export const HERE = "127.0.0.1";
export const PORT = 11480;

/** Stands where a key has to be filled in. */
export const PLACEHOLDER = "YOUR-KEY";

export function curl(url: string, key: string, model: string): string {
  const body = JSON.stringify({ model, messages: [{ role: "user", content: "Hello" }] });
  return [
    `curl ${url}/v1/chat/completions \\`,
    `  -H 'Authorization: Bearer ${key}' \\`,
    `  -H 'Content-Type: application/json' \\`,
    // Within single quotes a shell takes everything as it is but the quote itself.
    `  -d '${body.replaceAll("'", `'\\''`)}'`,
  ].join("\n");
}

export function python(url: string, key: string, model: string): string {
  // A text of JSON is a text of Python.
  return [
    "from openai import OpenAI",
    "",
    `client = OpenAI(base_url="${url}/v1", api_key="${key}")`,
    "answer = client.chat.completions.create(",
    `    model=${JSON.stringify(model)},`,
    '    messages=[{"role": "user", "content": "Hello"}],',
    ")",
    "print(answer.choices[0].message.content)",
  ].join("\n");
}

/** The number of a port that was typed; null when it is none. */
export function portOf(text: string): number | null {
  const typed = text.trim();
  const port = /^\d{1,5}$/.test(typed) ? Number(typed) : 0;
  return port >= 1 && port <= 65_535 ? port : null;
}

/** Another port to try. */
export function nextPort(port: number): number {
  return port < 65_535 ? port + 1 : PORT;
}

const FAULTS: Readonly<Record<string, readonly [Key, Key]>> = {
  port_in_use: ["api.fault_port_in_use", "api.hint_port_in_use"],
  port_not_allowed: ["api.fault_port_not_allowed", "api.hint_port_not_allowed"],
  address_not_here: ["api.fault_address_not_here", "api.hint_address"],
  bad_address: ["api.fault_bad_address", "api.hint_address"],
  bad_host: ["api.fault_bad_host", "api.hint_host"],
  bad_origin: ["api.fault_bad_origin", "api.hint_origin"],
  keyring_locked: ["api.fault_keyring_locked", "api.hint_keyring_locked"],
  no_keyring: ["api.fault_no_keyring", "api.hint_no_keyring"],
  key_exists: ["api.fault_key_exists", "api.hint_key_exists"],
  bad_key_name: ["api.fault_bad_key_name", "api.hint_key_name"],
};

/** Our own words for what the shell said, where there are some. */
export function faultWords(problem: Problem): readonly [Key, Key] | null {
  return FAULTS[problem.code] ?? null;
}

/** What a problem of the shell names: it stands between backquotes. */
export function namedIn(problem: Problem): string {
  return /`([^]*)`/.exec(problem.message)?.[1] ?? "";
}

export interface Bar {
  /** Seconds at most; null for all that took longer. */
  readonly upTo: number | null;
  readonly count: number;
  /** Of the longest bar. */
  readonly part: number;
}

/** The ranges between the first and the last that have something; none when nothing was measured. */
export function bars(times: TimesView): readonly Bar[] {
  const filled = times.ranges.flatMap((range: TimeRange, at) => (range.count > 0 ? [at] : []));
  const [first] = filled;
  const last = filled.at(-1);
  if (first === undefined || last === undefined) return [];
  const most = Math.max(...times.ranges.map((range) => range.count));
  return times.ranges.slice(first, last + 1).map(({ up_to, count }) => ({ upTo: up_to, count, part: count / most }));
}

/** Seconds on average; null when nothing was measured. */
export function average(times: TimesView): number | null {
  return times.count > 0 ? times.seconds / times.count : null;
}

/** Part of a whole; null when there is no whole. */
export function share(part: number, whole: number): number | null {
  return whole > 0 ? Math.min(1, part / whole) : null;
}
