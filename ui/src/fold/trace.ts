// A turn as rows on a time axis.
// Invariant: pure; `now` is an argument.
import type { CallState, RetryState, StepState, TurnState } from "./turn";

/** Milliseconds since 1970. Hatched from `start` to `mid`, solid from `mid` to `end`. */
export interface Span {
  readonly start: number;
  readonly mid: number;
  readonly end: number;
}

export type TraceRow =
  | { readonly kind: "step"; readonly key: string; readonly span: Span; readonly step: StepState }
  | { readonly kind: "call"; readonly key: string; readonly span: Span; readonly call: CallState }
  | { readonly kind: "notice"; readonly key: string; readonly code: string; readonly message: string }
  | { readonly kind: "retry"; readonly key: string; readonly retry: RetryState };

/** A row that takes time, and opens to its details. */
export type TimedRow = Extract<TraceRow, { readonly span: Span }>;

export interface TraceTurn {
  readonly turn: TurnState;
  readonly from: number;
  readonly to: number;
  readonly rows: readonly TraceRow[];
}

export function traceOf(turn: TurnState, now: number): TraceTurn {
  const end = turn.finishedAt ? Date.parse(turn.finishedAt) : turn.outcome ? latest(turn) : now;
  const rows: TraceRow[] = [];
  for (const [position, step] of turn.steps.entries()) {
    rows.push({ kind: "step", key: `step:${turn.id}:${position}`, span: stepSpan(step, end), step });
    for (const [index, retry] of step.retries.entries()) {
      rows.push({ kind: "retry", key: `retry:${turn.id}:${position}:${index}`, retry });
    }
    for (const block of step.blocks) {
      const call = block.type === "call" ? turn.calls[block.call] : undefined;
      if (call) rows.push({ kind: "call", key: `call:${turn.id}:${call.id}`, span: callSpan(call, step, end), call });
    }
    for (const [index, notice] of turn.notices.entries()) {
      if (notice.step !== position) continue;
      rows.push({ kind: "notice", key: `notice:${turn.id}:${index}`, code: notice.code, message: notice.message });
    }
  }
  const starts = rows.flatMap((row) => ("span" in row ? [row.span.start] : []));
  const ends = rows.flatMap((row) => ("span" in row ? [row.span.end] : []));
  const from = turn.startedAt ? Date.parse(turn.startedAt) : Math.min(end, ...starts);
  return { turn, rows, from, to: Math.max(from + 1, end, ...ends) };
}

function stepSpan(step: StepState, now: number): Span {
  const start = Date.parse(step.startedAt);
  const end = Math.max(start, step.finishedAt ? Date.parse(step.finishedAt) : now);
  const first = step.stats?.first_delta_ms;
  const begun = first !== null && first !== undefined ? start + first : step.firstAt ? Date.parse(step.firstAt) : end;
  return { start, mid: Math.min(begun, end), end };
}

function callSpan(call: CallState, step: StepState, now: number): Span {
  const start = Date.parse(call.writtenAt ?? call.startedAt ?? step.finishedAt ?? step.startedAt);
  const end = Math.max(start, call.finishedAt ? Date.parse(call.finishedAt) : now);
  const begun = call.startedAt ? Date.parse(call.startedAt) : end;
  return { start, mid: Math.min(Math.max(start, begun), end), end };
}

function latest(turn: TurnState): number {
  const times = [
    turn.startedAt,
    ...turn.steps.map((step) => step.finishedAt ?? step.startedAt),
    ...Object.values(turn.calls).map((call) => call.finishedAt),
  ];
  return Math.max(0, ...times.flatMap((at) => (at ? [Date.parse(at)] : [])));
}

/** Whether a row tells of something: in its names, arguments, results, messages, log. */
export function rowMatches(row: TraceRow, query: string): boolean {
  const wanted = query.trim().toLowerCase();
  if (wanted === "") return true;
  const { span: _span, ...rest } = "span" in row ? row : { ...row, span: null };
  return JSON.stringify(rest).toLowerCase().includes(wanted);
}

/** A point of time as a part of the axis, in percent. */
export function place(trace: TraceTurn, at: number): number {
  return Math.min(100, Math.max(0, ((at - trace.from) / (trace.to - trace.from)) * 100));
}
