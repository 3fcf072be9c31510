// Addresses in a sentence.
// Invariant: pure; only https, and only what reads as it is opened: no other names in it, nothing hidden.

export interface Piece {
  readonly text: string;
  /** What pressing it opens; null for words. */
  readonly href: string | null;
}

const ADDRESS = /https:\/\/[^\s<>"'`“”‘’«»()]+/g;

export function withLinks(text: string): Piece[] {
  const pieces: Piece[] = [];
  let from = 0;
  for (const found of text.matchAll(ADDRESS)) {
    // The sentence goes on, or ends, behind an address.
    const address = found[0].replace(/[.,;:!?。，；：！？]+$/u, "");
    const href = hrefOf(address);
    if (href === null) continue;
    if (found.index > from) pieces.push({ text: text.slice(from, found.index), href: null });
    pieces.push({ text: address, href });
    from = found.index + address.length;
  }
  if (from < text.length) pieces.push({ text: text.slice(from), href: null });
  return pieces;
}

function hrefOf(address: string): string | null {
  try {
    const url = new URL(address);
    const plain = url.username === "" && url.password === "" && !url.hostname.includes("xn--");
    return url.protocol === "https:" && plain ? url.href : null;
  } catch {
    return null;
  }
}
