// The menus of the composer: `/` for commands, `@` for notes that this conversation has seen.
// Invariant: pure.

export interface MenuRequest {
  readonly kind: "command" | "note";
  readonly query: string;
  /** Where the sign stands in the text. */
  readonly from: number;
}

/** What is asked for at the caret, if anything. */
export function menuAt(text: string, caret: number): MenuRequest | null {
  const before = text.slice(0, caret);
  if (/^\/[^\n/]*$/.test(before) && before === text) return { kind: "command", query: before.slice(1), from: 0 };
  const note = /(?:^|\s)@([^\n@]{0,60})$/.exec(before);
  if (note) return { kind: "note", query: note[1] ?? "", from: caret - (note[1] ?? "").length - 1 };
  return null;
}

/** What has all the words, best first: those that begin with them. */
export function choicesFor<T>(all: readonly T[], label: (one: T) => string, query: string, most = 8): T[] {
  const wanted = query.trim().toLowerCase();
  const words = wanted.split(/\s+/).filter(Boolean);
  const found = all.filter((one) => words.every((word) => label(one).toLowerCase().includes(word)));
  const starts = (one: T) => (label(one).toLowerCase().startsWith(wanted) ? 0 : 1);
  return found.sort((a, b) => starts(a) - starts(b)).slice(0, most);
}
