import { expect, it } from "vitest";
import { withLinks } from "./links";

const links = (text: string) => withLinks(text).flatMap(({ href }) => href ?? []);

it("an address in a sentence is a link, without the end of the sentence", () => {
  const text = "Switch it on at https://console.cloud.google.com/apis?project=a-b, wait, then try again.";
  expect(links(text)).toEqual(["https://console.cloud.google.com/apis?project=a-b"]);
  expect(
    withLinks(text)
      .map((piece) => piece.text)
      .join(""),
  ).toBe(text);
});

it("nothing else is", () => {
  for (const text of [
    "http://example.org",
    "javascript:alert(1)",
    "https://",
    "https://google.com@evil.example/",
    "https://gооgle.com/",
    "see example.org",
  ]) {
    expect(links(text)).toEqual([]);
    expect(
      withLinks(text)
        .map((piece) => piece.text)
        .join(""),
    ).toBe(text);
  }
});
