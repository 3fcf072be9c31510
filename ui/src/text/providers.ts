// What a person should know of a provider before anything is sent there.
// Invariant: pure. The app decides what is allowed; this says it while the user still types.
import type {
  ModelFacts,
  Price,
  ProviderDraft,
  ProviderKind,
  ProviderOptions,
  ProviderView,
  Reach,
} from "../bindings/app";
import { LONGEST_WAIT, SHORTEST_WAIT } from "../bindings/app/waits";
import type { Usage } from "../bindings/core";

/** Servers of models that people run themselves, where they listen unless told otherwise. */
export const ENDPOINTS: readonly { readonly name: string; readonly address: string }[] = [
  { name: "Ollama", address: "http://localhost:11434/v1" },
  { name: "LM Studio", address: "http://localhost:1234/v1" },
  { name: "vLLM", address: "http://localhost:8000/v1" },
  { name: "llama-server", address: "http://localhost:8080/v1" },
];

/** Suggestions; any other can be typed. */
export const LOCATIONS: readonly string[] = [
  "global",
  "eu",
  "us",
  "europe-west1",
  "europe-west3",
  "europe-west4",
  "europe-west9",
  "europe-north1",
  "us-central1",
  "us-east1",
  "us-east4",
  "us-west1",
  "northamerica-northeast1",
  "southamerica-east1",
  "asia-east1",
  "asia-northeast1",
  "asia-southeast1",
  "australia-southeast1",
];

export const KINDS: readonly ProviderKind[] = ["vertex", "vertex_express", "gemini", "openai_compatible"];

export interface Endpoint {
  readonly host: string;
  readonly reach: Reach;
  /** Whether what is sent is encrypted. */
  readonly secure: boolean;
}

const NEAR = [".local", ".lan", ".home.arpa", ".internal", ".intranet"];

/** An address as it is typed; null while it is none. The same rules as the app's. */
export function readEndpoint(text: string): Endpoint | null {
  const typed = text.trim();
  if (typed === "") return null;
  let url: URL;
  try {
    url = new URL(typed.includes("://") ? typed : `http://${typed}`);
  } catch {
    return null;
  }
  if ((url.protocol !== "http:" && url.protocol !== "https:") || url.hostname === "") return null;
  return { host: url.host, reach: reachOf(url.hostname), secure: url.protocol === "https:" };
}

function reachOf(host: string): Reach {
  const name = host.replace(/\.$/, "").toLowerCase();
  if (name.startsWith("[")) return reachOfV6(name.slice(1, -1));
  const numbers = /^(\d+)\.(\d+)\.\d+\.\d+$/.exec(name);
  if (numbers) return reachOfV4(Number(numbers[1]), Number(numbers[2]));
  if (name === "localhost" || name.endsWith(".localhost")) return "this_computer";
  return !name.includes(".") || NEAR.some((end) => name.endsWith(end)) ? "private_network" : "internet";
}

function reachOfV4(first: number, second: number): Reach {
  if (first === 127 || first === 0) return "this_computer";
  const near =
    first === 10 ||
    (first === 192 && second === 168) ||
    (first === 172 && second >= 16 && second < 32) ||
    (first === 169 && second === 254) ||
    (first === 100 && second >= 64 && second < 128);
  return near ? "private_network" : "internet";
}

function reachOfV6(address: string): Reach {
  // An address of IPv4 in one of IPv6, as `URL` writes it.
  const inner = /^::ffff:([0-9a-f]{1,4}):[0-9a-f]{1,4}$/.exec(address);
  if (inner) {
    const high = Number.parseInt(inner[1] ?? "", 16);
    return reachOfV4(high >> 8, high & 255);
  }
  if (address === "::1" || address === "::") return "this_computer";
  return /^f[cd]/.test(address) || /^fe[89ab]/.test(address) ? "private_network" : "internet";
}

/** What is wrong with sending a key there: it would be read on the way, by anybody or by the own network. */
export function keyRisk(endpoint: Endpoint | null): "refused" | "near" | null {
  if (endpoint === null || endpoint.secure || endpoint.reach === "this_computer") return null;
  return endpoint.reach === "internet" ? "refused" : "near";
}

/** What a provider is now, to change a part of it. */
export function draftOf(provider: ProviderView): ProviderDraft {
  return {
    kind: provider.kind,
    name: provider.name,
    project: provider.project ?? undefined,
    location: provider.location ?? undefined,
    base_url: provider.base_url ?? undefined,
    sign_in: provider.sign_in,
    options: provider.options,
  };
}

/** A number as people type it: with a point or a comma; null when it is none. */
export function amountOf(text: string): number | null {
  const plain = text.trim().replace(",", ".");
  return /^\d+(\.\d+)?$/.test(plain) ? Number(plain) : null;
}

/** What the words of a turn cost by the price that the user entered. */
export function costOf(usage: Usage, price: Price): number {
  const fresh = Math.max(0, usage.prompt_tokens - usage.reused_tokens);
  const cached = usage.reused_tokens * (price.cached ?? price.input);
  return (fresh * price.input + cached + usage.generated_tokens * price.output) / 1_000_000;
}

/** As an amount of money; currencies that are no code of three letters stand behind the figure. */
export function money(lang: string, amount: number, currency: string): string {
  const digits = { maximumSignificantDigits: 2, minimumFractionDigits: 0 } as const;
  try {
    return new Intl.NumberFormat(lang, { style: "currency", currency, ...digits }).format(amount);
  } catch {
    return `${new Intl.NumberFormat(lang, digits).format(amount)} ${currency}`;
  }
}

/** Models whose name has all words of the query. */
export function matching<T extends { readonly model: string; readonly name: string | null }>(
  models: readonly T[],
  query: string,
): readonly T[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  return models.filter(({ model, name }) => {
    const text = `${model} ${name ?? ""}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

/** What is known of a model, in the order in which it is shown. */
export function knownFacts(facts: ModelFacts): ("tools" | "noTools" | "vision" | "thinking")[] {
  const out: ("tools" | "noTools" | "vision" | "thinking")[] = [];
  if (facts.tools !== undefined) out.push(facts.tools ? "tools" : "noTools");
  if (facts.vision) out.push("vision");
  if (facts.thinking) out.push("thinking");
  return out;
}

/** How hard a model thinks, as Gemini 3 and OpenAI's reasoning models call it. */
export const LEVELS = ["minimal", "low", "medium", "high"] as const;

/** What Gemini may hold back (`HarmCategory`). */
export const SAFETY = [
  "HARM_CATEGORY_HARASSMENT",
  "HARM_CATEGORY_HATE_SPEECH",
  "HARM_CATEGORY_SEXUALLY_EXPLICIT",
  "HARM_CATEGORY_DANGEROUS_CONTENT",
] as const;

/** From when on it does (`HarmBlockThreshold`), the strictest first. */
export const THRESHOLDS = [
  "BLOCK_LOW_AND_ABOVE",
  "BLOCK_MEDIUM_AND_ABOVE",
  "BLOCK_ONLY_HIGH",
  "BLOCK_NONE",
  "OFF",
] as const;
export type Threshold = (typeof THRESHOLDS)[number];

/** What of these settings there is for this kind. */
export function fitting(kind: ProviderKind, options: ProviderOptions): ProviderOptions {
  const { whole_schemas: _whole, stream_usage: _usage, ...common } = options;
  const set = <K extends keyof ProviderOptions>(name: K) =>
    options[name] === undefined ? {} : { [name]: options[name] };
  return kind === "openai_compatible"
    ? { ...common, safety: {}, ...set("stream_usage") }
    : { ...common, ...set("whole_schemas") };
}

/** The choices, and what stands in the settings although we don't know it. */
export function choicesWith(known: readonly string[], now: string | undefined): readonly string[] {
  return now === undefined || known.includes(now) ? known : [...known, now];
}

/** What may be waited for, in the order in which it happens. */
export const WAITS = ["wait_seconds", "stall_seconds"] as const;
export type Wait = (typeof WAITS)[number];

/** Seconds as they are typed: undefined where nothing is, null where it is no wait. */
export function waitOf(text: string): number | undefined | null {
  const plain = text.trim();
  if (plain === "") return undefined;
  const seconds = /^\d{1,6}$/.test(plain) ? Number(plain) : 0;
  return seconds >= SHORTEST_WAIT && seconds <= LONGEST_WAIT ? seconds : null;
}

/** A switch that may be unset, as the value of a field. */
export function saidSwitch(value: boolean | undefined): "" | "yes" | "no" {
  return value === undefined ? "" : value ? "yes" : "no";
}

/** And back. */
export function switched(value: string): boolean | undefined {
  return value === "" ? undefined : value === "yes";
}
