// The fake host: keeps its conversations in memory and plays scripts.
import type {
  ApiAddress,
  ApiCallers,
  ApiKeyDraft,
  ApiView,
  AppNews,
  AppView,
  CompletionRequest,
  ConversationSummary,
  ConversationView,
  Enclosure,
  Enclosures,
  MessageView,
  NoteView,
  SendReceipt,
  SendRequest,
  VaultView,
} from "../../bindings/app";
import type { Blob as Bytes, Part, PermissionAnswer, QuestionAnswer } from "../../bindings/core";
import type { Host, OnEvents } from "../host";
import { FakeApi } from "./api";
import { FakeOffers } from "./offers";
import { Player, type Pace } from "./player";
import { FakeGeneration } from "./generation";
import { problem } from "./serverhost";
import { sceneOf, type Scene } from "./scenes";
import { scriptFor } from "./scripts";
import { isStored, nextId, type Script } from "./script";
import { NORWAY_NOTE } from "./texts";
import { appView, extraVault } from "./view";

/** Turns that are read at a time. */
const PAGE = 20;

interface Kept {
  summary: ConversationSummary;
  players: Player[];
  deleted: boolean;
}

export class FakeHost extends FakeGeneration implements Host {
  #kept: Kept[] = [];
  readonly #scene: Scene;
  readonly #api: FakeApi;
  readonly #offers: FakeOffers;
  readonly #ready: Promise<void>;
  readonly #speed: number;

  constructor(query: URLSearchParams) {
    const scene = sceneOf(query.get("scene") ?? "");
    const view = appView(scene.view ?? {});
    const vision = query.get("sees") !== null;
    super({ ...view, models: view.models.map((model) => ({ ...model, vision })) });
    this.#scene = scene;
    this.#api = new FakeApi(query.get("api") ?? "");
    this.#offers = new FakeOffers(query.get("offers") ?? "");
    this.#speed = Number(query.get("speed") ?? "1");
    this.#ready = this.#prepare();
  }

  async #prepare(): Promise<void> {
    const day = 86_400_000;
    for (const [index, past] of this.#scene.history.entries()) {
      const started = Date.now() - (index === 0 ? 600_000 : index * day * 1.4);
      const kept = this.#begin(past.title, started);
      for (const turn of past.turns) await this.#play(kept, turn.text, turn.script, "instant", started);
    }
    const { current } = this.#scene;
    if (!current) return;
    const kept = this.#begin(current.title, Date.now());
    this.#kept.unshift(...this.#kept.splice(this.#kept.indexOf(kept), 1));
    for (const turn of current.turns) await this.#play(kept, turn.text, turn.script, "instant", Date.now() - 60_000);
    if (current.live) void this.#play(kept, current.live.text, current.live.script, "live", Date.now());
    if (location.hash === "" || location.hash === "#/") {
      setTimeout(() => (location.hash = `#/c/${kept.summary.id}`));
    }
  }

  #begin(title: string, at: number): Kept {
    const stamp = new Date(at).toISOString();
    const summary = { id: nextId("conversation"), title, created_at: stamp, updated_at: stamp, running: false };
    const kept: Kept = { summary, players: [], deleted: false };
    this.#kept.push(kept);
    return kept;
  }

  async #play(
    kept: Kept,
    text: string,
    script: Script,
    pace: Pace,
    at: number,
    onEvents?: OnEvents,
    request?: SendRequest,
  ): Promise<void> {
    const player = new Player(kept.summary.id, text, pace, at, this.#speed, request && partsOf(request));
    player.model = request?.model ?? this.models.get(kept.summary.id) ?? this.view.model;
    if (onEvents) player.listen(onEvents);
    kept.players.push(player);
    if (pace === "live") {
      kept.summary = { ...kept.summary, running: true, updated_at: new Date().toISOString() };
      this.#tellConversations();
    }
    await player.play(script);
    kept.summary = { ...kept.summary, running: false };
    if (pace === "live") this.#tellConversations();
  }

  protected override begin(): string {
    const { id } = this.#begin("", Date.now()).summary;
    this.#tellConversations();
    return id;
  }

  #tellConversations(): void {
    this.news({ type: "conversations_changed", conversations: this.#list() });
  }

  #list(): ConversationSummary[] {
    return this.#kept
      .filter((kept) => !kept.deleted)
      .map((kept) => kept.summary)
      .sort((a, b) => b.updated_at.localeCompare(a.updated_at));
  }

  #find(id: string): Kept {
    const kept = this.#kept.find((one) => one.summary.id === id && !one.deleted);
    if (!kept) throw problem("no_conversation", `there is no conversation ${id}`);
    return kept;
  }

  #player(turn: string): Player {
    const player = this.#kept.flatMap((kept) => kept.players).find((one) => one.id === turn);
    if (!player) throw problem("no_turn", `there is no turn ${turn}`);
    return player;
  }

  async appView(): Promise<AppView> {
    if (this.#scene.broken) throw this.#scene.broken;
    await this.#ready;
    return this.view;
  }

  async subscribe(onNews: (news: AppNews) => void): Promise<void> {
    this.news = onNews;
  }

  async conversations(): Promise<ConversationSummary[]> {
    await this.#ready;
    return this.#list();
  }

  async conversation(id: string, before?: string): Promise<ConversationView> {
    await this.#ready;
    const kept = this.#find(id);
    const begins = (player: Player) => player.events[0]?.kind === "turn_started" && player.events[0].message_id;
    const end = before === undefined ? kept.players.length : kept.players.findIndex((one) => begins(one) === before);
    const earlier = Math.max(0, end - PAGE);
    const page = kept.players.slice(earlier, end);
    const messages: MessageView[] = [];
    for (const player of page) {
      const started = player.events[0];
      if (started?.kind !== "turn_started") continue;
      messages.push({
        id: started.message_id,
        turn: player.id,
        at: started.at,
        message: { role: "user", ...started.message },
      });
    }
    const turns = page.map((player) => ({ id: player.id, events: player.events.filter(isStored) }));
    const model = this.models.get(id);
    return { summary: kept.summary, messages, earlier, turns, ...(model ? { model } : {}) };
  }

  async renameConversation(id: string, title: string): Promise<void> {
    const kept = this.#find(id);
    kept.summary = { ...kept.summary, title };
    this.#tellConversations();
  }

  async deleteConversation(id: string): Promise<void> {
    this.#find(id).deleted = true;
    this.#tellConversations();
  }

  async restoreConversation(id: string): Promise<void> {
    const kept = this.#kept.find((one) => one.summary.id === id);
    if (kept) kept.deleted = false;
    this.#tellConversations();
  }

  async send(request: SendRequest, onEvents: OnEvents): Promise<SendReceipt> {
    if (/unsendable/.test(request.text)) throw problem("store", "write the message: disk is full", "Free some space.");
    const asked = window as unknown as { sent?: SendRequest[] };
    asked.sent = [...(asked.sent ?? []), request];
    const kept =
      request.conversation === null ? this.#begin(title(request.text), Date.now()) : this.#find(request.conversation);
    void this.#play(kept, request.text, scriptFor(request.text), "live", Date.now(), onEvents, request);
    return { conversation: kept.summary.id, turn: kept.players.at(-1)?.id ?? "" };
  }

  watchApi = (onApi: (api: ApiView) => void) => this.#api.watchApi(onApi);
  setApiOn = (on: boolean) => this.#api.setApiOn(on);
  setApiAddress = (address: ApiAddress) => this.#api.setApiAddress(address);
  setApiCallers = (callers: ApiCallers) => this.#api.setApiCallers(callers);
  apiKeys = () => this.#api.apiKeys();
  addApiKey = (draft: ApiKeyDraft) => this.#api.addApiKey(draft);
  revokeApiKey = (name: string) => this.#api.revokeApiKey(name);
  answerApproval = (id: string, allow: boolean) => this.#api.answerApproval(id, allow);
  apiMetrics = () => this.#api.apiMetrics();
  resources = (id: string) => this.#offers.resources(id);
  prompts = (id: string) => this.#offers.prompts(id);
  complete = (request: CompletionRequest) => this.#offers.complete(request);

  async attachTurn(turn: string, afterSeq: number, onEvents: OnEvents): Promise<void> {
    this.#player(turn).attach(afterSeq, onEvents);
  }

  async cancelTurn(turn: string): Promise<void> {
    this.#player(turn).stop();
  }

  async answerPermission(turn: string, call: string, answer: PermissionAnswer): Promise<void> {
    this.#player(turn).answer(call, answer);
  }

  async answerQuestion(turn: string, question: string, answer: QuestionAnswer): Promise<void> {
    const content = answer.answer === "accepted" ? answer.content : undefined;
    // As the core does: what it does not accept leaves the question open.
    if (content?.["name"] === "refused") throw problem("answer_does_not_fit", "`name`: this name is not accepted");
    this.#player(turn).reply(question, answer);
  }

  async longMessage(id: string): Promise<unknown> {
    if (id !== "long") throw problem("unknown_message", `there is no message \`${id}\``);
    return {
      jsonrpc: "2.0",
      id: 7,
      result: { content: [{ type: "text", text: "A long line of the answer.\n".repeat(4000) }] },
    };
  }

  async addVault(): Promise<VaultView | null> {
    const vault = extraVault();
    this.view = { ...this.view, vaults: [...this.view.vaults.filter((one) => one.path !== vault.path), vault] };
    this.news({ type: "vaults_changed", vaults: this.view.vaults });
    return vault;
  }

  async removeVault(path: string): Promise<void> {
    this.view = { ...this.view, vaults: this.view.vaults.filter((vault) => vault.path !== path) };
    this.news({ type: "vaults_changed", vaults: this.view.vaults });
  }

  async readNote(_server: string, path: string): Promise<NoteView> {
    if (path.includes("very long name"))
      throw problem("no_note", `there is no note at ${path}`, "It may have been moved.");
    const text = path.includes("Norway")
      ? NORWAY_NOTE
      : `# ${path}\n\nThe secret is a spoon of black treacle.\n\n住在翠湖边上的一家小旅馆，叫“听鸥楼”，每晚二百四十元。\n`;
    return { vault: this.view.vaults[0]?.path ?? "", path, text };
  }

  async openLink(url: string): Promise<void> {
    (window as unknown as { openedLinks?: string[] }).openedLinks ??= [];
    (window as unknown as { openedLinks: string[] }).openedLinks.push(url);
  }

  #enclosure(name: string | null): Enclosure {
    const preview = { mime: "image/png", base64: DOT };
    return { id: `${crypto.randomUUID()}.png`, name, mime: "image/png", width: 4, height: 4, preview };
  }

  async enclose(file: Bytes, name: string | null): Promise<Enclosure> {
    if (!file.mime.startsWith("image/"))
      throw problem("not_an_image", "this cannot be attached: it is none of PNG, JPEG, WebP, GIF, BMP and PDF");
    return this.#enclosure(name);
  }

  async chooseEnclosures(): Promise<Enclosures> {
    return { taken: [this.#enclosure("cat.png")], refused: [] };
  }

  async encloseDropped(): Promise<Enclosures> {
    const refused = problem("damaged_image", "`torn.png` cannot be attached: it is damaged");
    return { taken: [this.#enclosure("dog.jpg")], refused: [refused] };
  }

  async discardEnclosure(): Promise<void> {}

  async exportTrace(conversation: string): Promise<string | null> {
    return `/home/lena/Documents/lectern-${conversation}.json`;
  }
}

/** A picture of one colour. */
const DOT = "iVBORw0KGgoAAAANSUhEUgAAAAQAAAAECAIAAAAmkwkpAAAAEUlEQVR4nGPQlf9PEmIY1UCkDAAcmGBhIYKk7QAAAABJRU5ErkJggg==";

/** As the app makes them: the prompt, the words, what goes along. */
function partsOf({ text, prompt, attachments, enclosed }: SendRequest): Part[] {
  const said = prompt ? `(${prompt.name}: ${Object.values(prompt.arguments).join(", ")})` : "";
  const texts = [said, text].filter((one) => one !== "");
  return [
    ...(enclosed ?? []).map((): Part => ({ type: "image", mime: "image/png", base64: DOT })),
    ...texts.map((one): Part => ({ type: "text", text: one })),
    ...(attachments ?? []).map(({ uri }): Part => {
      return {
        type: "resource",
        uri,
        name: null,
        mime: "text/markdown",
        text: `# ${uri}\n\n${"A line.\n".repeat(60)}`,
      };
    }),
  ];
}

function title(text: string): string {
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}
