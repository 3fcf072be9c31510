// Plays a turn: a script says what happens, the player makes events of it, in time.
import type {
  Content,
  Event,
  EventKind,
  FinishReason,
  Part,
  PermissionAnswer,
  Question,
  QuestionAnswer,
  ResultNote,
  Source,
  StepStats,
  ToolCall,
  ToolOutcome,
  ToolResult,
  TurnOutcome,
} from "../../bindings/core";

import type { StepSaid } from "../../fold/turn";

/** What a script may do. */
export interface Stage {
  readonly text: string;
  wait(ms: number): Promise<void>;
  emit(kind: EventKind): void;
  /** Asks and waits. */
  ask(call: ToolCall): Promise<PermissionAnswer>;
  /** A server asks during a call, and waits. */
  question(call: ToolCall, question: Question): Promise<{ id: string; answer: QuestionAnswer }>;
  /** Waits until the user stops the turn. */
  forever(): Promise<never>;
}

export type Script = (stage: Stage) => Promise<TurnOutcome>;

export class Stopped extends Error {}

export const MODEL = "starter";
let ids = 0;

export function nextId(kind: string): string {
  ids += 1;
  return `${kind}-${ids}`;
}

export function stats(prompt: number, reused: number, generated: number, first = 320, perToken = 28): StepStats {
  return {
    usage: {
      prompt_tokens: prompt,
      reused_tokens: reused,
      generated_tokens: generated,
      prompt_ms: (prompt - reused) * 2,
      generation_ms: generated * perToken,
    },
    first_delta_ms: first,
    total_ms: first + generated * perToken,
  };
}

export function call(tool: string, args: Record<string, unknown>): ToolCall {
  return { id: nextId("call"), tool, arguments: args };
}

export function source(path: string, heading: string | null, from: number, to: number): Source {
  const title = path.split("/").pop()?.replace(/\.md$/, "") ?? path;
  return { path, title, heading, start_line: from, end_line: to };
}

export function result(
  of: ToolCall,
  text: string,
  options: {
    outcome?: ToolOutcome;
    sources?: Source[];
    structured?: unknown;
    content?: Content[];
    note?: ResultNote;
  } = {},
): ToolResult {
  return {
    call: of.id,
    tool: of.tool,
    outcome: options.outcome ?? "succeeded",
    content: options.content ?? [{ type: "text", text }],
    structured: options.structured,
    sources: options.sources ?? [],
    ...(options.note ? { note: options.note } : {}),
  };
}

/** One step of the model: reads the prompt, thinks, writes, asks for tools. */
export async function step(
  stage: Stage,
  number: number,
  options: {
    thinking?: string;
    text?: string;
    calls?: ToolCall[];
    stats?: StepStats;
    finish?: FinishReason;
    pace?: number;
    tools?: string[];
    said?: StepSaid;
  },
): Promise<void> {
  const { thinking = "", text = "", calls = [], pace = 24 } = options;
  const figures =
    options.stats ?? stats(420 + number * 260, number * 400, Math.ceil(text.length / 4) + calls.length * 24);
  stage.emit({ kind: "step_started", step: number, tools: options.tools ?? TOOLS, ...options.said });
  const { prompt_tokens: total, reused_tokens: reused } = figures.usage;
  for (let done = reused; done < total; done += 128) {
    stage.emit({ kind: "prompt_progress", done, total, reused });
    await stage.wait(60);
  }
  stage.emit({ kind: "prompt_progress", done: total, total, reused });
  for (const piece of pieces(thinking)) {
    stage.emit({ kind: "thinking_delta", text: piece });
    await stage.wait(pace);
  }
  for (const piece of pieces(text)) {
    stage.emit({ kind: "text_delta", text: piece });
    await stage.wait(pace);
  }
  for (const one of calls) {
    stage.emit({ kind: "tool_call_delta", call: one.id, tool: one.tool, arguments: "" });
    for (const piece of pieces(JSON.stringify(one.arguments))) {
      stage.emit({ kind: "tool_call_delta", call: one.id, tool: one.tool, arguments: piece });
      await stage.wait(pace);
    }
  }
  const parts: Part[] = [];
  if (thinking) parts.push({ type: "thinking", text: thinking });
  if (text) parts.push({ type: "text", text });
  for (const one of calls) parts.push({ type: "tool_call", ...one });
  stage.emit({
    kind: "step_finished",
    step: number,
    message_id: nextId("message"),
    message: { parts, model: MODEL, incomplete: false },
    finish: options.finish ?? (calls.length > 0 ? "tool_calls" : "stop"),
    stats: figures,
  });
}

/** Runs a call with its messages; `progress` are the fractions it tells of. */
export async function runCall(
  stage: Stage,
  one: ToolCall,
  outcome: ToolResult,
  options: { ms?: number; progress?: [number, number | null, string | null][]; log?: string[] } = {},
): Promise<void> {
  const id = Number(one.id.replace(/\D/g, ""));
  stage.emit({ kind: "tool_started", call: one });
  stage.emit({
    kind: "tool_wire",
    call: one.id,
    direction: "sent",
    message: { jsonrpc: "2.0", id, method: "tools/call", params: { name: one.tool, arguments: one.arguments } },
  });
  for (const line of options.log ?? []) stage.emit({ kind: "tool_log", call: one.id, line });
  const steps = options.progress ?? [];
  const pause = (options.ms ?? 120) / (steps.length + 1);
  for (const [done, total, message] of steps) {
    await stage.wait(pause);
    stage.emit({ kind: "tool_progress", call: one.id, progress: { done, total, message } });
  }
  await stage.wait(pause);
  stage.emit({
    kind: "tool_wire",
    call: one.id,
    direction: "received",
    message: { jsonrpc: "2.0", id, result: { content: outcome.content, isError: outcome.outcome === "failed" } },
  });
  stage.emit({ kind: "tool_finished", message_id: nextId("message"), result: outcome });
}

export const TOOLS = [
  "notes__list_notes",
  "notes__search_notes",
  "notes__read_note",
  "notes__create_note",
  "notes__append_note",
];

function pieces(text: string): string[] {
  return text.match(/[\s\S]{1,5}/gu) ?? [];
}

/** What the store keeps: everything but what `step_finished` has again. */
export function isStored(event: Event): boolean {
  return !["text_delta", "thinking_delta", "tool_call_delta", "prompt_progress", "model_loading"].includes(event.kind);
}
