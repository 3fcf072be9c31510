// The properties at the head of a note are not its text.

/** The text after the front matter, and how many lines were left out. */
export function withoutFrontMatter(text: string): { text: string; lines: number } {
  const match = /^\uFEFF?---[ \t]*\r?\n(?:[\s\S]*?\r?\n)?(?:---|\.\.\.)[ \t]*(?:\r?\n|$)/.exec(text);
  if (!match) return { text, lines: 0 };
  return { text: text.slice(match[0].length), lines: match[0].split("\n").length - 1 };
}
