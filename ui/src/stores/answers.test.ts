import { expect, it } from "vitest";
import type { GenerationView, Problem, SettingView } from "../bindings/app";
import type { Host } from "../host/host";
import { Answers } from "./answers.svelte";

const setting = (key: SettingView["key"], value: unknown, set_here: boolean): SettingView => ({
  key,
  kind: { type: "number", min: 0, max: 2, step: 0.1, whole: false },
  value,
  origin: { type: set_here ? "conversation" : "usual" },
  otherwise: 0.7,
  set_here,
  per_conversation: true,
  reloads: false,
});
const view = (settings: SettingView[], conversation: string | null = "c1"): GenerationView => ({
  model: "starter",
  conversation,
  settings,
  presets: [],
  drafts: [],
  projectors: [],
  problems: [],
});
const refusal: Problem = { code: "bad_setting", message: "too warm", hint: null, detail: null };

it("a refused change leaves what holds, and its reason until the next good one", async () => {
  let good = false;
  const host = {
    generation: async () => view([setting("temperature", 0.7, false)]),
    setConversationGeneration: async () => {
      if (!good) throw refusal;
      return view([setting("temperature", 1, true)]);
    },
  };
  const answers = new Answers(host as unknown as Host, { of: "conversation", conversation: "c1" });
  await answers.load();
  await answers.set("temperature", 9);
  expect(answers.refused.get("temperature")).toEqual(refusal);
  expect(answers.view.value?.settings[0]?.value).toBe(0.7);
  good = true;
  await answers.set("temperature", 1);
  expect(answers.refused.size).toBe(0);
  await Promise.resolve();
  expect(answers.view.value?.settings[0]?.value).toBe(1);
});

it("the first setting begins the conversation, and its id is told", async () => {
  const asked: (string | null)[] = [];
  const host = {
    setConversationGeneration: async (conversation: string | null) => {
      asked.push(conversation);
      return view([], "c9");
    },
  };
  const begun: string[] = [];
  const answers = new Answers(host as unknown as Host, { of: "conversation", conversation: null }, (id) =>
    begun.push(id),
  );
  await answers.set("gate", true);
  expect(asked).toEqual([null]);
  expect(begun).toEqual(["c9"]);
});

it("a preset takes over what was set, in one change", async () => {
  const calls: unknown[] = [];
  const host = {
    generation: async () => view([setting("preset", null, false), setting("temperature", 0.2, true)]),
    savePreset: async (name: string, settings: unknown) => calls.push([name, settings]),
    setConversationGeneration: async (_: string, changes: unknown) => {
      calls.push(changes);
      return view([]);
    },
  };
  const answers = new Answers(host as unknown as Host, { of: "conversation", conversation: "c1" });
  await answers.load();
  await answers.keepPreset("Careful");
  expect(calls).toEqual([["Careful", { temperature: 0.2 }], { temperature: null, preset: "Careful" }]);
});
