// The form that a server asks to be filled: what stands in it, what is wrong with it, what is answered.
// Invariant: pure; the core checks the answer again.
import type { FieldKind, FormField } from "../bindings/core";

/** What stands in a field: text as it was typed, a switch, or the chosen ones. */
export type Entry = string | boolean | readonly string[];
export type Entries = Readonly<Record<string, Entry>>;

export type Fault =
  | { readonly fault: "missing" | "not_a_number" | "not_whole" | "email" | "uri" | "date" | "date-time" | "pattern" }
  | {
      readonly fault: "too_short" | "too_long" | "too_small" | "too_large" | "too_few" | "too_many";
      readonly limit: number;
    };

export function initialEntries(fields: readonly FormField[]): Entries {
  return Object.fromEntries(fields.map((field) => [field.name, initial(field)]));
}

function initial({ kind, default: given }: FormField): Entry {
  switch (kind.type) {
    case "toggle":
      return given === true;
    case "choices":
      return Array.isArray(given) ? given.filter((one) => typeof one === "string") : [];
    case "text":
    case "number":
    case "choice":
      return typeof given === "string" ? given : typeof given === "number" ? String(given) : "";
  }
}

/** The faults by name of the field; empty when all is well. */
export function faultsOf(fields: readonly FormField[], entries: Entries): ReadonlyMap<string, Fault> {
  const out = new Map<string, Fault>();
  for (const field of fields) {
    const fault = faultOf(field, entries[field.name] ?? "");
    if (fault) out.set(field.name, fault);
  }
  return out;
}

function faultOf({ kind, required }: FormField, entry: Entry): Fault | null {
  if (isEmpty(kind, entry)) return required ? { fault: "missing" } : null;
  switch (kind.type) {
    case "text":
      return textFault(kind, String(entry));
    case "number":
      return numberFault(kind, String(entry));
    case "choices": {
      const chosen = Array.isArray(entry) ? entry.length : 0;
      if (kind.min_items !== null && chosen < kind.min_items) return { fault: "too_few", limit: kind.min_items };
      if (kind.max_items !== null && chosen > kind.max_items) return { fault: "too_many", limit: kind.max_items };
      return null;
    }
    case "toggle":
    case "choice":
      return null;
  }
}

/** An empty field is no answer; a switch always is one. */
function isEmpty(kind: FieldKind, entry: Entry): boolean {
  if (kind.type === "toggle") return false;
  if (kind.type === "choices") return Array.isArray(entry) && entry.length === 0;
  return entry === "";
}

const FORMATS: Readonly<Record<string, RegExp>> = {
  email: /^[^\s@]+@[^\s@.]+(\.[^\s@.]+)+$/,
  uri: /^[a-z][a-z0-9+.-]*:[^\s]+$/i,
  date: /^\d{4}-\d{2}-\d{2}$/,
  "date-time": /^\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}/,
};

function textFault(kind: FieldKind & { type: "text" }, text: string): Fault | null {
  const length = [...text].length;
  if (kind.min_length !== null && length < kind.min_length) return { fault: "too_short", limit: kind.min_length };
  if (kind.max_length !== null && length > kind.max_length) return { fault: "too_long", limit: kind.max_length };
  const format = kind.format ?? "";
  if (FORMATS[format]?.test(text) === false) return { fault: format as "email" | "uri" | "date" | "date-time" };
  return null;
}

function numberFault(kind: FieldKind & { type: "number" }, text: string): Fault | null {
  const value = Number(text);
  if (text.trim() === "" || !Number.isFinite(value)) return { fault: "not_a_number" };
  if (kind.integer && !Number.isInteger(value)) return { fault: "not_whole" };
  if (kind.minimum !== null && value < kind.minimum) return { fault: "too_small", limit: kind.minimum };
  if (kind.maximum !== null && value > kind.maximum) return { fault: "too_large", limit: kind.maximum };
  return null;
}

/** The answer: what was left empty is left out. */
export function contentOf(fields: readonly FormField[], entries: Entries): Record<string, unknown> {
  const content: Record<string, unknown> = {};
  for (const { name, kind } of fields) {
    const entry = entries[name] ?? "";
    if (isEmpty(kind, entry)) continue;
    // Not by assignment: a field may be called `__proto__`.
    const value = kind.type === "number" ? Number(entry) : zoned(kind, entry);
    Object.defineProperty(content, name, { value, enumerable: true, configurable: true, writable: true });
  }
  return content;
}

/** The browser's field for a date with a time knows no zone; the format wants one. */
function zoned(kind: FieldKind, entry: Entry): Entry {
  if (kind.type !== "text" || kind.format !== "date-time" || typeof entry !== "string") return entry;
  if (/([zZ]|[+-]\d{2}:?\d{2})$/.test(entry)) return entry;
  const at = new Date(entry);
  return Number.isNaN(at.getTime()) ? entry : at.toISOString();
}
