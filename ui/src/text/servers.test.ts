import { describe, expect, it } from "vitest";
import { argumentDrafts, argumentLines, looksSecret, namedDrafts, words, type NamedRow } from "./servers";

function row(change: Partial<NamedRow>): NamedRow {
  return { key: 0, name: "TOKEN", value: "", secret: true, was: null, ...change };
}

describe("variables and headers", () => {
  const was = { name: "TOKEN", value: "••••••", secret: true };

  it("a secret that was not typed anew stays", () => {
    expect(namedDrafts([row({ was })])).toEqual([{ name: "TOKEN", value: { type: "keep" } }]);
  });
  it("a secret that was typed replaces the old one", () => {
    expect(namedDrafts([row({ was, value: "new" })])).toEqual([
      { name: "TOKEN", value: { type: "secret", text: "new" } },
    ]);
  });
  it("a plain value that is now a secret is sent as one", () => {
    const plain = { name: "TOKEN", value: "abc", secret: false };
    expect(namedDrafts([row({ was: plain, value: "abc" })])).toEqual([
      { name: "TOKEN", value: { type: "secret", text: "abc" } },
    ]);
  });
  it("a plain value is kept only while name and value are the same", () => {
    const plain = { name: "REGION", value: "north", secret: false };
    const same = row({ was: plain, name: "REGION", value: "north", secret: false });
    expect(namedDrafts([same])[0]?.value.type).toBe("keep");
    expect(namedDrafts([{ ...same, value: "south" }])[0]?.value).toEqual({ type: "plain", text: "south" });
    expect(namedDrafts([{ ...same, name: "AREA" }])[0]?.value).toEqual({ type: "plain", text: "north" });
  });
  it("rows without a name are left out", () => {
    expect(namedDrafts([row({ name: "  ", value: "x" })])).toEqual([]);
  });
  it("names of secrets are known by their sound", () => {
    for (const name of ["GITHUB_TOKEN", "api-key", "Authorization", "DB_PASSWORD"])
      expect(looksSecret(name)).toBe(true);
    for (const name of ["REGION", "HOME", "X-Toolsets", "KEYBOARD"]) expect(looksSecret(name)).toBe(false);
  });
});

describe("arguments", () => {
  it("lines that were there keep what is behind them, wherever they are moved", () => {
    const before = ["--token", "••••••", "a b"];
    expect(argumentDrafts("--verbose\n--token\n••••••\na b", before)).toEqual([
      { type: "plain", text: "--verbose" },
      { type: "keep", position: 0 },
      { type: "keep", position: 1 },
      { type: "keep", position: 2 },
    ]);
  });
  it("two masked ones stay two", () => {
    expect(argumentDrafts("••••••\n••••••", ["••••••", "••••••"])).toEqual([
      { type: "keep", position: 0 },
      { type: "keep", position: 1 },
    ]);
    expect(argumentDrafts("••••••\n••••••", ["••••••"])[1]).toEqual({ type: "plain", text: "••••••" });
  });
  it("line breaks within one survive", () => {
    const before = ["-c", "one\ntwo"];
    expect(argumentDrafts(argumentLines(before), before).map((one) => one.type)).toEqual(["keep", "keep"]);
    expect(argumentDrafts("x⏎y", [])).toEqual([{ type: "plain", text: "x\ny" }]);
  });
  it("none are none", () => {
    expect(argumentDrafts("", ["x"])).toEqual([]);
  });
});

it("a command line is cut as a shell would", () => {
  expect(words(`npx -y "a b" 'c "d"' e\\ f --x="g h"`)).toEqual(["npx", "-y", "a b", 'c "d"', "e f", "--x=g h"]);
  expect(words("  ")).toEqual([]);
});
