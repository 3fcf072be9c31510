// Finds the words that a citation is about in the page.
// Invariant: reads the page, changes nothing.

/** The path that a rendered block names as the source of what follows it. */
export function citedPath(html: string): string | null {
  const holder = document.createElement("template");
  holder.innerHTML = html;
  const notes = [...holder.content.querySelectorAll<HTMLElement>("[data-note]")];
  const last = notes.at(-1);
  // A source stands at the end of its line, with nothing but the colon after it.
  const text = holder.content.textContent?.trim() ?? "";
  const name = last?.dataset["note"] ?? null;
  return name !== null && /[:：]$/.test(text) ? name : null;
}

/** The quotation after a citation, or that of a block; null when none follows directly. */
export function quotedAfter(root: HTMLElement, note: HTMLElement | null, line?: number): string | null {
  const blocks = [...root.querySelectorAll<HTMLElement>(":scope > [data-start]")];
  const own = note
    ? blocks.findIndex((block) => block.contains(note))
    : blocks.findIndex((block) => block.dataset["start"] === String(line)) - 1;
  const next = blocks[own + 1]?.firstElementChild;
  if (next?.tagName !== "BLOCKQUOTE") return null;
  return next.textContent?.trim() || null;
}
