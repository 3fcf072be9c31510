import { describe, expect, it } from "vitest";
import { age, between, bytes, duration, rate, shortDate, splitForMiddleCut } from "./format";

const plain = (text: string) => text.replace(/[\u00a0\u202f]/g, " ");

describe("durations", () => {
  it.each([
    [0, "0 s"],
    [3, "<0.01 s"],
    [9.9, "<0.01 s"],
    [40, "0.04 s"],
    [99, "0.10 s"],
    [420, "0.4 s"],
    [9940, "9.9 s"],
    [9960, "10 s"],
    [59_400, "59 s"],
    [59_600, "1 min"],
    [125_000, "2 min 5 s"],
    [-5, "0 s"],
  ])("%i ms", (ms, text) => {
    expect(plain(duration("en", ms))).toBe(text);
  });
  it("writes the decimal sign of the language", () => {
    expect(plain(duration("fr", 1400))).toBe("1,4 s");
    expect(duration("zh-CN", 1400)).toContain("1.4");
  });
});

it("writes sizes in MB", () => {
  expect(plain(bytes("en", 3_100_000))).toBe("3.1 MB");
  expect(plain(bytes("en", 45_000_000))).toBe("45 MB");
  expect(plain(bytes("en", 2_020_000_000))).toBe("2.0 GB");
});

it("groups by days, not by hours", () => {
  const now = new Date(2026, 10, 20, 0, 30);
  expect(age(new Date(2026, 10, 20, 0, 1).toISOString(), now)).toBe("today");
  expect(age(new Date(2026, 10, 19, 23, 59).toISOString(), now)).toBe("yesterday");
  expect(age(new Date(2026, 10, 15).toISOString(), now)).toBe("week");
  expect(age(new Date(2026, 9, 1).toISOString(), now)).toBe("older");
  expect(shortDate("en", new Date(2025, 0, 5).toISOString(), now)).toContain("2025");
});

it("a clock that was set back gives no negative times", () => {
  expect(between("2026-01-01T00:00:02Z", "2026-01-01T00:00:01Z")).toBe(0);
  expect(between(null, "2026-01-01T00:00:01Z")).toBe(0);
});

it("cuts in the middle without losing a character", () => {
  for (const text of [
    "short.md",
    "a/very/long/path/to/some/Note.md",
    "👩‍🚀".repeat(30),
    "旅行/".repeat(20) + "云南之行.md",
  ]) {
    const { head, tail } = splitForMiddleCut(text);
    expect(head + tail).toBe(text);
  }
  expect(splitForMiddleCut("a/very/long/path/to/some/Note.md").tail).toBe("/Note.md");
});

it("knows no rate without a time", () => {
  expect(rate(10, 0)).toBeNull();
  expect(rate(10, null)).toBeNull();
  expect(rate(10, 500)).toBe(20);
});
