import { describe, expect, it } from "vitest";
import { amountOf, costOf, fitting, keyRisk, knownFacts, matching, money, readEndpoint, waitOf } from "./providers";

describe("addresses", () => {
  // The same as the app's own list.
  it.each([
    ["localhost:11434", "this_computer"],
    ["http://127.0.0.1:1/v1", "this_computer"],
    ["http://[::1]:8080", "this_computer"],
    ["http://a.localhost", "this_computer"],
    ["http://192.168.1.4", "private_network"],
    ["10.1.2.3:80", "private_network"],
    ["http://nas", "private_network"],
    ["http://nas.local", "private_network"],
    ["http://[fd00::1]", "private_network"],
    ["100.70.1.1", "private_network"],
    ["http://[::ffff:192.168.1.4]", "private_network"],
    ["http://[::ffff:127.0.0.1]:8080", "this_computer"],
    ["http://[::ffff:8.8.8.8]", "internet"],
    ["https://api.openai.com/v1", "internet"],
    ["http://8.8.8.8", "internet"],
    ["http://localhost.evil.com", "internet"],
    ["http://100.128.0.1", "internet"],
    ["http://local.example", "internet"],
  ])("%s is %s", (text, reach) => expect(readEndpoint(text)?.reach).toBe(reach));

  it.each(["", "ftp://h", "http://", "file:///etc/passwd", "not an address"])("`%s` is none", (text) =>
    expect(readEndpoint(text)).toBeNull(),
  );

  it("keys are refused in the clear, and warned of in the own network", () => {
    expect(keyRisk(readEndpoint("http://api.example.org"))).toBe("refused");
    expect(keyRisk(readEndpoint("http://nas:8000"))).toBe("near");
    expect(keyRisk(readEndpoint("https://api.example.org"))).toBeNull();
    expect(keyRisk(readEndpoint("localhost:11434"))).toBeNull();
  });
});

it("prices are typed with a point or a comma", () => {
  expect([amountOf("0.30"), amountOf(" 2,5 "), amountOf("3"), amountOf("-1"), amountOf("a"), amountOf("")]).toEqual([
    0.3,
    2.5,
    3,
    null,
    null,
    null,
  ]);
});

it("what was cached costs less, where the user said so", () => {
  const usage = {
    prompt_tokens: 1_000_000,
    reused_tokens: 400_000,
    generated_tokens: 100_000,
    prompt_ms: null,
    generation_ms: null,
  };
  expect(costOf(usage, { input: 1, output: 10, currency: "EUR" })).toBeCloseTo(2);
  expect(costOf(usage, { input: 1, output: 10, cached: 0.25, currency: "EUR" })).toBeCloseTo(1.7);
  expect(money("en", 0.00123, "EUR")).toBe("€0.0012");
  expect(money("en", 0.5, "credits")).toBe("0.5 credits");
});

it("models are found by all words of their names", () => {
  const models = [
    { model: "gemini-3-flash", name: "Gemini 3 Flash" },
    { model: "gemini-3-pro", name: null },
  ];
  expect(matching(models, "FLASH 3").map(({ model }) => model)).toEqual(["gemini-3-flash"]);
  expect(matching(models, "")).toHaveLength(2);
});

it("what nobody said is not shown", () => {
  expect(knownFacts({})).toEqual([]);
  expect(knownFacts({ tools: false, vision: true, thinking: false })).toEqual(["noTools", "vision"]);
});

it("waits are whole seconds up to a day, or nothing", () => {
  expect(["", "  ", "1", " 900 ", "86400"].map(waitOf)).toEqual([undefined, undefined, 1, 900, 86_400]);
  expect(["0", "86401", "1000000", "-1", "1.5", "1e3", "5 min"].map(waitOf)).toEqual(Array(7).fill(null));
});

it("waits are there for every kind", () => {
  const options = { safety: {}, wait_seconds: 900, stall_seconds: 60 };
  expect([fitting("vertex", options), fitting("openai_compatible", options)]).toEqual([options, options]);
});
