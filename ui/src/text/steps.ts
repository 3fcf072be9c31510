// What a step did otherwise than usual, in words.
// Invariant: chosen by codes, never by reading a text.
import type { PromptPart, ResultNote } from "../bindings/core";
import type { StepState, TurnState } from "../fold/turn";
import { t, type Key } from "../i18n/i18n.svelte";

/** What became of a call that was not simply run. */
export function noteWords(note: ResultNote): string {
  switch (note.type) {
    case "repeated":
      return t("note.repeated");
    case "definition_shown":
      return t("note.definitionShown");
    case "answered":
      return t("note.answered");
  }
}

/** The part of a prompt that is not what it was, so that all behind it was read again. */
export function partWords(part: PromptPart): string {
  return part.part === "message" ? t("part.message", { n: part.number }) : t(`part.${part.part}`);
}

/** The word beside a step that is not like the others. */
export function stepMark(step: StepState): Key | null {
  switch (step.exposure?.reason) {
    case "gate_closed":
      return "step.gateClosed";
    case "synthesis":
      return "step.synthesis";
    case "empty_answer":
      return "step.emptyAnswer";
    case "repeating":
      return "step.repeating";
    case "policy":
    case "no_tools":
    case "wanted":
    case undefined:
      return null;
  }
}

/** The summary that this turn made of the messages before it; none when it made none. */
export function newSummary(turn: TurnState): { readonly text: string; readonly messages: number } | null {
  for (const { fit } of turn.steps) if (fit?.summary?.new) return fit.summary;
  return null;
}
