// What a server wrote, made honest: hidden characters, differences, addresses.
import { describe, expect, it } from "vitest";
import { readAddress } from "./address";
import { definitionText, diffLines } from "./diff";
import { hidesSomething, visible } from "./visible";

describe("hidden characters", () => {
  it.each([
    ["a\u200bb", "a⟦U+200B⟧b"],
    ["\u202etxt.exe", "⟦U+202E⟧txt.exe"],
    ["x\u{e0041}", "x⟦U+E0041⟧"],
    ["bell\u0007", "bell⟦U+0007⟧"],
    ["soft\u00adhyphen", "soft⟦U+00AD⟧hyphen"],
  ])("%j is shown", (text, shown) => {
    expect(visible(text)).toBe(shown);
    expect(hidesSomething(text)).toBe(true);
  });
  it("emoji and scripts that need joiners are no secret", () => {
    for (const text of ["⚠\ufe0f careful", "👩\u200d💻", "1\ufe0f\u20e3", "می\u200cخواهم"])
      expect(visible(text)).toBe(text);
    expect(visible("a\ufe0f\u200db")).toBe("a⟦U+FE0F⟧⟦U+200D⟧b");
  });
  it("ordinary text of any language stays as it is", () => {
    for (const text of ["two\nlines\tand a tab", "naïve — “quoted”", "昆明的小旅馆", "שלום עולם", "🐟"]) {
      expect(visible(text)).toBe(text);
    }
  });
});

describe("differences", () => {
  it("tells what was added and removed, with a little around it", () => {
    const before = ["a", "b", "c", "d", "e", "f", "g"].join("\n");
    const after = ["a", "b", "c", "d", "E", "f", "g"].join("\n");
    expect(diffLines(before, after)).toEqual([
      { kind: "gap", lines: 2 },
      { kind: "same", text: "c" },
      { kind: "same", text: "d" },
      { kind: "removed", text: "e" },
      { kind: "added", text: "E" },
      { kind: "same", text: "f" },
      { kind: "same", text: "g" },
    ]);
  });
  it("every line of both texts is told", () => {
    const before = "one\ntwo\nthree\ntwo";
    const after = "two\nthree\nfour\ntwo\none";
    const lines = diffLines(before, after).flatMap((line) => (line.kind === "gap" ? [] : [line]));
    const of = (kind: string) => lines.filter((line) => line.kind !== kind).map((line) => line.text);
    expect(of("added").join("\n")).toBe(before);
    expect(of("removed").join("\n")).toBe(after);
  });
  it("the order in which a server writes its keys is no change", () => {
    expect(definitionText({ b: 1, a: { d: 1, c: 2 } })).toBe(definitionText({ a: { c: 2, d: 1 }, b: 1 }));
  });
});

describe("addresses", () => {
  it("shows the domain apart", () => {
    const { href, parts, warnings } = readAddress("https://example.org:8443/a?b#c");
    expect(href).toBe("https://example.org:8443/a?b#c");
    expect(parts).toEqual({ before: "https://", domain: "example.org", after: ":8443/a?b#c" });
    expect(warnings).toEqual([]);
  });
  it.each([
    ["https://google.com@evil.example/x", "evil.example", "user"],
    ["https://gооgle.com/", "xn--ggle-55da.com", "punycode"],
    ["http://example.org/", "example.org", "plain"],
  ])("%s is warned of", (url, domain, warning) => {
    const address = readAddress(url);
    expect(address.parts.domain).toBe(domain);
    expect(address.warnings).toContain(warning);
    expect(address.parts.before + address.parts.domain + address.parts.after).toBe(address.href);
  });
  it("a domain that also stands before it is not mistaken", () => {
    const { parts } = readAddress("https://evil.example:evil.example@evil.example/evil.example");
    expect(parts).toEqual({
      before: "https://evil.example:evil.example@",
      domain: "evil.example",
      after: "/evil.example",
    });
  });
  it.each(["javascript:alert(1)", "file:///etc/passwd", "data:text/html,x", "ssh://host", "no address"])(
    "%s is not opened",
    (url) => {
      expect(readAddress(url).href).toBeNull();
    },
  );
  it("this computer needs no encryption", () => {
    expect(readAddress("http://127.0.0.1:8080/").warnings).toEqual([]);
    expect(readAddress("http://[::1]:8080/").warnings).toEqual([]);
    expect(readAddress("http://127.0.0.1.example.org/").warnings).toEqual(["plain"]);
  });
});
