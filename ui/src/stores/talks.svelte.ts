// The conversations that were opened: their turns, what is being sent, what waits to be sent.
// Invariant: turns change only by folding events; each event is folded once, in order.
import { SvelteMap } from "svelte/reactivity";
import type { Problem } from "../bindings/app";
import type { Event, PermissionAnswer } from "../bindings/core";
import { turnsOf } from "../fold/conversation";
import { fold } from "../fold/fold";
import { arrival, isOver, newTurn, type TurnState } from "../fold/turn";
import type { Host } from "../host/host";
import { EMPTY as NO_DRAFT, joined, requestOf, saysSomething, textDraft, type Draft } from "../text/draft";
import { Choice } from "./choice.svelte";
import { problemOf, type Desk } from "./desk.svelte";

export interface Talk {
  /** The last ones, and those before them that were asked for. */
  readonly turns: readonly TurnState[];
  /** How many turns stand before them. */
  readonly earlier: number;
  /** The message that they begin with. */
  readonly first: string | null;
  readonly loading: boolean;
  readonly problem: Problem | null;
}

/** A message on its way: not yet in a turn. */
export interface Outgoing extends Draft {
  readonly problem: Problem | null;
}

/** Stands for the conversation that has no id yet. */
export const NEW = "";
/** A host that leaves numbers out on purpose must not be asked again at each of them. */
const MOST_HOLES = 3;
const EMPTY: Talk = { turns: [], earlier: 0, first: null, loading: false, problem: null };

export class Talks {
  /** Called when a new conversation has got its id. */
  onBegun: (id: string) => void = () => {};
  readonly choice: Choice;
  #talks = new SvelteMap<string, Talk>();
  #outgoing = new SvelteMap<string, Outgoing>();
  #queued = new SvelteMap<string, readonly Draft[]>();
  /** The stream that counts for a turn; events of older streams are dropped. */
  #streams = new Map<string, number>();
  #nextStream = 1;
  #holesFilled = new Map<string, number>();
  /** What was sent by this window, by the turn that it began: a message alone does not say whose its resources are. */
  #sent = new Map<string, Draft>();
  #stopAsSoonAsKnown = new Set<string>();

  constructor(
    private readonly host: Host,
    private readonly desk: Desk,
  ) {
    this.choice = new Choice(host, desk);
  }

  get(id: string): Talk {
    return this.#talks.get(id) ?? EMPTY;
  }

  outgoing(id: string): Outgoing | null {
    return this.#outgoing.get(id) ?? null;
  }

  /** What is sent when this turn is over, one message after the other. */
  queued(id: string): readonly Draft[] {
    return this.#queued.get(id) ?? [];
  }

  running(id: string): TurnState | null {
    const last = this.get(id).turns.at(-1);
    return last && !isOver(last) ? last : null;
  }

  busy(id: string): boolean {
    return this.running(id) !== null || (this.outgoing(id) !== null && this.outgoing(id)?.problem === null);
  }

  async open(id: string): Promise<void> {
    if (id === NEW || this.#talks.has(id)) return;
    this.#talks.set(id, { ...EMPTY, loading: true });
    await this.#load(id);
  }

  async reload(id: string): Promise<void> {
    this.#talks.set(id, { ...this.get(id), loading: true, problem: null });
    await this.#load(id);
  }

  async #load(id: string): Promise<void> {
    try {
      const view = await this.host.conversation(id);
      this.choice.learn(id, view.model ?? null);
      const known = this.get(id);
      const stored = turnsOf(view);
      // What came live in the meantime is at least as new, and what was read of earlier turns stays before them.
      const at = known.turns.findIndex((turn) => turn.id === stored[0]?.id);
      const before = known.turns.slice(0, Math.max(at, 0));
      const live = new Map(known.turns.slice(before.length).map((turn) => [turn.id, turn]));
      const turns = stored.map((turn) => {
        const known = live.get(turn.id);
        live.delete(turn.id);
        return known && known.lastSeq >= turn.lastSeq ? known : turn;
      });
      const place = before.length > 0 ? known : { earlier: view.earlier, first: view.messages[0]?.id ?? null };
      const { earlier, first } = place;
      this.#talks.set(id, {
        turns: [...before, ...turns, ...live.values()],
        earlier,
        first,
        loading: false,
        problem: null,
      });
      const running = this.running(id);
      if (running && !this.#streams.has(running.id)) await this.#attach(running);
    } catch (error) {
      this.#talks.set(id, { ...this.get(id), loading: false, problem: problemOf(error) });
    }
  }

  /** Reads the turns that stand before those that are shown. True when there are more now. */
  async readEarlier(id: string): Promise<boolean> {
    const { earlier, first, loading } = this.get(id);
    if (earlier === 0 || first === null || loading) return false;
    this.#talks.set(id, { ...this.get(id), loading: true });
    try {
      const view = await this.host.conversation(id, first);
      const now = this.get(id);
      const shown = new Set(now.turns.map((turn) => turn.id));
      const before = turnsOf(view).filter((turn) => !shown.has(turn.id));
      this.#talks.set(id, {
        turns: [...before, ...now.turns],
        earlier: view.earlier,
        first: view.messages[0]?.id ?? null,
        loading: false,
        problem: null,
      });
      return before.length > 0;
    } catch (error) {
      this.#talks.set(id, { ...this.get(id), loading: false, problem: problemOf(error) });
      return false;
    }
  }

  /** Sends, or queues while a turn runs. */
  async send(id: string, message: string | Draft): Promise<void> {
    const given = typeof message === "string" ? textDraft(message) : message;
    const draft = { ...given, text: given.text.trim() };
    if (!saysSomething(draft)) return;
    if (this.busy(id)) {
      // What was chosen for the next message goes with it into the queue.
      const model = draft.model ?? (this.choice.of(id).scope === "message" ? this.choice.take(id) : undefined);
      this.#queue(id, { ...draft, ...(model === undefined ? {} : { model }) });
      return;
    }
    const { model: own, ...said } = draft;
    const model = own ?? this.choice.take(id);
    this.#outgoing.set(id, { ...said, ...(model === undefined ? {} : { model }), problem: null });
    const stream = this.#nextStream++;
    try {
      const request = { ...requestOf(id === NEW ? null : id, said), ...(model === undefined ? {} : { model }) };
      const receipt = await this.host.send(request, (events) => this.#receive(events, stream));
      // Tried again, it is answered by whoever is chosen then.
      this.#sent.set(receipt.turn, said);
      if (id === NEW) this.#begun(receipt.conversation);
      // A new conversation has got its id by now.
      const stop = this.#stopAsSoonAsKnown.delete(id) || this.#stopAsSoonAsKnown.delete(receipt.conversation);
      if (stop) await this.host.cancelTurn(receipt.turn);
    } catch (error) {
      this.#stopAsSoonAsKnown.delete(id);
      this.#outgoing.set(id, { ...said, ...(model === undefined ? {} : { model }), problem: problemOf(error) });
    }
  }

  /** Several messages become one, where one can say it all. */
  #queue(id: string, draft: Draft): void {
    const before = [...this.queued(id)];
    const last = before.pop();
    const both = last ? joined(last, draft) : draft;
    this.#queued.set(id, both ? [...before, both] : [...this.queued(id), draft]);
  }

  /** The message of a turn as it was written; none when another start of the app sent it. */
  sentAs(turn: string): Draft | null {
    return this.#sent.get(turn) ?? null;
  }

  /** Takes back a message that could not be sent. */
  dropOutgoing(id: string): Draft {
    const { text, prompt, taken, enclosed, model } = this.#outgoing.get(id) ?? NO_DRAFT;
    this.#outgoing.delete(id);
    if (model !== undefined) this.choice.putBack(id, model);
    return { text, prompt, taken, enclosed };
  }

  /** Takes back the message that would be sent next. */
  dropQueued(id: string): Draft {
    const [first = NO_DRAFT, ...others] = this.queued(id);
    this.#setQueued(id, others);
    const { model, ...draft } = first;
    if (model !== undefined) this.choice.putBack(id, model);
    return draft;
  }

  #setQueued(id: string, drafts: readonly Draft[]): void {
    if (drafts.length === 0) this.#queued.delete(id);
    else this.#queued.set(id, drafts);
  }

  async stop(id: string): Promise<void> {
    const turn = this.running(id);
    if (turn) await this.host.cancelTurn(turn.id);
    else if (this.busy(id)) this.#stopAsSoonAsKnown.add(id);
  }

  async answer(turn: TurnState, call: string, answer: PermissionAnswer): Promise<void> {
    await this.host.answerPermission(turn.id, call, answer);
  }

  forget(id: string): void {
    this.#talks.delete(id);
    this.#queued.delete(id);
    this.#outgoing.delete(id);
  }

  #begun(id: string): void {
    const outgoing = this.#outgoing.get(NEW);
    if (outgoing) {
      this.#outgoing.delete(NEW);
      const started = this.get(id).turns.some((turn) => turn.user !== null);
      if (!started) this.#outgoing.set(id, outgoing);
    }
    const queued = this.queued(NEW);
    this.#setQueued(NEW, []);
    if (queued.length > 0) this.#setQueued(id, queued);
    if (!this.#talks.has(id)) this.#talks.set(id, EMPTY);
    if (this.#stopAsSoonAsKnown.delete(NEW)) this.#stopAsSoonAsKnown.add(id);
    void this.choice.begun(id).catch(() => {});
    this.onBegun(id);
    this.#afterTurn(id);
  }

  async #attach(turn: TurnState): Promise<void> {
    const stream = this.#nextStream++;
    this.#streams.set(turn.id, stream);
    await this.host.attachTurn(turn.id, turn.lastSeq, (events) => this.#receive(events, stream));
  }

  #receive(events: Event[], stream: number): void {
    const touched = new Map<string, readonly TurnState[]>();
    for (const event of events) {
      if ((this.#streams.get(event.turn) ?? 0) > stream) continue;
      this.#streams.set(event.turn, stream);
      const turns = touched.get(event.conversation) ?? this.get(event.conversation).turns;
      const known = turns.find((turn) => turn.id === event.turn);
      const turn = known ?? newTurn(event.turn, event.conversation);
      if (arrival(turn, event) === "gap" && this.#fillHole(turn)) continue;
      const next = fold(turn, event);
      touched.set(
        event.conversation,
        known ? turns.map((other) => (other.id === next.id ? next : other)) : [...turns, next],
      );
    }
    for (const [id, turns] of touched) this.#settle(id, turns);
  }

  /** Asks for what was lost after `lastSeq`; where nothing is to be had, or too often, the hole is accepted. */
  #fillHole(turn: TurnState): boolean {
    const place = `${turn.id}:${turn.lastSeq}`;
    const tries = this.#holesFilled.get(turn.id) ?? 0;
    if (tries >= MOST_HOLES || this.#holesFilled.has(place)) return false;
    this.#holesFilled.set(place, 1).set(turn.id, tries + 1);
    this.#attach(turn).catch(() => this.#streams.delete(turn.id));
    return true;
  }

  #settle(id: string, turns: readonly TurnState[]): void {
    this.#talks.set(id, { ...this.get(id), turns });
    const last = turns.at(-1);
    if (!last) return;
    if (last.user !== null && last.lastSeq >= 0) {
      const outgoing = this.#outgoing.get(id);
      if (outgoing && outgoing.problem === null) this.#outgoing.delete(id);
    }
    const running = !isOver(last);
    if (this.desk.summary(id) && this.desk.summary(id)?.running !== running) {
      this.desk.patchSummary(id, { running });
    }
    if (!running) this.#afterTurn(id);
  }

  #afterTurn(id: string): void {
    const [next, ...others] = this.queued(id);
    if (next === undefined || this.busy(id)) return;
    this.#setQueued(id, others);
    void this.send(id, next);
  }
}
