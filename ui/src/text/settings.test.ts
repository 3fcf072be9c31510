import { expect, it } from "vitest";
import type { SettingKind, SettingView } from "../bindings/app";
import { fieldText, fieldValue, keepable, plainNumber } from "./settings";

const number: SettingKind = { type: "number", min: 0, max: 2, step: 0.1, whole: false };
const whole: SettingKind = { type: "number", min: 0, max: 100, step: 1, whole: true };
const texts: SettingKind = { type: "texts", max: 8 };
const object: SettingKind = { type: "object" };

it("what stands in a field comes back as it was", () => {
  const values: [SettingKind, unknown][] = [
    [number, 0.7],
    [whole, 40],
    [texts, ["END", "\n\nUser:", "a\\n b", "\t"]],
    [object, { type: "object", properties: { n: { type: "number" } } }],
    [{ type: "flag" }, true],
    [{ type: "flag" }, false],
    [{ type: "text", max_bytes: 100 }, "two\nlines"],
    [{ type: "choice", choices: ["always"] }, "always"],
  ];
  for (const [kind, value] of values) expect(fieldValue(kind, fieldText(kind, value))).toEqual(value);
});

it("an empty field unsets", () => {
  for (const kind of [number, texts, object]) {
    expect(fieldText(kind, null)).toBe("");
    expect(fieldValue(kind, " ")).toBeNull();
  }
});

it("numbers are taken with a comma, and what is none is left for the app to refuse", () => {
  expect(fieldValue(number, "0,7")).toBe(0.7);
  expect(fieldValue(number, "warm")).toBe("warm");
  expect(fieldValue(object, "{ not json")).toBe("{ not json");
});

it("a number of 32 bits reads as it was written", () => {
  expect(fieldText(number, Math.fround(0.7))).toBe("0.7");
  expect(plainNumber("en", Math.fround(1.1))).toBe("1.1");
  expect(plainNumber("en", 4_294_967_295)).toBe("4,294,967,295");
});

it("a preset keeps what is set here and nothing else", () => {
  const setting = (key: SettingView["key"], set_here: boolean) => ({ key, value: 1, set_here }) as SettingView;
  const settings = [setting("preset", true), setting("temperature", true), setting("top_p", false)];
  expect(keepable(settings)).toEqual({ temperature: 1 });
});
