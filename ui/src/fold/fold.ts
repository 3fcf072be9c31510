// Folds the events of a turn into its state.
// Invariant: pure; replaying the stored events (without deltas) gives the state that the live events gave.
import type { AssistantMessage, Event, Part, ToolCall, ToolResult } from "../bindings/core";
import {
  newCall,
  newStep,
  newTurn,
  type Block,
  type CallState,
  type QuestionState,
  type StepState,
  type TurnState,
} from "./turn";

/** The next state. Events that were already folded, of another turn, or of an unknown kind change nothing but `lastSeq`. */
export function fold(turn: TurnState, event: Event): TurnState {
  if (event.turn !== turn.id || event.seq <= turn.lastSeq || turn.outcome !== null) return turn;
  return { ...apply(turn, event), lastSeq: event.seq };
}

/** All events of a turn, oldest first. */
export function foldAll(id: string, conversation: string, events: readonly Event[]): TurnState {
  return events.reduce(fold, newTurn(id, conversation));
}

function apply(turn: TurnState, event: Event): TurnState {
  switch (event.kind) {
    case "turn_started":
      return { ...turn, startedAt: event.at, model: event.model, userId: event.message_id, user: event.message };
    case "step_started":
      return { ...turn, steps: [...turn.steps, newStep(event.step, event.at, event.tools, event)] };
    case "model_loading":
      return onStep(turn, event, (step) => ({ ...step, loading: event.fraction }));
    case "prompt_progress":
      return onStep(turn, event, (step) => ({
        ...step,
        loading: null,
        prompt: { done: event.done, total: event.total, reused: event.reused },
      }));
    case "retrying":
      return onStep(turn, event, (step) => ({
        ...step,
        retries: [
          ...step.retries,
          {
            at: event.at,
            afterMs: event.after_ms,
            attempt: event.attempt,
            reason: event.reason,
            message: event.message,
          },
        ],
      }));
    case "text_delta":
      return onStep(turn, event, (step) => withDelta(step, "text", event.text, event.at));
    case "thinking_delta":
      return onStep(turn, event, (step) => withDelta(step, "thinking", event.text, event.at));
    case "tool_call_delta":
      return callDelta(turn, event);
    case "step_finished":
      return stepFinished(turn, event);
    case "permission_requested":
      return onCall(turn, event.call.id, event, (call) => ({
        ...withCall(call, event.call),
        status: "waiting",
        choices: event.choices,
        askedAt: event.at,
      }));
    case "permission_answered":
      return onCall(turn, event.call, event, (call) => ({
        ...call,
        status: "queued",
        answer: event.answer,
        answeredAt: event.at,
      }));
    case "tool_started":
      return onCall(turn, event.call.id, event, (call) => ({
        ...withCall(call, event.call),
        status: "running",
        startedAt: event.at,
      }));
    case "tool_progress":
      return onCall(turn, event.call, event, (call) => ({ ...call, progress: event.progress }));
    case "tool_wire":
      return onCall(turn, event.call, event, (call) => ({
        ...call,
        wire: [...call.wire, { at: event.at, direction: event.direction, message: event.message }],
      }));
    case "tool_log":
      return onCall(turn, event.call, event, (call) => ({ ...call, log: [...call.log, event.line] }));
    case "question_asked":
      return onCall(turn, event.call, event, (call) => ({
        ...call,
        questions: [
          ...call.questions,
          {
            id: event.question_id,
            turn: event.turn,
            server: event.server,
            question: event.question,
            askedAt: event.at,
            answer: null,
            reply: null,
            tokens: null,
          },
        ],
      }));
    case "question_answered":
      return onQuestion(turn, event, (one) => ({ ...one, answer: event.answer }));
    case "sample_finished":
      return onQuestion(turn, event, (one) => ({
        ...one,
        reply: event.message,
        tokens: event.stats.usage.prompt_tokens + event.stats.usage.generated_tokens,
      }));
    case "tool_finished":
      return toolFinished(turn, event.result, event);
    case "notice":
      return {
        ...turn,
        notices: [
          ...turn.notices,
          { at: event.at, step: Math.max(0, turn.steps.length - 1), code: event.code, message: event.message },
        ],
      };
    case "turn_finished":
      return turnFinished(turn, event);
    default:
      // A newer core may tell more than this window knows.
      return turn;
  }
}

/** Changes the step that runs now; a stream that lost its `step_started` gets a step all the same. */
function onStep(turn: TurnState, event: Event, change: (step: StepState) => StepState): TurnState {
  const last = turn.steps.at(-1);
  if (last && last.finishedAt === null) return { ...turn, steps: [...turn.steps.slice(0, -1), change(last)] };
  return { ...turn, steps: [...turn.steps, change(newStep(turn.steps.length, event.at, []))] };
}

function withDelta(step: StepState, type: "text" | "thinking", text: string, at: string): StepState {
  const last = step.blocks.at(-1);
  const blocks: Block[] =
    last?.type === type
      ? [...step.blocks.slice(0, -1), { type, text: last.text + text }]
      : [...step.blocks, { type, text }];
  return { ...step, loading: null, firstAt: step.firstAt ?? at, blocks };
}

function callDelta(turn: TurnState, event: Event & { kind: "tool_call_delta" }): TurnState {
  const known = turn.calls[event.call];
  const next = onStep(turn, event, (step) =>
    step.blocks.some((block) => block.type === "call" && block.call === event.call)
      ? step
      : {
          ...step,
          loading: null,
          firstAt: step.firstAt ?? event.at,
          blocks: [...step.blocks, { type: "call", call: event.call }],
        },
  );
  const call = known ?? newCall(event.call, event.tool, next.steps.at(-1)?.index ?? 0, event.at);
  return withCalls(next, { ...call, draft: call.draft + event.arguments });
}

function stepFinished(turn: TurnState, event: Event & { kind: "step_finished" }): TurnState {
  const finished = onStep(turn, event, (step) => ({
    ...step,
    index: event.step,
    finishedAt: event.at,
    loading: null,
    firstAt: null,
    prompt: null,
    blocks: blocksOf(event.message),
    messageId: event.message_id,
    model: event.message.model,
    incomplete: event.message.incomplete,
    finish: event.finish,
    stats: event.stats,
  }));
  const calls = { ...finished.calls };
  // Calls that were begun but are not in the message never happened (the model was stopped while it wrote them).
  for (const call of Object.values(calls)) if (call.status === "writing") delete calls[call.id];
  for (const part of event.message.parts) {
    if (part.type !== "tool_call") continue;
    calls[part.id] = {
      ...withCall(newCall(part.id, part.tool, event.step, event.at), part),
      status: "queued",
    };
  }
  return { ...finished, calls };
}

function toolFinished(turn: TurnState, result: ToolResult, event: Event): TurnState {
  return onCall(turn, result.call, event, (call) => ({
    ...call,
    tool: call.tool || result.tool,
    status: result.outcome,
    finishedAt: event.at,
    result,
  }));
}

function turnFinished(turn: TurnState, event: Event & { kind: "turn_finished" }): TurnState {
  const steps = turn.steps.map((step) =>
    step.finishedAt === null ? { ...step, finishedAt: event.at, loading: null, prompt: null, incomplete: true } : step,
  );
  const calls: Record<string, CallState> = {};
  for (const call of Object.values(turn.calls)) {
    calls[call.id] = call.result === null ? { ...call, status: "cancelled", finishedAt: event.at } : call;
  }
  return { ...turn, steps, calls, outcome: event.outcome, finishedAt: event.at };
}

function onCall(turn: TurnState, id: string, event: Event, change: (call: CallState) => CallState): TurnState {
  const known = turn.calls[id];
  if (known) return known.result ? turn : withCalls(turn, change(known));
  // Never announced by its step: shown in the last one all the same.
  const step = turn.steps.at(-1) ?? newStep(0, event.at, []);
  const steps = [
    ...turn.steps.slice(0, -1),
    { ...step, blocks: [...step.blocks, { type: "call" as const, call: id }] },
  ];
  return withCalls({ ...turn, steps }, change(newCall(id, "", step.index, event.at)));
}

function onQuestion(
  turn: TurnState,
  event: Event & { kind: "question_answered" | "sample_finished" },
  change: (question: QuestionState) => QuestionState,
): TurnState {
  return onCall(turn, event.call, event, (call) => ({
    ...call,
    questions: call.questions.map((one) => (one.id === event.question_id ? change(one) : one)),
  }));
}

function withCalls(turn: TurnState, call: CallState): TurnState {
  return { ...turn, calls: { ...turn.calls, [call.id]: call } };
}

function withCall(state: CallState, call: ToolCall): CallState {
  return { ...state, tool: call.tool, draft: "", arguments: call.arguments, malformed: call.malformed ?? null };
}

/** The blocks of a whole message. */
export function blocksOf(message: AssistantMessage): Block[] {
  return message.parts.flatMap((part: Part): Block[] => {
    switch (part.type) {
      case "text":
        return part.text === "" ? [] : [{ type: "text", text: part.text }];
      case "thinking":
        return part.text === "" ? [] : [{ type: "thinking", text: part.text }];
      case "tool_call":
        return [{ type: "call", call: part.id }];
      default:
        return [{ type: "other", part }];
    }
  });
}
