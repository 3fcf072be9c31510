import { describe, expect, it } from "vitest";
import { en } from "./en";
import { langs, messages, phrase, pickLang, type Key } from "./i18n.svelte";

const keys = Object.keys(en).sort() as Key[];
const placeholders = (text: string) => [...new Set([...text.matchAll(/\{(\w+)\}/g)].map((match) => match[1]))].sort();

describe.each(langs.map(({ lang }) => lang))("%s", (lang) => {
  it("has all messages and no others", () => {
    expect(Object.keys(messages[lang]).sort()).toEqual(keys);
  });
  it("has words in all of them", () => {
    expect(keys.filter((key) => messages[lang][key].trim() === "")).toEqual([]);
  });
  it("has the same placeholders", () => {
    const other = keys.filter((key) => placeholders(messages[lang][key]).join() !== placeholders(en[key]).join());
    expect(other).toEqual([]);
  });
  it("has the values in every form of a plural", () => {
    const other = keys.filter((key) => {
      const forms = messages[lang][key].split(" | ");
      return (
        forms.length > 2 || forms.some((form) => placeholders(form).join() !== placeholders(forms[0] ?? "").join())
      );
    });
    expect(other).toEqual([]);
  });
});

it("chooses singular and plural by the language", () => {
  expect(phrase("en", "servers.tools", { n: 1 })).toBe("1 tool");
  expect(phrase("en", "servers.tools", { n: 0 })).toBe("0 tools");
  expect(phrase("fr", "servers.tools", { n: 0 })).toBe("0 outil");
  expect(phrase("zh-CN", "servers.tools", { n: 2 })).toBe("2 个工具");
});

it("does not read values as patterns", () => {
  expect(phrase("en", "list.deleted", { title: "{n} $& | x" })).toBe("“{n} $& | x” was deleted.");
});

it("takes the first language of the system that it knows", () => {
  expect(pickLang(["de-DE", "fr-CA", "en"])).toBe("fr");
  expect(pickLang(["zh-Hans-CN"])).toBe("zh-CN");
  expect(pickLang(["de", "ja"])).toBe("en");
  expect(pickLang([])).toBe("en");
});
