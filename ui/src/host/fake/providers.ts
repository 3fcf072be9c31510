// What the fake host knows of remote models: providers of every kind, what they offer, what a test finds.
import type {
  FoundLogin,
  LoginView,
  ModelFacts,
  ModelTest,
  ModelView,
  OfferedModel,
  ProviderDraft,
  ProviderKind,
  ProviderView,
  RemoteDraft,
  SignInKind,
} from "../../bindings/app";
import { readEndpoint } from "../../text/providers";
import { problem } from "./serverhost";
import { starter } from "./models";

const WAYS: Record<ProviderKind, SignInKind[]> = {
  vertex: ["service_account", "application_default", "metadata"],
  vertex_express: ["key"],
  gemini: ["key"],
  openai_compatible: ["key", "none"],
};
const NAMES: Record<ProviderKind, string> = {
  vertex: "Vertex AI",
  vertex_express: "Vertex AI (express)",
  gemini: "Gemini API",
  openai_compatible: "",
};

export function addressOf({ kind, location, base_url }: ProviderDraft): string {
  if (base_url) return base_url.includes("://") ? base_url : `http://${base_url}`;
  if (kind === "gemini") return "https://generativelanguage.googleapis.com/";
  return location && location !== "global"
    ? `https://${location}-aiplatform.googleapis.com/`
    : "https://aiplatform.googleapis.com/";
}

/** As the app makes one of what was typed. */
export function providerOf(id: string, draft: ProviderDraft, login: LoginView | null = null): ProviderView {
  const { kind } = draft;
  const address = addressOf(draft);
  const endpoint = readEndpoint(address);
  if (endpoint === null)
    throw problem("bad_address", "the address can't be read", "Give an address like http://localhost:11434/v1.");
  const sign_in = draft.sign_in ?? (kind === "openai_compatible" ? "none" : (WAYS[kind][0] ?? "none"));
  return {
    id,
    name: draft.name ?? (NAMES[kind] || endpoint.host),
    kind,
    project: draft.project ?? null,
    location: draft.location ?? null,
    base_url: draft.base_url ? address : null,
    address,
    reach: endpoint.reach,
    sign_in,
    sign_ins: WAYS[kind],
    login: login ?? (sign_in === "none" ? { type: "not_needed" } : { type: "signed_out" }),
    options: draft.options ?? { safety: {} },
    models: [],
    problem: null,
  };
}

const signedIn = (change: Partial<Extract<LoginView, { type: "signed_in" }>>): LoginView => ({
  type: "signed_in",
  account: null,
  project: null,
  place: "keyring",
  from: null,
  ...change,
});

/** A provider of every kind, in every state. */
export function everyProvider(): ProviderView[] {
  return [
    {
      ...providerOf(
        "vertex",
        { kind: "vertex", project: "notes-of-lena-481516", location: "europe-west1" },
        signedIn({ account: "lectern@notes-of-lena-481516.iam.gserviceaccount.com", project: "notes-of-lena-481516" }),
      ),
      models: ["gemini-flash"],
    },
    {
      ...providerOf("ollama", { kind: "openai_compatible", name: "Ollama", base_url: "http://localhost:11434/v1" }),
      models: ["qwen-remote"],
    },
    providerOf("gemini", { kind: "gemini" }, signedIn({ place: "session" })),
    providerOf(
      "router",
      {
        kind: "openai_compatible",
        name: "A router with a very long name that somebody chose, for reasons of their own, in a hurry",
        base_url: "https://models.a-very-long-name-of-a-host-inside-another-domain.example.org/api/v1",
        sign_in: "key",
      },
      signedIn({ place: "environment", from: "LECTERN_ROUTER_KEY" }),
    ),
    {
      ...providerOf("adc", { kind: "vertex", name: "Vertex at work", sign_in: "application_default" }),
      problem: {
        code: "login_expired",
        message: "the login of lena@example.org has expired",
        hint: "Run `gcloud auth application-default login` in a terminal. See https://cloud.google.com/docs/authentication",
        detail: null,
      },
    },
    providerOf("nas", { kind: "openai_compatible", name: "vLLM", base_url: "http://nas:8000/v1" }),
  ];
}

export function remoteModel(id: string, provider: ProviderView, draft: RemoteDraft): ModelView {
  const facts: ModelFacts = { ...offeredFacts(draft.model), ...draft.facts };
  return {
    ...starter(),
    id,
    name: draft.name ?? draft.model,
    size: null,
    architecture: null,
    parameters: null,
    quantisation: null,
    context_length: facts.context_length ?? null,
    starter: false,
    vision: true,
    origin: "remote",
    remote: {
      provider: provider.id,
      provider_name: provider.name,
      kind: provider.kind,
      model: draft.model,
      host: readEndpoint(provider.address)?.host ?? "",
      reach: provider.reach,
      leaves_machine: provider.reach !== "this_computer",
      facts,
      price: draft.price ?? null,
    },
  };
}

export function everyRemote(): ModelView[] {
  const [vertex, ollama] = everyProvider();
  if (!vertex || !ollama) return [];
  const price = { input: 0.3, output: 2.5, cached: 0.075, currency: "EUR" };
  return [
    remoteModel("gemini-flash", vertex, { provider: "vertex", model: "gemini-3-flash", name: "Gemini 3 Flash", price }),
    remoteModel("qwen-remote", ollama, { provider: "ollama", model: "qwen3:14b" }),
  ];
}

function offeredFacts(model: string): ModelFacts {
  if (model.startsWith("gemini")) return { tools: true, vision: true, thinking: true, context_length: 1_048_576 };
  if (model.startsWith("qwen")) return { tools: true, thinking: true, context_length: 40_960 };
  return {};
}

export function offeredBy(provider: ProviderView): Omit<OfferedModel, "added">[] {
  const names =
    provider.kind === "openai_compatible"
      ? ["qwen3:14b", "llama3.2:3b", "a-model-of-somebody-with-a-very-long-name/that-goes-on-and-on-and-on:Q4_K_M"]
      : ["gemini-3-flash", "gemini-3-pro", ...Array.from({ length: 80 }, (_, n) => `gemini-2.5-tuned-${n + 1}`)];
  return names.map((model) => ({
    model,
    name: model === "gemini-3-pro" ? "Gemini 3 Pro" : null,
    facts: offeredFacts(model),
  }));
}

export const found: FoundLogin = {
  path: "/home/lena/.config/gcloud/application_default_credentials.json",
  variable: null,
  kind: "authorized_user",
  account: "lena@example.org",
  project: "notes-of-lena-481516",
  problem: null,
};

export function testOf(model: ModelView): ModelTest {
  const usage = (prompt: number, written: number, thinking: number) => ({
    prompt_tokens: prompt,
    reused_tokens: 0,
    generated_tokens: written,
    thinking_tokens: thinking,
    prompt_ms: null,
    generation_ms: null,
  });
  const base = { passed: true, text: "", thinking: "", calls: [], problem: null };
  const bad = /llama/.test(model.remote?.model ?? "");
  return {
    model: model.id,
    at: new Date().toISOString(),
    answer: { ...base, text: "pong <b>", usage: usage(21, 9, 6), first_ms: 420, total_ms: 610 },
    call: {
      ...base,
      passed: !bad,
      text: bad ? "I would call it, but I can't." : "",
      calls: bad ? [] : [{ tool: "add", arguments: '{"a":2,"b":3}' }],
      usage: usage(88, 24, 12),
      first_ms: 510,
      total_ms: 980,
      problem: bad
        ? {
            code: "no_call",
            message: "the model wrote text where a call was wanted",
            hint: "Choose one that calls tools.",
            detail: null,
          }
        : null,
    },
  };
}
