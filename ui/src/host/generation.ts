// What the window asks of the shell about how a model answers.
import type { GenerationView, SettingKey } from "../bindings/app";

/** Each key with its new value, null to unset it. */
export type SettingChanges = Partial<Record<SettingKey, unknown>>;

/** A part of `Host`, with the same rules. What is not acceptable is refused with `bad_setting` and the reason. */
export interface GenerationHost {
  /** Of a conversation, or of a model alone. */
  generation(model: string | null, conversation: string | null): Promise<GenerationView>;
  setModelGeneration(model: string, changes: SettingChanges): Promise<GenerationView>;
  /** Null begins a conversation; its id is in the answer. */
  setConversationGeneration(conversation: string | null, changes: SettingChanges): Promise<GenerationView>;
  resetModelGeneration(model: string): Promise<GenerationView>;
  resetConversationGeneration(conversation: string): Promise<GenerationView>;
  savePreset(name: string, settings: SettingChanges): Promise<GenerationView>;
  deletePreset(name: string): Promise<GenerationView>;
}
