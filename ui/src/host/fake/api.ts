// The local API of the fake host: a server that listens nowhere. `?api=running|empty|port|session|locked|waiting`.
// Invariant: as in the app, a secret comes once, in the answer to making it.
import type {
  ApiAddress,
  ApiCallers,
  ApiKeyDraft,
  ApiKeysView,
  ApiKeyView,
  ApiState,
  ApiView,
  MadeApiKey,
  MetricsView,
  TimesView,
  WaitingCall,
} from "../../bindings/app";
import type { ApiHost } from "../api";
import { problem } from "./serverhost";

const PAUSE_MS = 120;
const TAKEN = 11480;

const NO_KEYRING = problem("no_keyring", "the keyring can't be used: org.freedesktop.secrets is not there");

export class FakeApi implements ApiHost {
  #view: ApiView;
  #keys: ApiKeyView[];
  #tell: (view: ApiView) => void = () => {};
  readonly #mode: string;

  constructor(mode: string) {
    this.#mode = mode;
    const on = ["running", "empty", "waiting"].includes(mode);
    const state: ApiState = on ? { type: "running", url: "http://127.0.0.1:11480" } : { type: "off" };
    const waiting = mode === "waiting" ? WAITING() : [];
    this.#view = { on, state, bind: "127.0.0.1", port: 11480, beyond: false, callers: NOBODY, waiting };
    this.#keys = mode === "running" || mode === "locked" ? KEYS() : [];
    if (mode === "empty")
      this.#keys = KEYS()
        .slice(1, 2)
        .map((key) => ({ ...key, scopes: [], place: "missing" }));
    if (mode === "locked") {
      this.#keys = this.#keys.map((key) => ({ ...key, scopes: [], server_tools: false, place: "missing" }));
    }
  }

  #set(change: Partial<ApiView>): ApiView {
    this.#view = { ...this.#view, ...change };
    this.#tell(this.#view);
    return this.#view;
  }

  /** What the shell does in the background. */
  #turn(): ApiView {
    if (!this.#view.on) {
      const running = this.#view.state.type === "running";
      setTimeout(() => this.#set({ state: { type: "off" } }), PAUSE_MS);
      return this.#set({ state: { type: running ? "stopping" : "off" } });
    }
    setTimeout(() => {
      const { bind, port } = this.#view;
      const taken = this.#mode === "port" && port === TAKEN;
      const why = problem("port_in_use", `another program listens at ${bind}:${port}`, "Choose another port.");
      const url = `http://${bind === "0.0.0.0" ? "127.0.0.1" : bind}:${port}`;
      this.#set({ state: taken ? { type: "failed", problem: why } : { type: "running", url } });
    }, PAUSE_MS);
    return this.#set({ state: { type: "starting" } });
  }

  async watchApi(onApi: (api: ApiView) => void): Promise<void> {
    this.#tell = onApi;
    onApi(this.#view);
  }

  async setApiOn(on: boolean): Promise<ApiView> {
    this.#view = { ...this.#view, on };
    return this.#turn();
  }

  async setApiAddress({ bind, port, beyond }: ApiAddress): Promise<ApiView> {
    const read = bind === "localhost" ? "127.0.0.1" : bind;
    if (!/^(\d+\.){3}\d+$|^[0-9a-f:]*:[0-9a-f:]*$/.test(read))
      throw problem("bad_address", `\`${bind}\` is no address to listen at`);
    const outside = !read.startsWith("127.") && read !== "::1";
    if (outside && !beyond) throw problem("beyond_this_computer", `other computers reach ${read}`);
    this.#view = { ...this.#view, bind: read, port, beyond: outside };
    return this.#view.on ? this.#turn() : this.#set({});
  }

  async setApiCallers({ origins, hosts }: ApiCallers): Promise<ApiView> {
    for (const text of origins)
      if (!/^https?:\/\/[\w.-]+/.test(text)) throw problem("bad_origin", `\`${text}\` is not the origin of a web page`);
    for (const text of hosts)
      if (!/^[\w.-]+$/.test(text)) throw problem("bad_host", `\`${text}\` is not a name of this computer`);
    const callers = { origins: origins.map((text) => new URL(text).origin), hosts };
    this.#view = { ...this.#view, callers };
    return this.#view.on ? this.#turn() : this.#set({});
  }

  async apiKeys(): Promise<ApiKeysView> {
    const locked = problem(
      "keyring_locked",
      "the keyring is locked",
      "Unlock the keyring of your system and try again.",
    );
    return { keys: [...this.#keys], problem: this.#mode === "locked" ? locked : null };
  }

  async addApiKey({ name, scopes, server_tools }: ApiKeyDraft): Promise<MadeApiKey> {
    if (this.#keys.some((key) => key.name === name.trim()))
      throw problem("key_exists", `there is a key \`${name}\` already`);
    const session = this.#mode === "session";
    const key: ApiKeyView = {
      name: name.trim(),
      scopes,
      server_tools,
      last_used: null,
      place: session ? "session" : "keyring",
    };
    this.#keys = [...this.#keys, key];
    return { key, secret: SECRET, for_this_session: session ? NO_KEYRING : null };
  }

  async revokeApiKey(name: string): Promise<void> {
    this.#keys = this.#keys.filter((key) => key.name !== name);
  }

  async answerApproval(id: string, allow: boolean): Promise<void> {
    const known = this.#view.waiting.some((one) => one.id === id);
    if (!known) throw problem("not_waiting", "this call does not wait any more");
    const asked = window as unknown as { approved?: [string, boolean][] };
    asked.approved = [...(asked.approved ?? []), [id, allow]];
    this.#set({ waiting: this.#view.waiting.filter((one) => one.id !== id) });
  }

  async apiMetrics(): Promise<MetricsView | null> {
    if (this.#view.state.type !== "running") return null;
    return this.#mode === "running" ? NUMBERS() : NONE();
  }
}

const NOBODY: ApiCallers = { origins: [], hosts: [] };

/** Made up, as long as a real one. */
const SECRET = `sk-lectern-${"0123456789abcdef".repeat(4)}`;

function KEYS(): ApiKeyView[] {
  const used = new Date(Date.now() - 90_000).toISOString();
  const scopes: ApiKeyView["scopes"] = ["models", "tools"];
  return [
    { name: "Big-AGI", scopes, server_tools: true, last_used: used, place: "keyring" },
    { name: "editor", scopes: ["models"], server_tools: false, last_used: null, place: "keyring" },
    {
      name: "a-key-with-a-very-long-name-that-somebody-pasted-by-mistake-1234",
      scopes: ["models", "tools", "approvals"],
      server_tools: false,
      last_used: null,
      place: "session",
    },
  ];
}

function WAITING(): WaitingCall[] {
  const until = new Date(Date.now() + 300_000).toISOString();
  const text = "- oats\n- lemons\n- candles\n".repeat(12);
  return [
    {
      id: "apr_1",
      key: "Big-AGI",
      session: null,
      call: { id: "c1", tool: "notes__create_note", arguments: { path: "Lists/Shopping.md", text } },
      until,
    },
    {
      id: "apr_2",
      key: "editor",
      session: "s1",
      call: { id: "c2", tool: "delete_everything", arguments: {}, malformed: '{"path": ' },
      until,
    },
  ];
}

const UP_TO = [0.01, 0.03, 0.1, 0.3, 1, 2, 5, 10, 30, 60, 300, 1800, null];

function times(seconds: number, ...counts: number[]): TimesView {
  const ranges = UP_TO.map((up_to, at) => ({ up_to, count: counts[at] ?? 0 }));
  return { count: counts.reduce((sum, one) => sum + one, 0), seconds, ranges };
}

function NUMBERS(): MetricsView {
  return {
    since: new Date(Date.now() - 3_600_000).toISOString(),
    requests: 1284,
    running: 3,
    addresses: [
      { address: "/v1/chat/completions", requests: 1201, refused: 14, time: times(0) },
      { address: "/v1/models", requests: 83, refused: 0, time: times(0) },
    ],
    answers: 1187,
    answers_with_tools: 296,
    first_token: times(420, 0, 0, 210, 640, 290, 40, 7),
    answer: times(5900, 0, 0, 0, 80, 210, 460, 300, 110, 22, 4, 0, 0, 1),
    tools: [
      { tool: "notes__search", calls: 402, failed: 3, denied: 0, cancelled: 1, time: times(12) },
      { tool: "notes__create_note", calls: 12, failed: 0, denied: 5, cancelled: 0, time: times(1) },
      {
        tool: "a_server_with_a_long_name__a_tool_whose_name_somebody_did_not_want_to_cut_short_at_all",
        calls: 1,
        failed: 1,
        denied: 0,
        cancelled: 0,
        time: times(1),
      },
    ],
    tokens: { prompt: 2_410_233, reused: 1_902_110, written: 212_040 },
    errors: [
      { code: "invalid_api_key", count: 9 },
      { code: "context_length_exceeded", count: 4 },
      { code: "unsupported_value", count: 1 },
    ],
  };
}

function NONE(): MetricsView {
  const none = { answers: 0, answers_with_tools: 0, first_token: times(0), answer: times(0), tools: [], errors: [] };
  const tokens = { prompt: 0, reused: 0, written: 0 };
  return { since: new Date().toISOString(), requests: 0, running: 0, addresses: [], tokens, ...none };
}
