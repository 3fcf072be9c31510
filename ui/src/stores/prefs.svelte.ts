// What this window remembers: language, theme, which panels are open. Kept in the web view's own storage.
import { language, pickLang, type Lang } from "../i18n/i18n.svelte";

export type Theme = "system" | "light" | "dark";
export type LangChoice = "system" | Lang;

interface Saved {
  theme: Theme;
  lang: LangChoice;
  list: boolean;
  trace: boolean;
  traceWidth: number;
}

const KEY = "lectern.prefs";
const DEFAULTS: Saved = { theme: "system", lang: "system", list: true, trace: false, traceWidth: 380 };
export const TRACE_MIN = 300;
export const TRACE_MAX = 760;

export class Prefs {
  theme = $state<Theme>("system");
  lang = $state<LangChoice>("system");
  list = $state(true);
  trace = $state(false);
  traceWidth = $state(380);

  constructor(overrides: Partial<Saved> = {}) {
    const saved = { ...DEFAULTS, ...read(), ...overrides };
    this.theme = saved.theme;
    this.lang = saved.lang;
    this.list = saved.list;
    this.trace = saved.trace;
    this.traceWidth = clampWidth(saved.traceWidth);
    this.apply();
  }

  setTheme(theme: Theme): void {
    this.theme = theme;
    this.save();
  }

  setLang(lang: LangChoice): void {
    this.lang = lang;
    this.save();
  }

  toggleList(): void {
    this.list = !this.list;
    this.save();
  }

  setTrace(open: boolean): void {
    this.trace = open;
    this.save();
  }

  setTraceWidth(width: number): void {
    this.traceWidth = clampWidth(width);
    this.save();
  }

  private save(): void {
    const { theme, lang, list, trace, traceWidth } = this;
    try {
      localStorage.setItem(KEY, JSON.stringify({ theme, lang, list, trace, traceWidth }));
    } catch {
      // Without storage the choice holds until the window is closed.
    }
    this.apply();
  }

  private apply(): void {
    language.lang = this.lang === "system" ? pickLang(navigator.languages) : this.lang;
    document.documentElement.lang = language.lang;
    document.documentElement.dataset["theme"] = this.theme;
  }
}

function clampWidth(width: number): number {
  return Math.min(TRACE_MAX, Math.max(TRACE_MIN, Math.round(width)));
}

function read(): Partial<Saved> {
  try {
    const value: unknown = JSON.parse(localStorage.getItem(KEY) ?? "{}");
    return typeof value === "object" && value !== null ? (value as Partial<Saved>) : {};
  } catch {
    return {};
  }
}
