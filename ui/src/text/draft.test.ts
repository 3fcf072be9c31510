import { expect, it } from "vitest";
import { EMPTY, joined, promptLine, readKept, requestOf, saysSomething, taking, textDraft, type Draft } from "./draft";

const note = { server: "notes", uri: "note:///a.md", name: "a.md" };
const run = { server: "everything", name: "args-prompt", arguments: { city: "Lyon" } };

it("takes a resource along once", () => {
  const draft = taking(taking(textDraft("sum it up"), note), { ...note, name: "again" });
  expect(draft.taken).toEqual([note]);
  expect(requestOf("c", draft)).toEqual({
    conversation: "c",
    text: "sum it up",
    attachments: [{ server: "notes", uri: "note:///a.md" }],
  });
});

it("a message of words names nothing else", () => {
  expect(requestOf(null, textDraft(" hello "))).toEqual({ conversation: null, text: "hello" });
});

it("a prompt says something, a resource alone does not", () => {
  expect(saysSomething({ ...EMPTY, prompt: run })).toBe(true);
  expect(saysSomething(taking(EMPTY, note))).toBe(false);
  expect(saysSomething(textDraft(" \n"))).toBe(false);
});

it("joins two messages unless both run a prompt", () => {
  const first: Draft = { ...EMPTY, text: "a", prompt: run, taken: [note] };
  expect(joined(first, { ...EMPTY, text: "b", taken: [note] })).toEqual({ ...first, text: "a\n\nb" });
  expect(joined(first, { ...EMPTY, prompt: run })).toBeNull();
});

it("writes a prompt as it is typed elsewhere", () => {
  expect(promptLine(run)).toBe("/everything:args-prompt city: Lyon");
  expect(promptLine({ ...run, arguments: {} })).toBe("/everything:args-prompt");
});

it("reads back what it kept, and nothing else", () => {
  expect(readKept(JSON.stringify({ prompt: run, taken: [note] }))).toEqual({
    prompt: run,
    taken: [note],
    enclosed: [],
  });
  const none = { prompt: null, taken: [], enclosed: [] };
  for (const bad of [null, "", "{", "7", "null", '{"prompt":{"server":1},"taken":[{}, null]}', '{"taken":7}'])
    expect(readKept(bad)).toEqual(none);
  expect(readKept('{"prompt":{"server":"a","name":"b","arguments":{"c":1}}}')).toEqual(none);
});

it("takes images along, which say something by themselves", () => {
  const cat = { id: "a.png", name: "cat.png", mime: "image/png", width: 4, height: 4, preview: null };
  const draft: Draft = { ...EMPTY, enclosed: [cat] };
  expect(saysSomething(draft)).toBe(true);
  expect(requestOf("c", draft)).toEqual({ conversation: "c", text: "", enclosed: ["a.png"] });
  expect(joined(draft, { ...textDraft("b"), enclosed: [{ ...cat, id: "b.png" }] })?.enclosed.length).toBe(2);
  const kept = [cat, { ...cat, preview: { mime: "image/jpeg", base64: "AA==" } }];
  expect(readKept(JSON.stringify({ enclosed: [...kept, { id: 1 }, { ...cat, preview: 7 }, null] })).enclosed).toEqual(
    kept,
  );
});
