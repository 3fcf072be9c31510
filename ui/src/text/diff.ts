// What became different between two texts, line by line.
// Invariant: pure.

export type DiffLine =
  | { readonly kind: "same" | "added" | "removed"; readonly text: string }
  /** So many unchanged lines are left out. */
  | { readonly kind: "gap"; readonly lines: number };

/** Unchanged lines that are shown around a change. */
const CONTEXT = 2;
/** Beyond this the table would grow too large; the texts are then shown one after the other. */
const MOST_CELLS = 4_000_000;

export function diffLines(before: string, after: string): DiffLine[] {
  const old = before.split("\n");
  const now = after.split("\n");
  let head = 0;
  while (head < old.length && head < now.length && old[head] === now[head]) head++;
  let tail = 0;
  while (tail < old.length - head && tail < now.length - head && old.at(-1 - tail) === now.at(-1 - tail)) tail++;
  const middle = between(old.slice(head, old.length - tail), now.slice(head, now.length - tail));
  return folded([...same(old.slice(0, head)), ...middle, ...same(tail === 0 ? [] : old.slice(-tail))]);
}

type Line = Exclude<DiffLine, { kind: "gap" }>;

function same(lines: readonly string[]): Line[] {
  return lines.map((text) => ({ kind: "same", text }));
}

/** The longest common lines stay, the others were removed or added. */
function between(old: readonly string[], now: readonly string[]): Line[] {
  const removed = (text: string): Line => ({ kind: "removed", text });
  const added = (text: string): Line => ({ kind: "added", text });
  if (old.length * now.length > MOST_CELLS) return [...old.map(removed), ...now.map(added)];
  const width = now.length + 1;
  const table = new Uint32Array((old.length + 1) * width);
  const at = (row: number, column: number) => table[row * width + column] ?? 0;
  for (let row = old.length - 1; row >= 0; row--) {
    for (let column = now.length - 1; column >= 0; column--) {
      table[row * width + column] =
        old[row] === now[column] ? at(row + 1, column + 1) + 1 : Math.max(at(row + 1, column), at(row, column + 1));
    }
  }
  const out: Line[] = [];
  let row = 0;
  let column = 0;
  while (row < old.length || column < now.length) {
    const left = old[row];
    const right = now[column];
    if (left !== undefined && left === right) {
      out.push({ kind: "same", text: left });
      row++;
      column++;
    } else if (left !== undefined && (right === undefined || at(row + 1, column) >= at(row, column + 1))) {
      out.push(removed(left));
      row++;
    } else if (right !== undefined) {
      out.push(added(right));
      column++;
    }
  }
  return out;
}

function folded(lines: readonly Line[]): DiffLine[] {
  const near = new Set<number>();
  for (const [index, line] of lines.entries()) {
    if (line.kind === "same") continue;
    for (let by = -CONTEXT; by <= CONTEXT; by++) near.add(index + by);
  }
  const out: DiffLine[] = [];
  for (const [index, line] of lines.entries()) {
    const last = out.at(-1);
    if (near.has(index)) out.push(line);
    else if (last?.kind === "gap") out[out.length - 1] = { kind: "gap", lines: last.lines + 1 };
    else out.push({ kind: "gap", lines: 1 });
  }
  return out;
}

/** A tool's definition as lines, in an order that does not depend on how the server wrote it. */
export function definitionText(value: unknown): string {
  // JSON writes line breaks as `\n`; broken up, a changed sentence of a description is seen at once.
  return JSON.stringify(ordered(value), null, 2).replaceAll("\\n", "\n    ");
}

function ordered(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(ordered);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([key, inner]) => [key, ordered(inner)]));
}
