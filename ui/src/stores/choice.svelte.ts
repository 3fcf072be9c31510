// Which model answers: everywhere, in one conversation, for one message.
// Invariant: what is chosen for a message holds for that message alone.
import { SvelteMap } from "svelte/reactivity";
import type { ModelView } from "../bindings/app";
import type { Host } from "../host/host";
import type { Desk } from "./desk.svelte";

export type Scope = "all" | "conversation" | "message";

/** Stands for the conversation that has no id yet; the same as `NEW` of the talks. */
const NEW = "";

export class Choice {
  #own = new SvelteMap<string, string>();
  #next = new SvelteMap<string, string>();

  constructor(
    private readonly host: Host,
    private readonly desk: Desk,
  ) {}

  /** What the app says of a conversation. */
  learn(conversation: string, model: string | null): void {
    if (model === null) this.#own.delete(conversation);
    else this.#own.set(conversation, model);
  }

  /** By whom the next message is answered, and since when that is so. */
  of(conversation: string): { readonly model: ModelView | null; readonly scope: Scope } {
    const next = this.#find(this.#next.get(conversation));
    if (next) return { model: next, scope: "message" };
    const own = this.#find(this.#own.get(conversation));
    if (own) return { model: own, scope: "conversation" };
    return { model: this.desk.model, scope: "all" };
  }

  /** The model of the next message alone, where that is another one, and of a conversation that is not stored yet. */
  ofMessage(conversation: string): string | undefined {
    const own = conversation === NEW ? this.#own.get(NEW) : undefined;
    return this.#find(this.#next.get(conversation) ?? own)?.id;
  }

  /** Rejects with a problem; then nothing has changed. */
  async choose(conversation: string, model: string, scope: Scope): Promise<void> {
    if (scope === "all") {
      await this.host.selectModel(model);
      await this.#setOwn(conversation, null);
      this.#next.delete(conversation);
    } else if (scope === "conversation") {
      await this.#setOwn(conversation, model);
      this.#next.delete(conversation);
    } else {
      this.#next.set(conversation, model);
    }
  }

  /** The same model as everywhere, from now on. */
  async asEverywhere(conversation: string): Promise<void> {
    await this.#setOwn(conversation, null);
    this.#next.delete(conversation);
  }

  /** For the request that is sent now. */
  take(conversation: string): string | undefined {
    const next = this.#find(this.#next.get(conversation))?.id;
    this.#next.delete(conversation);
    return next ?? (conversation === NEW ? this.#find(this.#own.get(NEW))?.id : undefined);
  }

  /** A message was taken back: the next one is answered by the one that it would have been. */
  putBack(conversation: string, model: string): void {
    if (this.#own.get(conversation) !== model) this.#next.set(conversation, model);
  }

  /** The conversation has got its id. */
  async begun(conversation: string): Promise<void> {
    const own = this.#own.get(NEW);
    if (own === undefined) return;
    this.#own.delete(NEW);
    await this.#setOwn(conversation, own);
  }

  async #setOwn(conversation: string, model: string | null): Promise<void> {
    if ((this.#own.get(conversation) ?? null) === model) return;
    if (conversation !== NEW) await this.host.setConversationModel(conversation, model);
    this.learn(conversation, model);
  }

  #find(id: string | undefined): ModelView | null {
    return id === undefined ? null : (this.desk.view?.models.find((model) => model.id === id) ?? null);
  }
}
