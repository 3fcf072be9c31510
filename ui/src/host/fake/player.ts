// Runs a script as a turn: numbers its events, keeps them, and hands them on in batches.
import type { EventKind, Event, Part, PermissionAnswer, Question, QuestionAnswer, ToolCall } from "../../bindings/core";
import type { OnEvents } from "../host";
import { MODEL, nextId, Stopped, type Script, type Stage } from "./script";

/** `live`: in its own time; `instant`: at once, with made-up times; for history. */
export type Pace = "live" | "instant";

export class Player {
  readonly id = nextId("turn");
  readonly events: Event[] = [];
  done = false;
  #listeners = new Set<OnEvents>();
  #pending: Event[] = [];
  #flush: ReturnType<typeof setTimeout> | null = null;
  #clock: number;
  #stop: () => void = () => {};
  readonly #stopped: Promise<void>;
  #isStopped = false;
  #answers = new Map<string, (answer: PermissionAnswer) => void>();
  #replies = new Map<string, (answer: QuestionAnswer) => void>();

  /** Who answers. */
  model = MODEL;

  constructor(
    readonly conversation: string,
    readonly text: string,
    private readonly pace: Pace,
    startsAt: number,
    private readonly speed = 1,
    private readonly parts: Part[] = [{ type: "text", text }],
  ) {
    this.#clock = startsAt;
    this.#stopped = new Promise((resolve) => {
      this.#stop = () => {
        this.#isStopped = true;
        resolve();
      };
    });
  }

  /** Hands on what comes after `afterSeq`, now and later. */
  attach(afterSeq: number, onEvents: OnEvents): void {
    const missed = this.events.filter((event) => event.seq > afterSeq);
    if (missed.length > 0) setTimeout(() => onEvents(missed));
    setTimeout(() => this.#listeners.add(onEvents));
  }

  listen(onEvents: OnEvents): void {
    this.#listeners.add(onEvents);
  }

  stop(): void {
    this.#stop();
  }

  answer(call: string, answer: PermissionAnswer): void {
    this.#answers.get(call)?.(answer);
    this.#answers.delete(call);
  }

  reply(question: string, answer: QuestionAnswer): void {
    this.#replies.get(question)?.(answer);
    this.#replies.delete(question);
  }

  async play(script: Script): Promise<void> {
    this.#emit({
      kind: "turn_started",
      message_id: nextId("message"),
      message: { parts: this.parts },
      model: this.model,
    });
    try {
      const outcome = await script(this.#stage());
      this.#emit({ kind: "turn_finished", outcome });
    } catch (error) {
      if (!(error instanceof Stopped)) throw error;
      this.#settleOpenStep();
      this.#emit({ kind: "turn_finished", outcome: { type: "cancelled" } });
    }
    this.done = true;
    this.#send();
  }

  #stage(): Stage {
    return {
      text: this.text,
      emit: (kind) => {
        if (this.#isStopped) throw new Stopped();
        this.#emit(kind);
      },
      wait: (ms) => this.#wait(ms),
      ask: (call) => this.#ask(call),
      question: (call, question) => this.#question(call, question),
      forever: async () => {
        await this.#stopped;
        throw new Stopped();
      },
    };
  }

  async #wait(ms: number): Promise<void> {
    if (this.pace === "instant") {
      this.#clock += ms;
      return;
    }
    let timer: ReturnType<typeof setTimeout> | undefined;
    const passed = new Promise<void>((resolve) => (timer = setTimeout(resolve, ms * this.speed)));
    await Promise.race([passed, this.#stopped]);
    clearTimeout(timer);
    if (this.#isStopped) throw new Stopped();
  }

  async #ask(call: ToolCall): Promise<PermissionAnswer> {
    this.#emit({ kind: "permission_requested", call, choices: ["once", "conversation", "always"] });
    if (this.pace === "instant") {
      const answer: PermissionAnswer = { answer: "allow", grant: "once" };
      this.#clock += 2400;
      this.#emit({ kind: "permission_answered", call: call.id, answer });
      return answer;
    }
    const answered = new Promise<PermissionAnswer>((resolve) => this.#answers.set(call.id, resolve));
    const answer = await Promise.race([answered, this.#stopped]);
    if (answer === undefined) throw new Stopped();
    this.#emit({ kind: "permission_answered", call: call.id, answer });
    return answer;
  }

  async #question(call: ToolCall, question: Question): Promise<{ id: string; answer: QuestionAnswer }> {
    const id = nextId("question");
    this.#emit({ kind: "question_asked", call: call.id, question_id: id, server: "everything", question });
    const given: Promise<QuestionAnswer> =
      this.pace === "instant"
        ? Promise.resolve({ answer: "declined" })
        : new Promise((resolve) => this.#replies.set(id, resolve));
    const answer = await Promise.race([given, this.#stopped]);
    this.#emit({
      kind: "question_answered",
      call: call.id,
      question_id: id,
      answer: answer ?? { answer: "cancelled" },
    });
    if (answer === undefined) throw new Stopped();
    return { id, answer };
  }

  /** A stopped step keeps what it wrote; calls without a result get one. */
  #settleOpenStep(): void {
    const last = this.events.findLast((event) => event.kind === "step_started" || event.kind === "step_finished");
    if (last?.kind === "step_started") {
      const since = this.events.slice(this.events.indexOf(last));
      const text = since.map((event) => (event.kind === "text_delta" ? event.text : "")).join("");
      this.#emit({
        kind: "step_finished",
        step: last.step,
        message_id: nextId("message"),
        message: { parts: text ? [{ type: "text", text }] : [], model: this.model, incomplete: true },
        finish: "cancelled",
        stats: {
          usage: { prompt_tokens: 0, reused_tokens: 0, generated_tokens: 0, prompt_ms: null, generation_ms: null },
          first_delta_ms: null,
          total_ms: 0,
        },
      });
    } else if (last?.kind === "step_finished") {
      const settled = new Set(
        this.events.flatMap((event) => (event.kind === "tool_finished" ? [event.result.call] : [])),
      );
      for (const part of last.message.parts) {
        if (part.type !== "tool_call" || settled.has(part.id)) continue;
        const content = [{ type: "text" as const, text: "stopped by the user" }];
        const result = { call: part.id, tool: part.tool, outcome: "cancelled" as const, content, sources: [] };
        this.#emit({ kind: "tool_finished", message_id: nextId("message"), result });
      }
    }
  }

  #emit(kind: EventKind): void {
    const at = new Date(this.pace === "instant" ? this.#clock : Date.now()).toISOString();
    const event: Event = { conversation: this.conversation, turn: this.id, seq: this.events.length, at, ...kind };
    this.events.push(event);
    this.#pending.push(event);
    this.#flush ??= setTimeout(() => this.#send(), 33);
  }

  #send(): void {
    if (this.#flush) clearTimeout(this.#flush);
    this.#flush = null;
    const batch = this.#pending;
    this.#pending = [];
    if (batch.length > 0) for (const listener of this.#listeners) listener(batch);
  }
}
