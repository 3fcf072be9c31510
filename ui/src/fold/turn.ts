// What a turn looks like at one moment, as the window draws it.
// Invariant: plain immutable data; only `fold.ts` makes new states.
import type {
  AssistantMessage,
  Event,
  Exposure,
  FinishReason,
  Fit,
  Grant,
  ModelErrorCode,
  Part,
  PermissionAnswer,
  Progress,
  Question,
  QuestionAnswer,
  StepSettings,
  StepStats,
  ToolResult,
  TurnOutcome,
  Usage,
  UserMessage,
  WireDirection,
} from "../bindings/core";

/** A piece of a step, in the order in which it came. */
export type Block =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "thinking"; readonly text: string }
  | { readonly type: "call"; readonly call: string }
  | { readonly type: "other"; readonly part: Part };

/** `writing`: the model still writes it; `queued`: whole, not begun; `waiting`: for the user. */
export type CallStatus = "writing" | "queued" | "waiting" | "running" | "succeeded" | "failed" | "denied" | "cancelled";

export interface WireEntry {
  readonly at: string;
  readonly direction: WireDirection;
  readonly message: unknown;
}

/** A question of a server while a call runs. */
export interface QuestionState {
  readonly id: string;
  readonly turn: string;
  readonly server: string;
  readonly question: Question;
  readonly askedAt: string;
  /** Null while it waits. */
  readonly answer: QuestionAnswer | null;
  /** What the model said to the server, once it has. */
  readonly reply: AssistantMessage | null;
  readonly tokens: number | null;
}

export interface CallState {
  readonly id: string;
  readonly tool: string;
  readonly step: number;
  readonly status: CallStatus;
  /** As the model writes it, JSON text; empty once `arguments` is whole. */
  readonly draft: string;
  readonly arguments: Record<string, unknown> | null;
  readonly malformed: string | null;
  readonly choices: readonly Grant[];
  readonly answer: PermissionAnswer | null;
  readonly writtenAt: string | null;
  readonly askedAt: string | null;
  readonly answeredAt: string | null;
  readonly startedAt: string | null;
  readonly finishedAt: string | null;
  readonly progress: Progress | null;
  readonly wire: readonly WireEntry[];
  readonly log: readonly string[];
  readonly questions: readonly QuestionState[];
  readonly result: ToolResult | null;
}

/** The provider gave no reply; it was asked again after a pause. */
export interface RetryState {
  readonly at: string;
  readonly afterMs: number;
  /** How often it had been asked by then. */
  readonly attempt: number;
  readonly reason: ModelErrorCode;
  readonly message: string;
}

export interface StepState {
  readonly index: number;
  readonly startedAt: string;
  readonly finishedAt: string | null;
  readonly tools: readonly string[];
  /** Why these tools, with which settings, and what was done so that the request fits; null in what older versions stored. */
  readonly exposure: Exposure | null;
  readonly settings: StepSettings | null;
  readonly fit: Fit | null;
  /** 0 to 1 while the model is being loaded. */
  readonly loading: number | null;
  /** When the first text, thinking or call came; null again once `stats` are there. */
  readonly firstAt: string | null;
  readonly prompt: { readonly done: number; readonly total: number; readonly reused: number } | null;
  readonly retries: readonly RetryState[];
  readonly blocks: readonly Block[];
  readonly messageId: string | null;
  readonly model: string | null;
  readonly incomplete: boolean;
  readonly finish: FinishReason | null;
  readonly stats: StepStats | null;
}

export interface NoticeState {
  readonly at: string;
  readonly step: number;
  readonly code: string;
  readonly message: string;
}

export interface TurnState {
  readonly id: string;
  readonly conversation: string;
  readonly lastSeq: number;
  readonly startedAt: string | null;
  readonly finishedAt: string | null;
  readonly model: string | null;
  readonly userId: string | null;
  readonly user: UserMessage | null;
  readonly steps: readonly StepState[];
  readonly calls: Readonly<Record<string, CallState>>;
  readonly notices: readonly NoticeState[];
  readonly outcome: TurnOutcome | null;
}

export function newTurn(id: string, conversation: string): TurnState {
  return {
    id,
    conversation,
    lastSeq: -1,
    startedAt: null,
    finishedAt: null,
    model: null,
    userId: null,
    user: null,
    steps: [],
    calls: {},
    notices: [],
    outcome: null,
  };
}

/** What the start of a step may say beside its tools. */
export interface StepSaid {
  readonly exposure?: Exposure;
  readonly settings?: StepSettings;
  readonly fit?: Fit;
}

export function newStep(index: number, at: string, tools: readonly string[], said: StepSaid = {}): StepState {
  return {
    index,
    startedAt: at,
    finishedAt: null,
    tools,
    exposure: said.exposure ?? null,
    settings: said.settings ?? null,
    fit: said.fit ?? null,
    loading: null,
    firstAt: null,
    prompt: null,
    retries: [],
    blocks: [],
    messageId: null,
    model: null,
    incomplete: false,
    finish: null,
    stats: null,
  };
}

export function newCall(id: string, tool: string, step: number, at: string | null): CallState {
  return {
    id,
    tool,
    step,
    status: "writing",
    draft: "",
    arguments: null,
    malformed: null,
    choices: [],
    answer: null,
    writtenAt: at,
    askedAt: null,
    answeredAt: null,
    startedAt: null,
    finishedAt: null,
    progress: null,
    wire: [],
    log: [],
    questions: [],
    result: null,
  };
}

/** The plain text of a message's text parts. */
export function textOf(message: UserMessage | AssistantMessage): string {
  return message.parts
    .map((part) => (part.type === "text" ? part.text : ""))
    .filter((text) => text.trim() !== "")
    .join("\n\n");
}

/** What all steps of a turn took together; null while nothing is known. Times are no part of it. */
export function usageOf(turn: TurnState): Usage | null {
  const known = turn.steps.flatMap((step) => (step.stats ? [step.stats.usage] : []));
  const sum = (of: (usage: Usage) => number | undefined) => known.reduce((all, one) => all + (of(one) ?? 0), 0);
  const usage: Usage = {
    prompt_tokens: sum((one) => one.prompt_tokens),
    reused_tokens: sum((one) => one.reused_tokens),
    generated_tokens: sum((one) => one.generated_tokens),
    ...(known.some((one) => one.thinking_tokens !== undefined)
      ? { thinking_tokens: sum((one) => one.thinking_tokens) }
      : {}),
    ...(known.some((one) => one.image_tokens !== undefined) ? { image_tokens: sum((one) => one.image_tokens) } : {}),
    prompt_ms: null,
    generation_ms: null,
  };
  return usage.prompt_tokens + usage.generated_tokens > 0 ? usage : null;
}

export function isOver(turn: TurnState): boolean {
  return turn.outcome !== null;
}

/** The question that waits for the user; none when the call is over. */
export function openQuestion(call: CallState): QuestionState | null {
  return isSettled(call.status) ? null : (call.questions.find((one) => one.answer === null) ?? null);
}

/** Settled calls are never changed again. */
export function isSettled(status: CallStatus): boolean {
  return status === "succeeded" || status === "failed" || status === "denied" || status === "cancelled";
}

/** What comes next in a stream: the event after the last, an old one, or one after a hole. */
export function arrival(turn: TurnState, event: Event): "next" | "old" | "gap" {
  if (event.seq <= turn.lastSeq) return "old";
  return event.seq === turn.lastSeq + 1 ? "next" : "gap";
}
