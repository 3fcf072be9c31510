import { expect, it } from "vitest";
import { cutMessage } from "./wire";

it("knows a message of which only the start is there", () => {
  const cut = { cut: true, bytes: 90_000, start: "{", full: "m" };
  expect(cutMessage(cut)).toEqual({ bytes: 90_000, start: "{", full: "m" });
  expect(cutMessage({ ...cut, full: null })).toEqual({ bytes: 90_000, start: "{", full: null });
});

it("takes no whole message for one", () => {
  for (const other of [null, 7, "cut", { jsonrpc: "2.0", cut: true, bytes: 1, start: "" }, { cut: true }, { cut: 1 }])
    expect(cutMessage(other)).toBeNull();
});
