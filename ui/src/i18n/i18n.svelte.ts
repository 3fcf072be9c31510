// The language of the window: typed keys, one message file per language.
// Invariant: components hold no words of their own.
import { en } from "./en";
import { fr } from "./fr";
import { zhCN } from "./zh-CN";

export type Key = keyof typeof en;
export type Messages = Record<Key, string>;
export type Lang = "en" | "fr" | "zh-CN";
export type Values = Record<string, string | number>;

export const messages: Record<Lang, Messages> = { en, fr, "zh-CN": zhCN };
export const langs: readonly { readonly lang: Lang; readonly name: string }[] = [
  { lang: "en", name: "English" },
  { lang: "fr", name: "Français" },
  { lang: "zh-CN", name: "简体中文" },
];

/** The first language of the system that there are messages for. */
export function pickLang(wanted: readonly string[]): Lang {
  for (const tag of wanted) {
    const base = tag.toLowerCase().split("-")[0];
    if (base === "fr") return "fr";
    if (base === "zh") return "zh-CN";
    if (base === "en") return "en";
  }
  return "en";
}

/** Puts values into a message. `a | b` are the singular and the plural, chosen by `n`. */
export function phrase(lang: Lang, key: Key, values: Values = {}): string {
  const forms = messages[lang][key].split(" | ");
  const n = values["n"];
  const one = forms.length > 1 && typeof n === "number" && new Intl.PluralRules(lang).select(n) === "one";
  const form = (one ? forms[0] : forms[forms.length - 1]) ?? "";
  return form.replace(/\{(\w+)\}/g, (whole, name: string) => {
    const value = values[name];
    if (value === undefined) return whole;
    return typeof value === "number" ? new Intl.NumberFormat(lang).format(value) : value;
  });
}

class Language {
  lang = $state<Lang>("en");
}

export const language = new Language();

/** The message in the language of the window. */
export function t(key: Key, values?: Values): string {
  return phrase(language.lang, key, values);
}
