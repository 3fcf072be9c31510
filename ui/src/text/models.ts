// What is known of models, in words and figures.
// Invariant: pure; the language is an argument.
import type { AdviceView, DownloadState, DownloadView, ModelView } from "../bindings/app";
import { number, percent } from "./format";

/** Downloads that are not over: they go on, or could. */
export function isOpen(state: DownloadState): boolean {
  return state.type !== "done";
}

/** Downloads for which something happens right now. */
export function isMoving(state: DownloadState): boolean {
  return state.type === "queued" || state.type === "running" || state.type === "checking";
}

/** 0 to 1; null while the size is not known. */
export function share(download: Pick<DownloadView, "done" | "total">): number | null {
  return download.total ? Math.min(1, download.done / download.total) : null;
}

/** Of all downloads that go on, as one; null when none does or their size is not known. */
export function shareOfAll(downloads: readonly DownloadView[]): number | null {
  const moving = downloads.filter(({ state }) => isMoving(state));
  const total = moving.reduce((sum, one) => sum + (one.total ?? 0), 0);
  if (total === 0 || moving.some((one) => one.total === null)) return null;
  return Math.min(1, moving.reduce((sum, one) => sum + one.done, 0) / total);
}

/** `40 s`, `3 min`, `1 h 5 min`: no finer than the guess that it is. */
export function timeLeft(lang: string, seconds: number): string {
  const unit = (name: string, value: number) =>
    new Intl.NumberFormat(lang, { style: "unit", unit: name, unitDisplay: "short" }).format(value);
  if (seconds < 60) return lang.startsWith("zh") ? unit("second", seconds) : `${number(lang, seconds)} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 60) return unit("minute", minutes);
  const rest = minutes % 60;
  const hours = unit("hour", Math.floor(minutes / 60));
  return rest === 0 ? hours : `${hours} ${unit("minute", rest)}`;
}

/** `32k`, `128k`: how contexts are written; those that are no whole number of 1024 in full. */
export function contextSize(lang: string, tokens: number): string {
  return tokens >= 1024 && tokens % 1024 === 0 ? `${number(lang, tokens / 1024)}k` : number(lang, tokens);
}

/** Contexts to choose from: doubled from 1024 on, and the model's own. */
export function contextSteps(most: number): number[] {
  const steps: number[] = [];
  for (let tokens = 1024; tokens < most; tokens *= 2) steps.push(tokens);
  return [...steps, most];
}

/** The parts of a need as shares of what there is or of what is needed, whichever is more. */
export function needBar(advice: AdviceView): { weights: number; kv: number; compute: number; available: number } {
  const { need, available } = advice;
  const whole = Math.max(need.total, available, 1);
  return {
    weights: need.weights / whole,
    kv: need.kv / whole,
    compute: need.compute / whole,
    available: available / whole,
  };
}

/** Names of languages in the language of the window. */
export function languageNames(lang: string, codes: readonly string[]): string {
  const names = new Intl.DisplayNames([lang], { type: "language", fallback: "code" });
  return codes
    .map((code) => {
      try {
        return names.of(code) ?? code;
      } catch {
        return code;
      }
    })
    .join(", ");
}

/** Models that can answer. */
export function isUsable(model: ModelView): boolean {
  return model.problem === null && !model.missing;
}

/** `63 %`, or nothing while the size is not known. */
export function shareWords(lang: string, fraction: number | null): string {
  return fraction === null ? "" : percent(lang, fraction);
}

/** An address, a name, a name with a quantisation; what people paste may have spaces around it. */
export function looksLikeTarget(text: string): boolean {
  const target = text.trim();
  return /^https?:\/\/\S+$/i.test(target) || /^[\w.-]+\/[\w.-]+(:[\w.-]+)?$/.test(target);
}
