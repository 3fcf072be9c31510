import { describe, expect, it } from "vitest";
import type { FieldKind, FormField } from "../bindings/core";
import { contentOf, faultsOf, initialEntries } from "./form";

function field(name: string, kind: FieldKind, change: Partial<FormField> = {}): FormField {
  return { name, title: null, description: null, required: false, kind, default: null, ...change };
}
const text = (change: object = {}): FieldKind => ({
  type: "text",
  format: null,
  min_length: null,
  max_length: null,
  pattern: null,
  ...change,
});
const whole: FieldKind = { type: "number", integer: true, minimum: 1, maximum: 6 };
const options = [
  { value: "a", title: "A" },
  { value: "b", title: "B" },
];

const fault = (kind: FieldKind, entry: string | boolean | string[], required = false) =>
  faultsOf([field("x", kind, { required })], { x: entry }).get("x") ?? null;

describe("faults", () => {
  it("empty fields are faults only when they are needed", () => {
    expect(fault(text(), "", true)).toEqual({ fault: "missing" });
    expect(fault(text(), "")).toBeNull();
    expect(fault({ type: "choice", options }, "", true)).toEqual({ fault: "missing" });
    expect(fault({ type: "choices", options, min_items: null, max_items: null }, [], true)).toEqual({
      fault: "missing",
    });
    // Off is an answer.
    expect(fault({ type: "toggle" }, false, true)).toBeNull();
  });
  it("numbers are checked", () => {
    expect(fault(whole, "x")).toEqual({ fault: "not_a_number" });
    expect(fault(whole, "1.5")).toEqual({ fault: "not_whole" });
    expect(fault(whole, "0")).toEqual({ fault: "too_small", limit: 1 });
    expect(fault(whole, "7")).toEqual({ fault: "too_large", limit: 6 });
    expect(fault(whole, "6")).toBeNull();
  });
  it("texts are counted in characters, not in code units", () => {
    expect(fault(text({ max_length: 2 }), "🐟🐟")).toBeNull();
    expect(fault(text({ max_length: 2 }), "🐟🐟🐟")).toEqual({ fault: "too_long", limit: 2 });
    expect(fault(text({ min_length: 3 }), "ab")).toEqual({ fault: "too_short", limit: 3 });
  });
  it.each([
    ["email", "ada@example.org", "ada@"],
    ["uri", "https://example.org/x", "example.org"],
    ["date", "2026-11-20", "20.11.2026"],
    ["date-time", "2026-11-20T10:00", "10:00"],
  ])("format %s", (format, good, bad) => {
    expect(fault(text({ format }), good)).toBeNull();
    expect(fault(text({ format }), bad)).toEqual({ fault: format });
  });
  it("formats that are not known are not checked", () => {
    expect(fault(text({ format: "zip-code" }), "?")).toBeNull();
  });
  it("choices are counted", () => {
    const kind: FieldKind = { type: "choices", options, min_items: 1, max_items: 1 };
    expect(fault(kind, ["a", "b"])).toEqual({ fault: "too_many", limit: 1 });
    expect(fault({ ...kind, min_items: 2, max_items: null }, ["a"])).toEqual({ fault: "too_few", limit: 2 });
  });
});

describe("answers", () => {
  it("defaults stand in the fields and are answered", () => {
    const fields = [
      field("seats", whole, { default: 2 }),
      field("class", { type: "choice", options }, { default: "b" }),
      field("extras", { type: "choices", options, min_items: null, max_items: null }, { default: ["a"] }),
      field("news", { type: "toggle" }, { default: true }),
      field("name", text()),
    ];
    expect(contentOf(fields, initialEntries(fields))).toEqual({ seats: 2, class: "b", extras: ["a"], news: true });
  });
  it("a field may have any name", () => {
    const fields = [field("__proto__", text())];
    const content = contentOf(fields, Object.fromEntries([["__proto__", "x"]]));
    expect(JSON.stringify(content)).toBe('{"__proto__":"x"}');
  });
  it("a time of the browser's field gets a zone", () => {
    const content = contentOf([field("at", text({ format: "date-time" }))], { at: "2026-11-20T10:00" });
    expect(content["at"]).toMatch(/^2026-11-\d\dT\d\d:00:00.000Z$/);
  });
});
