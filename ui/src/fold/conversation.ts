// A stored conversation as turns: from its events, or from its messages where it has none (imported history).
// Invariant: pure.
import type { ConversationView, MessageView } from "../bindings/app";
import { blocksOf, foldAll } from "./fold";
import { newCall, newStep, newTurn, type CallState, type TurnState } from "./turn";

export function turnsOf(view: ConversationView): TurnState[] {
  const turns = new Map<string, TurnState>();
  const known = new Map(view.turns.map((turn) => [turn.id, turn.events]));
  const groups = new Map<string, MessageView[]>();
  for (const message of view.messages) {
    const group = groups.get(message.turn);
    if (group) group.push(message);
    else groups.set(message.turn, [message]);
  }
  for (const [id, messages] of groups) {
    const events = known.get(id);
    turns.set(
      id,
      events && events.length > 0 ? foldAll(id, view.summary.id, events) : fromMessages(id, view.summary.id, messages),
    );
  }
  // A turn that has just begun may have events before its first message is read.
  for (const [id, events] of known) {
    if (!turns.has(id) && events.length > 0) turns.set(id, foldAll(id, view.summary.id, events));
  }
  const all = [...turns.values()];
  return all.map((turn, position) =>
    turn.outcome === null && !(view.summary.running && position === all.length - 1) ? interrupted(turn) : turn,
  );
}

/** A turn that is neither running nor finished: the app ended in the middle of it. */
function interrupted(turn: TurnState): TurnState {
  const calls: Record<string, CallState> = {};
  for (const call of Object.values(turn.calls)) {
    calls[call.id] = call.result === null ? { ...call, status: "cancelled" } : call;
  }
  const error = { code: { type: "interrupted" as const }, message: "interrupted", hint: null, detail: null };
  return { ...turn, calls, outcome: { type: "failed", error } };
}

function fromMessages(id: string, conversation: string, messages: readonly MessageView[]): TurnState {
  let turn: TurnState = { ...newTurn(id, conversation), outcome: { type: "completed" } };
  for (const { message, at, id: messageId } of messages) {
    if (message.role === "user") {
      turn = { ...turn, startedAt: at, userId: messageId, user: { parts: message.parts } };
    } else if (message.role === "assistant") {
      const step = {
        ...newStep(turn.steps.length, at, []),
        finishedAt: at,
        blocks: blocksOf(message),
        messageId,
        model: message.model,
        incomplete: message.incomplete,
      };
      const calls = { ...turn.calls };
      for (const part of message.parts) {
        if (part.type !== "tool_call") continue;
        calls[part.id] = {
          ...newCall(part.id, part.tool, step.index, null),
          arguments: part.arguments,
          malformed: part.malformed ?? null,
          status: "cancelled",
        };
      }
      turn = { ...turn, steps: [...turn.steps, step], calls };
    } else {
      const call = turn.calls[message.call];
      if (!call) continue;
      const { role: _role, ...result } = message;
      turn = { ...turn, calls: { ...turn.calls, [call.id]: { ...call, status: result.outcome, result } } };
    }
  }
  return turn;
}
