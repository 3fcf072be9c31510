// Marks a passage in a rendered note.
// Invariant: wraps text that is there; adds and removes no words.

/** Only letters and digits count: the rendered text has other spaces, quotes and marks than its source. */
function bare(char: string): string {
  return /[\p{L}\p{N}]/u.test(char) ? char.toLowerCase() : "";
}

interface Spot {
  readonly node: Text;
  readonly offset: number;
  readonly length: number;
}

/** Marks the words of a quotation; false when they are not there. */
export function markQuote(root: HTMLElement, quote: string): boolean {
  const wanted = [...quote].map(bare).join("");
  if (wanted.length < 2) return false;
  const spots: Spot[] = [];
  let text = "";
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    let offset = 0;
    for (const char of node.nodeValue ?? "") {
      const plain = bare(char);
      for (let index = 0; index < plain.length; index++)
        spots.push({ node: node as Text, offset, length: char.length });
      text += plain;
      offset += char.length;
    }
  }
  const at = find(text, wanted);
  if (at === null) return false;
  wrap(spots.slice(at.from, at.to));
  return true;
}

/** The whole quotation, else its beginning: models shorten and join what they quote. */
function find(text: string, wanted: string): { from: number; to: number } | null {
  for (const length of [wanted.length, 80, 40, 20, 12]) {
    if (length > wanted.length) continue;
    const from = text.indexOf(wanted.slice(0, length));
    if (from < 0) continue;
    let to = from + length;
    while (to < text.length && text[to] === wanted[to - from]) to++;
    return { from, to };
  }
  return null;
}

function wrap(spots: readonly Spot[]): void {
  const ranges = new Map<Text, { from: number; to: number }>();
  for (const { node, offset, length } of spots) {
    const known = ranges.get(node);
    ranges.set(node, { from: known?.from ?? offset, to: offset + length });
  }
  for (const [node, { from, to }] of ranges) {
    const range = document.createRange();
    range.setStart(node, from);
    range.setEnd(node, to);
    range.surroundContents(document.createElement("mark"));
  }
}

/** Marks the blocks that stand in these lines; false when there are none. */
export function markLines(root: HTMLElement, from: number, to: number): boolean {
  const blocks = [...root.querySelectorAll<HTMLElement>("[data-start]")].filter((block) => {
    const start = Number(block.dataset["start"]);
    const end = Number(block.dataset["end"]);
    return start <= to && end >= from;
  });
  for (const block of blocks) block.classList.add("marked");
  return blocks.length > 0;
}
