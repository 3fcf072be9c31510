import { beforeEach, expect, it } from "vitest";
import type { AppView, ModelView } from "../bindings/app";
import type { Host } from "../host/host";
import { Choice } from "./choice.svelte";
import { Desk } from "./desk.svelte";

let asked: unknown[][];
let refuses: boolean;
let choice: Choice;

beforeEach(() => {
  asked = [];
  refuses = false;
  const answer = (...args: unknown[]) => {
    asked.push(args);
    return refuses ? Promise.reject({ code: "x", message: "no" }) : Promise.resolve();
  };
  const host = {
    selectModel: (id: string) => answer("all", id),
    setConversationModel: (id: string, model: string | null) => answer(id, model),
  } as unknown as Host;
  const desk = new Desk(host);
  desk.view = { model: "a", models: ["a", "b", "c"].map((id) => ({ id }) as ModelView) } as AppView;
  choice = new Choice(host, desk);
});

const now = (id: string) => {
  const { model, scope } = choice.of(id);
  return [model?.id, scope];
};

it("a message goes before its conversation, which goes before everything", async () => {
  expect(now("x")).toEqual(["a", "all"]);
  await choice.choose("x", "b", "conversation");
  expect(now("x")).toEqual(["b", "conversation"]);
  expect(now("y")).toEqual(["a", "all"]);
  await choice.choose("x", "c", "message");
  expect(now("x")).toEqual(["c", "message"]);
  expect(choice.take("x")).toBe("c");
  expect(now("x")).toEqual(["b", "conversation"]);
  expect(choice.take("x")).toBeUndefined();
  expect(asked).toEqual([["x", "b"]]);
});

it("a conversation that has no id yet takes its model along", async () => {
  await choice.choose("", "b", "conversation");
  expect(asked).toEqual([]);
  expect(choice.take("")).toBe("b");
  await choice.begun("new");
  expect(asked).toEqual([["new", "b"]]);
  expect(now("new")).toEqual(["b", "conversation"]);
  expect(now("")).toEqual(["a", "all"]);
});

it("what is refused changes nothing", async () => {
  refuses = true;
  await expect(choice.choose("x", "b", "conversation")).rejects.toMatchObject({ code: "x" });
  expect(now("x")).toEqual(["a", "all"]);
});

it("choosing for everything ends what a conversation had of its own", async () => {
  choice.learn("x", "b");
  await choice.choose("x", "c", "all");
  expect(asked).toEqual([
    ["all", "c"],
    ["x", null],
  ]);
  choice.learn("x", "gone");
  expect(now("x")).toEqual(["a", "all"]);
});
