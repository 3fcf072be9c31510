import { describe, expect, it } from "vitest";
import type { Event, EventKind } from "../bindings/core";
import { Player } from "../host/fake/player";
import { isStored, type Script } from "../host/fake/script";
import * as scripts from "../host/fake/scripts";
import { turnsOf } from "./conversation";
import { fold, foldAll } from "./fold";
import { waitingFor } from "./status";
import { traceOf } from "./trace";
import { arrival, newTurn, type TurnState } from "./turn";

async function played(script: Script): Promise<Event[]> {
  const player = new Player("c", "a question", "instant", Date.parse("2026-11-20T22:00:00Z"));
  await player.play(script);
  return player.events;
}

const turnId = (events: readonly Event[]) => events[0]?.turn ?? "";
const folded = (events: readonly Event[]) => foldAll(turnId(events), "c", events);

const whole = {
  answer: scripts.answer,
  many: scripts.many,
  permission: scripts.permission,
  slowTool: scripts.slowTool,
  badFile: scripts.badFile,
  limit: scripts.limit,
  cut: scripts.cut,
  long: scripts.long,
  chinese: scripts.chinese,
  remoteAnswer: scripts.remoteAnswer,
  brokeOff: scripts.brokeOff,
};

describe.each(Object.entries(whole))("the turn `%s`", (_name, script) => {
  it("looks the same live and replayed from the store", async () => {
    const events = await played(script);
    expect(folded(events.filter(isStored))).toEqual(folded(events));
  });

  it("takes each event once", async () => {
    const events = await played(script);
    const doubled = events.flatMap((event) => [event, event]);
    expect(folded(doubled)).toEqual(folded(events));
    expect(folded([...events, ...events])).toEqual(folded(events));
  });

  it("can be left and taken up again at any event", async () => {
    const events = await played(script);
    const wanted = folded(events);
    for (let cut = 0; cut <= events.length; cut += 7) {
      const stored = folded(events.slice(0, cut).filter(isStored));
      const rest = events.filter((event) => event.seq > stored.lastSeq);
      expect(rest.reduce(fold, cut === 0 ? newTurn(wanted.id, "c") : stored)).toEqual(wanted);
    }
  });

  it("never changes a state that was given out", async () => {
    const events = await played(script);
    const states: TurnState[] = [];
    const copies: string[] = [];
    events.reduce(
      (state, event) => {
        const next = fold(state, event);
        states.push(next);
        copies.push(JSON.stringify(next));
        return next;
      },
      newTurn(turnId(events), "c"),
    );
    expect(states.map((state) => JSON.stringify(state))).toEqual(copies);
  });

  it("settles every call and every step", async () => {
    const turn = folded(await played(script));
    expect(Object.values(turn.calls).filter((call) => call.result === null)).toEqual([]);
    expect(turn.steps.filter((step) => step.finishedAt === null)).toEqual([]);
  });

  it("has its bars within the axis, in order", async () => {
    const trace = traceOf(folded(await played(script)), Date.now());
    for (const row of trace.rows) {
      if (!("span" in row)) continue;
      expect(trace.from).toBeLessThanOrEqual(row.span.start);
      expect(row.span.start).toBeLessThanOrEqual(row.span.mid);
      expect(row.span.mid).toBeLessThanOrEqual(row.span.end);
      expect(row.span.end).toBeLessThanOrEqual(trace.to);
    }
  });
});

describe("odd streams", () => {
  const at = "2026-11-20T22:00:00Z";
  const event = (seq: number, kind: EventKind | { kind: "from_the_future"; x: number }) =>
    ({ conversation: "c", turn: "t", seq, at, ...kind }) as Event;
  const call = { id: "1", tool: "notes__read_note", arguments: {} };
  const result = { call: "1", tool: "notes__read_note", outcome: "succeeded" as const, content: [], sources: [] };

  it("passes over kinds that it does not know", () => {
    const turn = fold(newTurn("t", "c"), event(0, { kind: "from_the_future", x: 1 }));
    expect(turn).toEqual({ ...newTurn("t", "c"), lastSeq: 0 });
  });

  it("passes over events of other turns", () => {
    const turn = newTurn("other", "c");
    expect(fold(turn, event(0, { kind: "text_delta", text: "x" }))).toBe(turn);
  });

  it("shows text without a step, and a result without a call", () => {
    const turn = foldAll("t", "c", [
      event(4, { kind: "text_delta", text: "x" }),
      event(5, { kind: "tool_finished", message_id: "m", result }),
    ]);
    expect(turn.steps.map((step) => step.blocks)).toEqual([
      [
        { type: "text", text: "x" },
        { type: "call", call: "1" },
      ],
    ]);
    expect(turn.calls["1"]?.status).toBe("succeeded");
  });

  it("keeps the first result of a call", () => {
    const turn = foldAll("t", "c", [
      event(0, { kind: "tool_started", call }),
      event(1, { kind: "tool_finished", message_id: "m", result }),
      event(2, { kind: "tool_finished", message_id: "m", result: { ...result, outcome: "failed" } }),
      event(3, { kind: "tool_progress", call: "1", progress: { done: 1, total: 1, message: null } }),
    ]);
    expect(turn.calls["1"]?.status).toBe("succeeded");
  });

  it("takes nothing after the end", () => {
    const turn = foldAll("t", "c", [
      event(0, { kind: "turn_finished", outcome: { type: "cancelled" } }),
      event(1, { kind: "text_delta", text: "late" }),
    ]);
    expect(turn.steps).toEqual([]);
  });

  it("a call that was being written when the turn ended did not happen", () => {
    const turn = foldAll("t", "c", [
      event(0, { kind: "step_started", step: 0, tools: [] }),
      event(1, { kind: "tool_call_delta", call: "1", tool: "x", arguments: "{" }),
      event(2, {
        kind: "step_finished",
        step: 0,
        message_id: "m",
        message: { parts: [], model: null, incomplete: true },
        finish: "cancelled",
        stats: {
          usage: { prompt_tokens: 1, reused_tokens: 0, generated_tokens: 0, prompt_ms: null, generation_ms: null },
          first_delta_ms: null,
          total_ms: 1,
        },
      }),
    ]);
    expect(turn.calls).toEqual({});
    expect(turn.steps[0]?.blocks).toEqual([]);
  });

  it("tells holes from repeats", () => {
    const turn = fold(newTurn("t", "c"), event(0, { kind: "text_delta", text: "x" }));
    expect(arrival(turn, event(1, { kind: "text_delta", text: "" }))).toBe("next");
    expect(arrival(turn, event(0, { kind: "text_delta", text: "" }))).toBe("old");
    expect(arrival(turn, event(3, { kind: "text_delta", text: "" }))).toBe("gap");
  });

  it("always says what it waits for", () => {
    let turn = newTurn("t", "c");
    const said: string[] = [];
    const tell = (kind: EventKind) => {
      turn = fold(turn, event(turn.lastSeq + 1, kind));
      said.push(waitingFor(turn).for);
    };
    tell({ kind: "turn_started", message_id: "u", message: { parts: [] }, model: "m" });
    tell({ kind: "step_started", step: 0, tools: [] });
    tell({ kind: "model_loading", fraction: 0.5 });
    tell({ kind: "prompt_progress", done: 10, total: 20, reused: 0 });
    tell({ kind: "prompt_progress", done: 20, total: 20, reused: 0 });
    tell({ kind: "text_delta", text: "x" });
    tell({ kind: "permission_requested", call, choices: ["once"] });
    tell({ kind: "permission_answered", call: "1", answer: { answer: "allow", grant: "once" } });
    expect(said).toEqual(["first_word", "first_word", "model", "prompt", "first_word", "writing", "you", "writing"]);
  });
});

describe("stored conversations", () => {
  const summary = { id: "c", title: "", created_at: "", updated_at: "", running: false };

  it("draws messages that have no events", () => {
    const at = "2026-11-20T22:00:00Z";
    const turns = turnsOf({
      summary,
      turns: [],
      earlier: 0,
      messages: [
        { id: "1", turn: "t", at, message: { role: "user", parts: [{ type: "text", text: "hello" }] } },
        {
          id: "2",
          turn: "t",
          at,
          message: {
            role: "assistant",
            parts: [
              { type: "text", text: "hi" },
              { type: "tool_call", id: "k", tool: "x", arguments: {} },
            ],
            model: null,
            incomplete: false,
          },
        },
        {
          id: "3",
          turn: "t",
          at,
          message: { role: "tool", call: "k", tool: "x", outcome: "failed", content: [], sources: [] },
        },
      ],
    });
    expect(turns).toHaveLength(1);
    expect(turns[0]?.steps[0]?.blocks.map((block) => block.type)).toEqual(["text", "call"]);
    expect(turns[0]?.calls["k"]?.status).toBe("failed");
    expect(turns[0]?.outcome).toEqual({ type: "completed" });
  });

  it("says of a turn without an end that the app was closed", async () => {
    const events = (await played(scripts.answer)).slice(0, -1);
    const view = { summary, messages: [], earlier: 0, turns: [{ id: turnId(events), events }] };
    expect(turnsOf(view)[0]?.outcome).toMatchObject({ type: "failed", error: { code: { type: "interrupted" } } });
    expect(turnsOf({ ...view, summary: { ...summary, running: true } })[0]?.outcome).toBeNull();
  });
});
