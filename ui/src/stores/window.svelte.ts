// What floats over the page, and what the trace points at.
import type { Problem } from "../bindings/app";

export type Overlay = "palette" | "shortcuts" | null;

/** A note to be read, at a passage. */
export interface NotePlace {
  readonly server: string;
  readonly path: string;
  readonly heading: string | null;
  readonly startLine: number | null;
  readonly endLine: number | null;
  /** The words to mark; wins over the lines. */
  readonly quote: string | null;
}

export class Floating {
  overlay = $state<Overlay>(null);
  note = $state.raw<NotePlace | null>(null);
  /** Whether the settings of answers lie beside the conversation. */
  answers = $state(false);
  /** The row of the trace that is open: `step:TURN:0` or `call:TURN:ID`. */
  traceRow = $state<string | null>(null);
  /** Under 760 px the list lies over the page. */
  drawer = $state(false);
  /** A problem of an action that has no place of its own. */
  problem = $state.raw<Problem | null>(null);
}
