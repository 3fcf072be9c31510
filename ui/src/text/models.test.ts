import { expect, it } from "vitest";
import { advice, download } from "../host/fake/models";
import { contextSize, contextSteps, languageNames, looksLikeTarget, needBar, shareOfAll, timeLeft } from "./models";

it("the time that is left is no finer than the guess", () => {
  const plain = (lang: string, seconds: number) => timeLeft(lang, seconds).replace(/\s/g, " ");
  expect(plain("en", 40)).toBe("40 s");
  expect(plain("en", 179)).toBe("3 min");
  expect(plain("en", 3600)).toBe("1 hr");
  expect(plain("fr", 3900)).toBe("1 h 5 min");
  // Never sixty minutes.
  expect(plain("fr", 3599)).toBe("1 h");
});

it("contexts are doubled up to what the model was trained for", () => {
  expect(contextSteps(4096)).toEqual([1024, 2048, 4096]);
  expect(contextSteps(5000)).toEqual([1024, 2048, 4096, 5000]);
  expect(contextSteps(512)).toEqual([512]);
  expect(contextSize("en", 131_072)).toBe("128k");
  expect(contextSize("en", 5000)).toBe("5,000");
});

it("the parts of a need never stand for more than the whole", () => {
  for (const one of [advice(2e9), advice(40e9), { ...advice(1), available: 0 }]) {
    const bar = needBar(one);
    expect(bar.weights + bar.kv + bar.compute).toBeLessThanOrEqual(1.000001);
    expect(bar.available).toBeLessThanOrEqual(1);
  }
});

it("only downloads that go on count, and only when their size is known", () => {
  const one = download({ done: 50, total: 100 });
  expect(shareOfAll([one, download({ id: "x", state: { type: "paused" }, done: 0, total: 900 })])).toBe(0.5);
  expect(shareOfAll([one, download({ id: "y", total: null })])).toBeNull();
  expect(shareOfAll([])).toBeNull();
});

it("names, names with a quantisation and addresses are looked up; other words are not", () => {
  for (const good of ["Qwen/Qwen3-4B-GGUF", " a/b:Q4_K_M ", "https://hf.co/a/b", "http://127.0.0.1:80/x.gguf"]) {
    expect(looksLikeTarget(good)).toBe(true);
  }
  for (const bad of ["", "qwen", "a/b/c", "a b/c", "file:///etc/passwd", "javascript:alert(1)"]) {
    expect(looksLikeTarget(bad)).toBe(false);
  }
});

it("languages that nobody knows keep their code", () => {
  expect(languageNames("en", ["fr", "not a code!"])).toBe("French, not a code!");
});
