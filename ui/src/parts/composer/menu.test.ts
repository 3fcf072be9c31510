import { expect, it } from "vitest";
import { choicesFor, fairly, menuAt } from "./menu";

it("opens commands only for a text that is nothing else", () => {
  expect(menuAt("/", 1)).toEqual({ kind: "run", query: "", from: 0 });
  expect(menuAt("/new c", 6)).toEqual({ kind: "run", query: "new c", from: 0 });
  expect(menuAt("/usr/bin", 8)).toBeNull();
  expect(menuAt("a /new", 6)).toBeNull();
  expect(menuAt("/new\nline", 9)).toBeNull();
});

it("opens notes at a sign of its own, at the caret", () => {
  expect(menuAt("see @Tra", 8)).toEqual({ kind: "read", query: "Tra", from: 4 });
  expect(menuAt("see @Tra and", 8)).toEqual({ kind: "read", query: "Tra", from: 4 });
  expect(menuAt("lena@example.org", 16)).toBeNull();
  expect(menuAt("@", 1)).toEqual({ kind: "read", query: "", from: 0 });
});

it("puts what begins with the words first", () => {
  expect(choicesFor(["b a", "a", "c"], (one) => one, "a")).toEqual(["a", "b a"]);
  expect(choicesFor(["Travel/Lyon.md", "Lyon.md"], (one) => one, "lyon tra")).toEqual(["Travel/Lyon.md"]);
});

it("leaves room for those who have little", () => {
  const all = [...Array.from({ length: 90 }, (_, index) => `a${index}`), "b0", "b1", "c0"];
  const owner = (one: string) => one[0] ?? "";
  expect(fairly(all, owner, 10)).toEqual(["a0", "a1", "a2", "a3", "a4", "a5", "a6", "b0", "b1", "c0"]);
  expect(fairly(all, owner, 2)).toHaveLength(2);
  expect(fairly(["a0", "b0"], owner, 10)).toEqual(["a0", "b0"]);
});
