// Numbers, times and sizes as the user's language writes them.
// Invariant: pure; the language is an argument.

function unit(lang: string, unit: string, value: number, digits: number): string {
  return new Intl.NumberFormat(lang, {
    style: "unit",
    unit,
    unitDisplay: "short",
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  }).format(value);
}

/** `<0.01 s`, `0.04 s`, `0.4 s`, `12 s`, `2 min 5 s`: whole seconds from ten on. */
export function duration(lang: string, ms: number): string {
  const safe = Math.max(0, ms);
  if (safe === 0) return seconds(lang, 0, 0);
  if (safe < 10) return `<${seconds(lang, 0.01, 2)}`;
  if (safe < 100) return seconds(lang, safe / 1000, 2);
  if (safe < 9950) return seconds(lang, safe / 1000, 1);
  const whole = Math.round(safe / 1000);
  if (whole < 60) return seconds(lang, whole, 0);
  const rest = whole % 60;
  const minutes = unit(lang, "minute", Math.floor(whole / 60), 0);
  return rest === 0 ? minutes : `${minutes} ${seconds(lang, rest, 0)}`;
}

function seconds(lang: string, value: number, digits: number): string {
  // Intl writes `sec` in English; the symbol of the unit is `s` everywhere but in Chinese.
  if (lang.startsWith("zh")) return unit(lang, "second", value, digits);
  return `${number(lang, value, digits)} s`;
}

export function number(lang: string, value: number, digits = 0): string {
  return new Intl.NumberFormat(lang, { minimumFractionDigits: digits, maximumFractionDigits: digits }).format(value);
}

export function percent(lang: string, fraction: number): string {
  return new Intl.NumberFormat(lang, { style: "percent", maximumFractionDigits: 0 }).format(fraction);
}

/** Sizes of files in MB, the smallest ones in kB. */
export function bytes(lang: string, value: number): string {
  if (value < 100_000) return unit(lang, "kilobyte", value / 1000, value < 1000 ? 1 : 0);
  if (value < 1_000_000_000) return unit(lang, "megabyte", value / 1e6, value < 1e7 ? 1 : 0);
  return unit(lang, "gigabyte", value / 1e9, 1);
}

/** `1.4 M`, `3 B`: how many weights a model has. */
export function compact(lang: string, value: number): string {
  return new Intl.NumberFormat(lang, { notation: "compact", maximumFractionDigits: 1 }).format(value);
}

export function clock(lang: string, at: string): string {
  return new Intl.DateTimeFormat(lang, { timeStyle: "short" }).format(new Date(at));
}

/** With seconds, for what comes quickly. */
export function clockSeconds(lang: string, at: string): string {
  return new Intl.DateTimeFormat(lang, { timeStyle: "medium" }).format(new Date(at));
}

export function fullDate(lang: string, at: string): string {
  return new Intl.DateTimeFormat(lang, { dateStyle: "long", timeStyle: "short" }).format(new Date(at));
}

/** The time of today, the day of this year, else the date. */
export function shortDate(lang: string, at: string, now: Date): string {
  const date = new Date(at);
  if (date.toDateString() === now.toDateString()) return clock(lang, at);
  const options: Intl.DateTimeFormatOptions =
    date.getFullYear() === now.getFullYear()
      ? { day: "numeric", month: "short" }
      : { day: "numeric", month: "short", year: "numeric" };
  return new Intl.DateTimeFormat(lang, options).format(date);
}

export type Age = "today" | "yesterday" | "week" | "older";

/** The group of the list in which something of that date stands. */
export function age(at: string, now: Date): Age {
  const midnight = new Date(now.getFullYear(), now.getMonth(), now.getDate()).getTime();
  const time = new Date(at).getTime();
  if (time >= midnight) return "today";
  if (time >= midnight - 86_400_000) return "yesterday";
  return time >= midnight - 6 * 86_400_000 ? "week" : "older";
}

/** Milliseconds between two instants; 0 when one is missing or the clock was set back. */
export function between(from: string | null | undefined, to: string | null | undefined): number {
  if (!from || !to) return 0;
  return Math.max(0, Date.parse(to) - Date.parse(from));
}

/** A text as a head that may be cut and a tail that stays, so that both ends of a long path can be read. */
export function splitForMiddleCut(text: string): { head: string; tail: string } {
  const points = [...text];
  if (points.length <= 16) return { head: text, tail: "" };
  const slash = text.lastIndexOf("/");
  const last = slash < 0 ? [] : [...text.slice(slash)];
  const keep = last.length > 0 && last.length <= 20 ? last.length : 10;
  return { head: points.slice(0, -keep).join(""), tail: points.slice(-keep).join("") };
}

/** A rate in tokens per second, or null when it can't be known. */
export function rate(tokens: number, ms: number | null | undefined): number | null {
  return ms && ms > 0 && tokens > 0 ? (tokens * 1000) / ms : null;
}
