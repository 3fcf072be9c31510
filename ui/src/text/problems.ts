// The window's words for the ways in which a turn ends badly.
// Invariant: chosen by code, never by reading an error's text.
import type { ModelErrorCode, TurnErrorCode } from "../bindings/core";
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
  blocked: "error.blocked",
  quota_exhausted: "error.quota_exhausted",
  not_enabled: "error.not_enabled",
  not_available_here: "error.not_available_here",
  model_not_found: "error.model_not_found",
  incomplete: "error.incomplete",
  malformed_call: "error.malformed_call",
  empty_answer: "error.empty_answer",
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
  blocked: "hint.blocked",
  quota_exhausted: "hint.quota_exhausted",
  not_enabled: "hint.not_enabled",
  not_available_here: "hint.not_available_here",
  model_not_found: "hint.model_not_found",
  incomplete: "hint.incomplete",
  malformed_call: "hint.malformed_call",
  empty_answer: "hint.empty_answer",
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
  return [
    "bad_model_file",
    "model_crashed",
    "blocked",
    "quota_exhausted",
    "not_available_here",
    "model_not_found",
    "malformed_call",
    "empty_answer",
  ].includes(errorKey(code));
}

/** Problems that are mended where the provider is set up. */
export function wantsProvider(code: TurnErrorCode): boolean {
  return ["unauthorized", "not_enabled", "not_available_here", "model_not_found", "unreachable"].includes(
    errorKey(code),
  );
}

/** Why a provider is asked again. */
export function retryTitle(reason: ModelErrorCode): Key {
  return TITLES[reason] ?? "error.unknown";
}

const NOTICES: Record<string, Key> = {
  broken_schema: "notice.broken_schema",
  history_cut: "notice.history_cut",
  loose_grammar: "notice.loose_grammar",
  model_reloaded: "notice.model_reloaded",
  part_not_shown: "notice.part_not_shown",
  news_dropped: "notice.news_dropped",
  result_cut: "notice.result_cut",
  stray_arguments: "notice.stray_arguments",
  unknown_end: "notice.unknown_end",
};

/** Notices that matter for the answer; the others stand in the trace only. */
const IN_CONVERSATION = ["history_cut", "model_reloaded", "part_not_shown", "result_cut", "unknown_end"];

/** The words of a notice, if this window knows its code. */
export function noticeKey(code: string): Key | null {
  // What a provider held back is named by its own word for the reason.
  return NOTICES[code] ?? (code.startsWith("withheld_") ? "notice.withheld" : null);
}

export function isForReader(code: string): boolean {
  return IN_CONVERSATION.includes(code) || code.startsWith("withheld_");
}
