import { beforeEach, describe, expect, it, vi } from "vitest";
import type { ConversationView, SendReceipt, SendRequest } from "../bindings/app";
import type { Event, EventKind } from "../bindings/core";
import type { Host, OnEvents } from "../host/host";
import { Desk } from "./desk.svelte";
import { NEW, Talks } from "./talks.svelte";

const at = "2026-11-20T22:00:00Z";
const event = (seq: number, kind: EventKind, turn = "t", conversation = "c"): Event => ({
  conversation,
  turn,
  seq,
  at,
  ...kind,
});
const started: EventKind = {
  kind: "turn_started",
  message_id: "u",
  message: { parts: [{ type: "text", text: "hello" }] },
  model: "m",
};
const stepStarted: EventKind = { kind: "step_started", step: 0, tools: [] };
const delta = (text: string): EventKind => ({ kind: "text_delta", text });
const finished: EventKind = { kind: "turn_finished", outcome: { type: "completed" } };

/** A host whose answers the test gives. */
class Scripted {
  sent: SendRequest[] = [];
  streams: OnEvents[] = [];
  attached: { turn: string; afterSeq: number; onEvents: OnEvents }[] = [];
  cancelled: string[] = [];
  view: ConversationView | null = null;
  receipt: (receipt: SendReceipt) => void = () => {};
  refuse: (problem: unknown) => void = () => {};

  host(): Host {
    return {
      send: (request: SendRequest, onEvents: OnEvents) => {
        this.sent.push(request);
        this.streams.push(onEvents);
        return new Promise<SendReceipt>((resolve, reject) => {
          this.receipt = resolve;
          this.refuse = reject;
        });
      },
      attachTurn: (turn: string, afterSeq: number, onEvents: OnEvents) => {
        this.attached.push({ turn, afterSeq, onEvents });
        return Promise.resolve();
      },
      cancelTurn: (turn: string) => {
        this.cancelled.push(turn);
        return Promise.resolve();
      },
      conversation: () => (this.view ? Promise.resolve(this.view) : Promise.reject({ code: "x", message: "gone" })),
    } as unknown as Host;
  }

  /** Through the stream of the last `send`. */
  push(...events: Event[]): void {
    this.streams.at(-1)?.(events);
  }
}

let scripted: Scripted;
let talks: Talks;
const settled = () => new Promise((resolve) => setTimeout(resolve));
const text = (id: string) =>
  talks
    .get(id)
    .turns.flatMap((turn) => turn.steps.flatMap((step) => step.blocks))
    .map((block) => (block.type === "text" ? block.text : ""))
    .join("|");

beforeEach(() => {
  scripted = new Scripted();
  const host = scripted.host();
  talks = new Talks(host, new Desk(host));
});

describe("sending", () => {
  it("shows the message at once, and once only", async () => {
    void talks.send(NEW, "hello");
    expect(talks.outgoing(NEW)?.text).toBe("hello");
    scripted.push(event(0, started));
    scripted.receipt({ conversation: "c", turn: "t" });
    await settled();
    expect(talks.outgoing(NEW)).toBeNull();
    expect(talks.outgoing("c")).toBeNull();
    expect(talks.get("c").turns).toHaveLength(1);
  });

  it("takes a receipt that comes before the first event", async () => {
    const begun = vi.fn();
    talks.onBegun = begun;
    void talks.send(NEW, "hello");
    scripted.receipt({ conversation: "c", turn: "t" });
    await settled();
    expect(begun).toHaveBeenCalledWith("c");
    expect(talks.outgoing("c")?.text).toBe("hello");
    expect(talks.busy("c")).toBe(true);
    scripted.push(event(0, started));
    expect(talks.outgoing("c")).toBeNull();
  });

  it("queues while a turn runs, and sends when it is over", async () => {
    void talks.send("c", "hello");
    scripted.push(event(0, started));
    void talks.send("c", "next");
    void talks.send("c", "and this");
    expect(talks.queued("c").map(({ text }) => text)).toEqual(["next\n\nand this"]);
    expect(scripted.sent).toHaveLength(1);
    scripted.push(event(1, finished));
    expect(scripted.sent.map((request) => request.text)).toEqual(["hello", "next\n\nand this"]);
    expect(talks.queued("c")).toEqual([]);
  });

  it("keeps what could not be sent", async () => {
    void talks.send("c", "hello");
    scripted.refuse({ code: "store", message: "disk is full", hint: null, detail: null });
    await settled();
    expect(talks.outgoing("c")?.problem?.message).toBe("disk is full");
    expect(talks.busy("c")).toBe(false);
    expect(talks.dropOutgoing("c").text).toBe("hello");
  });

  it("stops a turn that has no id yet as soon as it has one", async () => {
    void talks.send(NEW, "hello");
    await talks.stop(NEW);
    expect(scripted.cancelled).toEqual([]);
    scripted.receipt({ conversation: "c", turn: "t" });
    await settled();
    expect(scripted.cancelled).toEqual(["t"]);
  });
});

describe("streams", () => {
  beforeEach(() => {
    void talks.send("c", "hello");
    scripted.push(event(0, started), event(1, stepStarted), event(2, delta("a")));
  });

  it("takes repeated events once", () => {
    scripted.push(event(1, stepStarted), event(2, delta("a")), event(3, delta("b")));
    expect(text("c")).toBe("ab");
  });

  it("fetches what is missing and drops what comes by the old stream", () => {
    scripted.push(event(5, delta("d")), event(6, delta("e")));
    expect(scripted.attached.map(({ turn, afterSeq }) => [turn, afterSeq])).toEqual([["t", 2]]);
    expect(text("c")).toBe("a");
    scripted.push(event(7, delta("late")));
    scripted.attached[0]?.onEvents([event(3, delta("b")), event(4, delta("c")), event(5, delta("d"))]);
    expect(text("c")).toBe("abcd");
    scripted.attached[0]?.onEvents([event(6, delta("e"))]);
    expect(text("c")).toBe("abcde");
  });

  it("goes on when what is missing can't be had", () => {
    scripted.push(event(5, delta("d")));
    scripted.attached[0]?.onEvents([event(5, delta("d")), event(6, finished)]);
    expect(text("c")).toBe("ad");
    expect(talks.busy("c")).toBe(false);
    expect(scripted.attached).toHaveLength(1);
  });
});

describe("opening", () => {
  const summary = { id: "c", title: "", created_at: at, updated_at: at, running: true };

  it("follows a turn that runs, from where its stored events end", async () => {
    scripted.view = {
      summary,
      messages: [],
      earlier: 0,
      turns: [{ id: "t", events: [event(0, started), event(1, stepStarted)] }],
    };
    await talks.open("c");
    expect(scripted.attached.map(({ turn, afterSeq }) => [turn, afterSeq])).toEqual([["t", 1]]);
    scripted.attached[0]?.onEvents([event(2, delta("a")), event(3, delta("b"))]);
    expect(text("c")).toBe("ab");
  });

  it("does not follow twice what it follows already", async () => {
    void talks.send(NEW, "hello");
    scripted.push(event(0, started));
    scripted.view = { summary, messages: [], earlier: 0, turns: [{ id: "t", events: [event(0, started)] }] };
    await talks.reload("c");
    scripted.push(event(1, stepStarted), event(2, delta("a")));
    expect(scripted.attached).toEqual([]);
    expect(text("c")).toBe("a");
  });

  it("says why a conversation can't be opened", async () => {
    await talks.open("c");
    expect(talks.get("c").problem?.message).toBe("gone");
  });
});

describe("a long conversation", () => {
  const view = (turns: readonly string[], earlier: number): ConversationView => ({
    summary: { id: "c", title: "", created_at: at, updated_at: at, running: false },
    messages: turns.map((turn) => ({
      id: `m-${turn}`,
      turn,
      at,
      message: { role: "user", parts: [{ type: "text", text: turn }] },
    })),
    earlier,
    turns: [],
  });
  const ids = () => talks.get("c").turns.map((turn) => turn.id);

  it("is read from its end, page by page, and stays so when it is read again", async () => {
    scripted.view = view(["t3", "t4"], 2);
    await talks.open("c");
    expect(talks.get("c").earlier).toBe(2);
    scripted.view = view(["t1", "t2"], 0);
    expect(await talks.readEarlier("c")).toBe(true);
    expect(ids()).toEqual(["t1", "t2", "t3", "t4"]);
    expect(await talks.readEarlier("c")).toBe(false);
    scripted.view = view(["t3", "t4", "t5"], 2);
    await talks.reload("c");
    expect(ids()).toEqual(["t1", "t2", "t3", "t4", "t5"]);
    expect(talks.get("c").earlier).toBe(0);
  });

  it("keeps what is shown when earlier turns cannot be read", async () => {
    scripted.view = view(["t3"], 2);
    await talks.open("c");
    scripted.view = null;
    expect(await talks.readEarlier("c")).toBe(false);
    expect(ids()).toEqual(["t3"]);
    expect(talks.get("c").problem?.message).toBe("gone");
    scripted.view = view(["t1", "t2"], 0);
    expect(await talks.readEarlier("c")).toBe(true);
    expect(ids()).toEqual(["t1", "t2", "t3"]);
  });
});
