// Settings of answers: how a value is written, and how what was typed becomes one.
// Invariant: knows no ranges; what is not acceptable is said by the app.
import type { SettingKey, SettingKind, SettingView } from "../bindings/app";
import { en } from "../i18n/en";
import type { Key } from "../i18n/i18n.svelte";

export type Group = "sampling" | "form" | "tools" | "advanced";

const GROUPS: Readonly<Partial<Record<SettingKey, Group>>> = {
  temperature: "sampling",
  top_p: "sampling",
  top_k: "sampling",
  min_p: "sampling",
  repeat_penalty: "sampling",
  frequency_penalty: "sampling",
  presence_penalty: "sampling",
  seed: "sampling",
  max_tokens: "form",
  thinking: "form",
  thinking_budget: "form",
  stop: "form",
  system: "form",
  json_schema: "form",
  grammar: "form",
  tools: "tools",
  relevant_tools: "tools",
  gate: "tools",
  pinned_tools: "tools",
  tool_mode: "tools",
};

/** What this window does not know by name stands with what is for experts. */
export function groupOf(key: SettingKey): Group {
  return GROUPS[key] ?? "advanced";
}

/** The key of a message, where there is one. */
export function keyIfKnown(key: string): Key | null {
  return key in en ? (key as Key) : null;
}

/** Up to six digits after the point, none that say nothing. */
export function plainNumber(lang: string, value: number): string {
  // What came through 32 bits reads as it was written: 0.7 and not 0.699999988.
  const short = Number(value.toPrecision(6));
  return new Intl.NumberFormat(lang, { maximumFractionDigits: 6 }).format(Math.abs(short) < 1e6 ? short : value);
}

/** A value as it stands in its field. */
export function fieldText(kind: SettingKind, value: unknown): string {
  if (value === null || value === undefined) return "";
  switch (kind.type) {
    case "number":
      return typeof value === "number" ? String(kind.whole ? value : Number(value.toPrecision(6))) : String(value);
    case "texts":
      return Array.isArray(value) ? value.map((one) => escaped(String(one))).join("\n") : String(value);
    case "object":
      return JSON.stringify(value, null, 2);
    case "flag":
    case "choice":
    case "text":
      return String(value);
  }
}

/** What was typed as a value; null unsets. What is none stays a text, for the app to refuse with its reason. */
export function fieldValue(kind: SettingKind, text: string): unknown {
  if (text.trim() === "") return null;
  switch (kind.type) {
    case "number": {
      const number = Number(text.trim().replace(",", "."));
      return Number.isFinite(number) ? number : text;
    }
    case "flag":
      return text === "true";
    case "texts": {
      const lines = text.split("\n").filter((line) => line.trim() !== "");
      return lines.map(unescaped);
    }
    case "object":
      try {
        return JSON.parse(text) as unknown;
      } catch {
        return text;
      }
    case "choice":
    case "text":
      return text;
  }
}

function escaped(text: string): string {
  return text.replace(/\\/g, "\\\\").replace(/\n/g, "\\n").replace(/\t/g, "\\t").replace(/\r/g, "\\r");
}

const ESCAPES: Readonly<Record<string, string>> = { n: "\n", t: "\t", r: "\r", "\\": "\\" };

function unescaped(text: string): string {
  return text.replace(/\\([ntr\\])/g, (_, letter: string) => ESCAPES[letter] ?? letter);
}

/** What a preset would keep: all that is set at this level, the preset itself left out. */
export function keepable(settings: readonly SettingView[]): Partial<Record<SettingKey, unknown>> {
  const kept: Partial<Record<SettingKey, unknown>> = {};
  for (const { key, value, set_here } of settings) if (set_here && key !== "preset") kept[key] = value;
  return kept;
}
