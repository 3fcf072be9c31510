// How a model answers, in general or in one conversation: what holds, and what the user changes of it.
// Invariant: what is shown is what the app says; a change that it refuses leaves its reason beside the setting.
import { SvelteMap } from "svelte/reactivity";
import type { GenerationView, Problem, SettingKey } from "../bindings/app";
import type { SettingChanges } from "../host/generation";
import type { Host } from "../host/host";
import { keepable } from "../text/settings";
import { problemOf } from "./desk.svelte";
import { Loaded } from "./loaded.svelte";

export type Subject =
  | { readonly of: "model"; readonly model: string }
  | { readonly of: "conversation"; readonly conversation: string | null };

export class Answers {
  readonly view = new Loaded<GenerationView>();
  /** Why the last change of a setting was not taken. */
  readonly refused = new SvelteMap<SettingKey, Problem>();
  /** Why a preset, or all at once, could not be changed. */
  problem = $state.raw<Problem | null>(null);

  constructor(
    private readonly host: Host,
    readonly subject: Subject,
    /** A conversation was begun, so that it can have settings. */
    private readonly onBegun: (conversation: string) => void = () => {},
  ) {}

  load(): Promise<void> {
    const { subject } = this;
    return this.view.load(() =>
      subject.of === "model"
        ? this.host.generation(subject.model, null)
        : this.host.generation(null, subject.conversation),
    );
  }

  async set(key: SettingKey, value: unknown): Promise<void> {
    try {
      this.#show(await this.#write({ [key]: value }));
      this.refused.delete(key);
    } catch (error) {
      this.refused.set(key, problemOf(error));
    }
  }

  async resetAll(): Promise<void> {
    const { subject } = this;
    await this.#attempt(async () => {
      if (subject.of === "model") this.#show(await this.host.resetModelGeneration(subject.model));
      else if (subject.conversation !== null) {
        this.#show(await this.host.resetConversationGeneration(subject.conversation));
      }
      this.refused.clear();
    });
  }

  /** Keeps what is set here under a name, and uses it. */
  async keepPreset(name: string): Promise<void> {
    const settings = keepable(this.view.value?.settings ?? []);
    await this.#attempt(async () => {
      await this.host.savePreset(name, settings);
      const cleared = Object.fromEntries(Object.keys(settings).map((key) => [key, null]));
      this.#show(await this.#write({ ...cleared, preset: name }));
    });
  }

  async deletePreset(name: string): Promise<void> {
    await this.#attempt(async () => {
      await this.host.deletePreset(name);
      await this.load();
    });
  }

  async #write(changes: SettingChanges): Promise<GenerationView> {
    const { subject } = this;
    if (subject.of === "model") return this.host.setModelGeneration(subject.model, changes);
    return this.host.setConversationGeneration(subject.conversation, changes);
  }

  #show(view: GenerationView): void {
    void this.view.load(() => Promise.resolve(view));
    const { subject } = this;
    if (subject.of === "conversation" && subject.conversation === null && view.conversation !== null) {
      this.onBegun(view.conversation);
    }
  }

  async #attempt(action: () => Promise<void>): Promise<void> {
    this.problem = null;
    try {
      await action();
    } catch (error) {
      this.problem = problemOf(error);
    }
  }
}
