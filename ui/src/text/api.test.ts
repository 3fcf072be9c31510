import { expect, it } from "vitest";
import { average, bars, curl, namedIn, nextPort, portOf, python, share } from "./api";

const ranges = (...counts: number[]) =>
  counts.map((count, at) => ({ up_to: at === counts.length - 1 ? null : at, count }));

it("examples have the address and the key, and names can't break out of them", () => {
  const url = "http://127.0.0.1:11480";
  const asked = curl(url, "sk-1", `it's a "model"`);
  expect(asked).toContain("curl http://127.0.0.1:11480/v1/chat/completions");
  expect(asked).toContain("'Authorization: Bearer sk-1'");
  // What a shell makes of the quoted body is the JSON again.
  const body = asked.slice(asked.indexOf("-d '") + 4, -1).replaceAll(`'\\''`, "'");
  expect(JSON.parse(body)).toMatchObject({ model: `it's a "model"` });
  const script = python(url, "sk-1", `a"b\\`);
  expect(script).toContain('base_url="http://127.0.0.1:11480/v1", api_key="sk-1"');
  expect(script).toContain(String.raw`model="a\"b\\",`);
});

it("a port is a number from 1 to 65535", () => {
  expect(["1", " 65535 ", "11480"].map(portOf)).toEqual([1, 65535, 11480]);
  expect(["", "0", "65536", "-1", "1.5", "1e3", "abc"].map(portOf)).toEqual([null, null, null, null, null, null, null]);
  expect(nextPort(11480)).toBe(11481);
  expect(nextPort(65535)).toBe(11480);
});

it("a histogram begins and ends where something is, and has its longest bar whole", () => {
  const times = { count: 6, seconds: 12, ranges: ranges(0, 2, 0, 4, 0, 0) };
  expect(bars(times)).toEqual([
    { upTo: 1, count: 2, part: 0.5 },
    { upTo: 2, count: 0, part: 0 },
    { upTo: 3, count: 4, part: 1 },
  ]);
  expect(average(times)).toBe(2);
  const long = bars({ count: 1, seconds: 9, ranges: ranges(0, 0, 1) });
  expect(long).toEqual([{ upTo: null, count: 1, part: 1 }]);
  const none = { count: 0, seconds: 0, ranges: ranges(0, 0) };
  expect([bars(none), average(none), average({ ...none, ranges: [] })]).toEqual([[], null, null]);
});

it("a share of nothing is none", () => {
  expect([share(0, 0), share(1, 4), share(5, 4)]).toEqual([null, 0.25, 1]);
});

it("what a problem names is found in it", () => {
  const named = (message: string) => namedIn({ code: "bad_host", message, hint: null, detail: null });
  expect(named("`*.lan` is not a name of this computer")).toBe("*.lan");
  expect(named("`a`b` is not a name of this computer")).toBe("a`b");
  expect(named("it was refused")).toBe("");
});
