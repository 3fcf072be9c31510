// What a running turn waits for, so that no wait is silent.
// Invariant: pure.
import { openQuestion, type RetryState, type TurnState } from "./turn";

export type Waiting =
  | { readonly for: "model"; readonly fraction: number }
  | { readonly for: "prompt"; readonly done: number; readonly total: number }
  | { readonly for: "retry"; readonly retry: RetryState }
  | { readonly for: "first_word" }
  | { readonly for: "writing" }
  | { readonly for: "tool" }
  | { readonly for: "you" };

/** Whole seconds until a provider is asked again; 0 while that happens. */
export function secondsLeft(retry: RetryState, now: number): number {
  return Math.max(0, Math.ceil((Date.parse(retry.at) + retry.afterMs - now) / 1000));
}

export function waitingFor(turn: TurnState): Waiting {
  const calls = Object.values(turn.calls);
  if (calls.some((call) => call.status === "waiting" || openQuestion(call) !== null)) return { for: "you" };
  const step = turn.steps.at(-1);
  if (!step) return { for: "first_word" };
  if (step.finishedAt !== null) {
    return calls.some((call) => call.status === "running" || call.status === "queued")
      ? { for: "tool" }
      : { for: "first_word" };
  }
  if (step.blocks.length > 0) return { for: "writing" };
  const retry = step.retries.at(-1);
  if (retry) return { for: "retry", retry };
  if (step.loading !== null) return { for: "model", fraction: step.loading };
  if (step.prompt !== null && step.prompt.done < step.prompt.total) {
    return { for: "prompt", done: step.prompt.done, total: step.prompt.total };
  }
  return { for: "first_word" };
}
