// How models answer, as the fake host has it: a few rules as the app's, kept in memory.
import type {
  GenerationView,
  PresetView,
  SettingKey,
  SettingKind,
  SettingOrigin,
  SettingView,
} from "../../bindings/app";
import type { GenerationHost, SettingChanges } from "../generation";
import { FakeProviders } from "./providerhost";
import { problem } from "./serverhost";

interface Rule {
  readonly key: SettingKey;
  readonly kind: SettingKind;
  readonly usual: unknown;
  readonly alone?: true;
  readonly reloads?: true;
}

const number = (min: number, max: number, step: number, whole = false): SettingKind => ({
  type: "number",
  min,
  max,
  step,
  whole,
});
const choice = (...choices: string[]): SettingKind => ({ type: "choice", choices });

const RULES: readonly Rule[] = [
  { key: "preset", kind: { type: "text", max_bytes: 80 }, usual: null },
  { key: "temperature", kind: number(0, 5, 0.05), usual: 0.7 },
  { key: "top_p", kind: number(0, 1, 0.01), usual: 0.95 },
  { key: "top_k", kind: number(0, 1000, 1, true), usual: 40 },
  { key: "min_p", kind: number(0, 1, 0.01), usual: 0.05 },
  { key: "repeat_penalty", kind: number(0, 2, 0.05), usual: 1 },
  { key: "frequency_penalty", kind: number(-2, 2, 0.1), usual: 0 },
  { key: "presence_penalty", kind: number(-2, 2, 0.1), usual: 0 },
  { key: "seed", kind: number(0, 4_294_967_295, 1, true), usual: null },
  { key: "max_tokens", kind: number(1, 131_072, 1, true), usual: 1024 },
  { key: "stop", kind: { type: "texts", max: 8 }, usual: [] },
  { key: "thinking", kind: { type: "flag" }, usual: null },
  { key: "thinking_budget", kind: number(0, 131_072, 64, true), usual: null },
  { key: "json_schema", kind: { type: "object" }, usual: null },
  { key: "grammar", kind: { type: "text", max_bytes: 65_536 }, usual: null },
  { key: "system", kind: { type: "text", max_bytes: 65_536 }, usual: null },
  { key: "tools", kind: choice("always", "deciding", "last_user", "relevant", "off"), usual: "always" },
  { key: "relevant_tools", kind: number(1, 64, 1, true), usual: 8 },
  { key: "gate", kind: { type: "flag" }, usual: false },
  { key: "pinned_tools", kind: { type: "texts", max: 64 }, usual: [] },
  { key: "tool_mode", kind: choice("native", "prompted", "off"), usual: "native" },
  { key: "context_length", kind: number(512, 1_048_576, 512, true), usual: 8192, alone: true, reloads: true },
  { key: "draft", kind: { type: "text", max_bytes: 4096 }, usual: null, alone: true, reloads: true },
  { key: "mtp", kind: { type: "flag" }, usual: false, alone: true, reloads: true },
  { key: "projector", kind: { type: "text", max_bytes: 4096 }, usual: null, alone: true, reloads: true },
  { key: "kv_type" as SettingKey, kind: choice("f16", "q8_0", "q4_0"), usual: "f16", alone: true, reloads: true },
];

const BUILT_IN: readonly PresetView[] = [
  { name: "precise", built_in: true, settings: { temperature: 0, top_k: 1 } },
  { name: "creative", built_in: true, settings: { temperature: 1.1, min_p: 0.1 } },
];

export class FakeGeneration extends FakeProviders implements GenerationHost {
  #models = new Map<string, SettingChanges>();
  #conversations = new Map<string, SettingChanges>();
  #presets: PresetView[] = [...BUILT_IN];

  /** What a conversation needs before it has a message; `host.ts` knows how. */
  protected begin(): string {
    return "new";
  }

  async generation(model: string | null, conversation: string | null): Promise<GenerationView> {
    const of = model ?? this.view.model;
    const inModel = this.#models.get(of) ?? {};
    const inTalk = conversation === null ? {} : (this.#conversations.get(conversation) ?? {});
    const talks = model === null;
    return {
      model: of,
      conversation,
      settings: RULES.map((rule) => this.#setting(rule, inModel, inTalk, talks)),
      presets: this.#presets,
      drafts: conversation === null ? this.#drafts(of) : [],
      projectors: [],
      problems: [],
    };
  }

  #drafts(of: string) {
    const fits = (id: string, path: string | null) => id !== of && path !== null;
    return this.view.models.flatMap(({ id, name, path }) => (fits(id, path) ? [{ name, path: path ?? "" }] : []));
  }

  #setting(rule: Rule, inModel: SettingChanges, inTalk: SettingChanges, talks: boolean): SettingView {
    const { key, kind, usual } = rule;
    const levels: [unknown, SettingOrigin][] = [[usual, { type: "usual" }]];
    const preset = (name: unknown, type: "model_preset" | "conversation_preset") => {
      const value = this.#presets.find((one) => one.name === name)?.settings[key];
      if (value !== undefined) levels.push([value, { type, name: String(name) }]);
    };
    preset(inModel.preset, "model_preset");
    if (inModel[key] !== undefined) levels.push([inModel[key], { type: "model" }]);
    const below = levels.length;
    if (talks) {
      preset(inTalk.preset, "conversation_preset");
      if (inTalk[key] !== undefined) levels.push([inTalk[key], { type: "conversation" }]);
    }
    const [value, origin] = levels.at(-1) ?? [null, { type: "usual" }];
    const here = (talks ? inTalk : inModel)[key] !== undefined;
    const otherwise = (talks ? levels[below - 1] : levels[here ? levels.length - 2 : levels.length - 1])?.[0] ?? null;
    return {
      key,
      kind,
      value,
      origin,
      otherwise,
      set_here: here,
      per_conversation: rule.alone !== true,
      reloads: rule.reloads === true,
    };
  }

  #change(all: Map<string, SettingChanges>, id: string, changes: SettingChanges): void {
    const next = { ...(all.get(id) ?? {}) };
    for (const [key, value] of Object.entries(changes) as [SettingKey, unknown][]) {
      const kind = RULES.find((rule) => rule.key === key)?.kind;
      if (value === null) delete next[key];
      else if (kind?.type === "number" && (typeof value !== "number" || value < kind.min || value > kind.max)) {
        throw problem(
          "bad_setting",
          `${key} is a number from ${kind.min} to ${kind.max}, not ${JSON.stringify(value)}`,
        );
      } else if (kind?.type === "object" && typeof value !== "object") {
        throw problem("bad_setting", `${key} is no JSON object`);
      } else next[key] = value;
    }
    all.set(id, next);
  }

  async setModelGeneration(model: string, changes: SettingChanges): Promise<GenerationView> {
    this.#change(this.#models, model, changes);
    return this.generation(model, null);
  }

  async setConversationGeneration(conversation: string | null, changes: SettingChanges): Promise<GenerationView> {
    const id = conversation ?? this.begin();
    this.#change(this.#conversations, id, changes);
    return this.generation(null, id);
  }

  async resetModelGeneration(model: string): Promise<GenerationView> {
    this.#models.delete(model);
    return this.generation(model, null);
  }

  async resetConversationGeneration(conversation: string): Promise<GenerationView> {
    this.#conversations.delete(conversation);
    return this.generation(null, conversation);
  }

  async savePreset(name: string, settings: SettingChanges): Promise<GenerationView> {
    if (BUILT_IN.some((one) => one.name === name)) throw problem("bad_preset", `\`${name}\` came with Lectern`);
    this.#presets = [...this.#presets.filter((one) => one.name !== name), { name, built_in: false, settings }];
    return this.generation(null, null);
  }

  async deletePreset(name: string): Promise<GenerationView> {
    this.#presets = this.#presets.filter((one) => one.name !== name);
    return this.generation(null, null);
  }
}
