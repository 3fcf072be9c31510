// The menus of the composer: `/` for prompts and commands, `@` for what servers have to read.
// Invariant: pure.

export interface MenuRequest {
  readonly kind: "run" | "read";
  readonly query: string;
  /** Where the sign stands in the text. */
  readonly from: number;
}

/** What is asked for at the caret, if anything. */
export function menuAt(text: string, caret: number): MenuRequest | null {
  const before = text.slice(0, caret);
  if (/^\/[^\n/]*$/.test(before) && before === text) return { kind: "run", query: before.slice(1), from: 0 };
  const note = /(?:^|\s)@([^\n@]{0,120})$/.exec(before);
  if (note) return { kind: "read", query: note[1] ?? "", from: caret - (note[1] ?? "").length - 1 };
  return null;
}

/** What has all the words, best first: those that begin with them. */
export function choicesFor<T>(all: readonly T[], label: (one: T) => string, query: string): T[] {
  const wanted = query.trim().toLowerCase();
  const words = wanted.split(/\s+/).filter(Boolean);
  const found = all.filter((one) => words.every((word) => label(one).toLowerCase().includes(word)));
  const starts = (one: T) => (label(one).toLowerCase().startsWith(wanted) ? 0 : 1);
  return found.sort((a, b) => starts(a) - starts(b));
}

/** At most so many, in their order; what has very many of them leaves room for the others. */
export function fairly<T>(all: readonly T[], owner: (one: T) => string, most: number): readonly T[] {
  if (all.length <= most) return all;
  const counts = new Map<string, number>();
  for (const one of all) counts.set(owner(one), (counts.get(owner(one)) ?? 0) + 1);
  // From the smallest on: what one does not need of its share, the others have.
  let room = most;
  let others = counts.size;
  const shares = new Map<string, number>();
  for (const [name, count] of [...counts].sort((a, b) => a[1] - b[1])) {
    const share = Math.min(count, Math.floor(room / others--));
    shares.set(name, share);
    room -= share;
  }
  return all.filter((one) => {
    const left = shares.get(owner(one)) ?? 0;
    shares.set(owner(one), left - 1);
    return left > 0;
  });
}
