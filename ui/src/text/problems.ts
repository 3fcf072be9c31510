// The window's words for the ways in which a turn ends badly.
// Invariant: chosen by code, never by reading an error's text.
import type { TurnErrorCode } from "../bindings/core";
import type { Key } from "../i18n/i18n.svelte";

export function errorKey(code: TurnErrorCode): string {
  return code.type === "model" ? code.model : code.type;
}

const TITLES: Record<string, Key> = {
  bad_model_file: "error.bad_model_file",
  model_crashed: "error.model_crashed",
  context_full: "error.context_full",
  bad_request: "error.bad_request",
  unauthorized: "error.unauthorized",
  rate_limited: "error.rate_limited",
  unreachable: "error.unreachable",
  provider: "error.provider",
  store: "error.store",
  panic: "error.panic",
  interrupted: "error.interrupted",
};

const HINTS: Record<string, Key> = {
  bad_model_file: "hint.bad_model_file",
  model_crashed: "hint.model_crashed",
  context_full: "hint.context_full",
  unauthorized: "hint.unauthorized",
  rate_limited: "hint.rate_limited",
  unreachable: "hint.unreachable",
  store: "hint.store",
  panic: "hint.panic",
  interrupted: "hint.interrupted",
};

export function errorTitle(code: TurnErrorCode): Key {
  return TITLES[errorKey(code)] ?? "error.unknown";
}

export function errorHint(code: TurnErrorCode): Key | null {
  return HINTS[errorKey(code)] ?? null;
}

/** Problems that are mended by choosing another model. */
export function wantsOtherModel(code: TurnErrorCode): boolean {
  return ["bad_model_file", "model_crashed"].includes(errorKey(code));
}

const NOTICES: Record<string, Key> = {
  broken_schema: "notice.broken_schema",
  history_cut: "notice.history_cut",
  model_reloaded: "notice.model_reloaded",
  news_dropped: "notice.news_dropped",
  result_cut: "notice.result_cut",
  stray_arguments: "notice.stray_arguments",
};

/** Notices that matter for the answer; the others stand in the trace only. */
const IN_CONVERSATION = ["history_cut", "model_reloaded", "result_cut"];

/** The words of a notice, if this window knows its code. */
export function noticeKey(code: string): Key | null {
  return NOTICES[code] ?? null;
}

export function isForReader(code: string): boolean {
  return IN_CONVERSATION.includes(code);
}
