import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { Host } from "../host/host";
import { Ahead } from "./ahead";

let told: [string | null, string][];
let named: (string | null)[];
let ahead: Ahead;

beforeEach(() => {
  vi.useFakeTimers();
  told = [];
  named = [];
  const modelWanted = (conversation: string | null, draft: string, model: string | null) => {
    told.push([conversation, draft]);
    named.push(model);
    return Promise.reject(new Error("the model can't be loaded"));
  };
  ahead = new Ahead({ modelWanted } as unknown as Host);
});
afterEach(() => {
  vi.useRealTimers();
});

it("the first key counts at once, the others when the user pauses", () => {
  for (const draft of ["W", "Wh", "Whe"]) ahead.typed("c1", draft);
  expect(told).toEqual([["c1", "W"]]);
  vi.runAllTimers();
  expect(told).toEqual([
    ["c1", "W"],
    ["c1", "Whe"],
  ]);
  ahead.typed("c1", "Where");
  expect(told.at(-1)).toEqual(["c1", "Where"]);
});

it("each word counts when it ends", () => {
  for (const draft of ["W", "Wh", "Wha", "What", "What ", "What i", "What is", "What is?"]) ahead.typed("c1", draft);
  expect(told.map(([, draft]) => draft)).toEqual(["W", "What ", "What is?"]);
  vi.runAllTimers();
  expect(told, "what was told is not told again").toHaveLength(3);
});

it("a model that was chosen for this message alone is named", () => {
  ahead.typed("c1", "W", "other");
  vi.runAllTimers();
  ahead.typed("c1", "Wh", "other");
  vi.runAllTimers();
  expect(named).toEqual(["other", "other"]);
});

it("nothing is told once the message is sent", () => {
  ahead.typed(null, "W");
  ahead.sent();
  vi.runAllTimers();
  expect(told).toEqual([[null, "W"]]);
});
