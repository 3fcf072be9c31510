// What the frame of the window shows: models, servers, vaults, the list of conversations.
import type {
  AppNews,
  AppView,
  ConversationSummary,
  DownloadView,
  ModelView,
  Problem,
  ProviderView,
  ServerView,
  VaultView,
} from "../bindings/app";
import type { ToolSpec } from "../bindings/core";
import { isProblem, type Host } from "../host/host";

export interface ToolPlace {
  readonly spec: ToolSpec;
  readonly server: ServerView;
}

export class Desk {
  view = $state.raw<AppView | null>(null);
  conversations = $state.raw<readonly ConversationSummary[]>([]);
  problem = $state.raw<Problem | null>(null);
  loading = $state(true);
  /** Called when a download has ended while this window looked. */
  onDownloaded: (download: DownloadView) => void = () => {};

  /** The tools of all servers by their public name. */
  readonly tools = $derived.by(() => {
    const tools = new Map<string, ToolPlace>();
    for (const server of this.view?.servers ?? []) {
      for (const { spec } of server.tools) tools.set(spec.name, { spec, server });
    }
    return tools as ReadonlyMap<string, ToolPlace>;
  });

  /** News that came while the view was on its way; the view may be older than they are. */
  #early: AppNews[] = [];

  constructor(private readonly host: Host) {}

  async load(): Promise<void> {
    this.loading = true;
    this.problem = null;
    try {
      // News first: what changes while the view is read must not be lost.
      await this.host.subscribe((news) => this.#hear(news));
      const [view, conversations] = await Promise.all([this.host.appView(), this.host.conversations()]);
      this.view = view;
      this.conversations = conversations;
      this.loading = false;
      for (const news of this.#early.splice(0)) this.#hear(news);
    } catch (error) {
      this.problem = problemOf(error);
    } finally {
      this.loading = false;
    }
  }

  get model(): ModelView | null {
    return this.view?.models.find((model) => model.id === this.view?.model) ?? null;
  }

  get downloads(): readonly DownloadView[] {
    return this.view?.downloads ?? [];
  }

  get providers(): readonly ProviderView[] {
    return this.view?.providers ?? [];
  }

  get servers(): readonly ServerView[] {
    return this.view?.servers ?? [];
  }

  get vaults(): readonly VaultView[] {
    return this.view?.vaults ?? [];
  }

  modelName(id: string | null): string {
    if (id === null) return "";
    return this.view?.models.find((model) => model.id === id)?.name ?? id;
  }

  summary(id: string | null): ConversationSummary | null {
    return this.conversations.find((conversation) => conversation.id === id) ?? null;
  }

  /** Shows a change at once; the news of the host confirm it. */
  patchSummary(id: string, change: Partial<ConversationSummary>): void {
    this.conversations = this.conversations.map((known) => (known.id === id ? { ...known, ...change } : known));
  }

  dropSummary(id: string): void {
    this.conversations = this.conversations.filter((known) => known.id !== id);
  }

  /** Reads everything anew, where news may be missing. */
  async refreshView(): Promise<void> {
    this.view = await this.host.appView();
  }

  async refreshConversations(): Promise<void> {
    this.conversations = await this.host.conversations();
  }

  #hear(news: AppNews): void {
    if (this.loading) {
      this.#early.push(news);
      return;
    }
    if (news.type === "conversations_changed") {
      this.conversations = news.conversations;
      return;
    }
    if (this.view === null) return;
    switch (news.type) {
      case "server_changed": {
        const known = this.view.servers.some((server) => server.id === news.server.id);
        const servers = known
          ? this.view.servers.map((server) => (server.id === news.server.id ? news.server : server))
          : [...this.view.servers, news.server];
        this.view = { ...this.view, servers };
        break;
      }
      case "servers_changed":
        this.view = { ...this.view, servers: news.servers };
        break;
      case "models_changed":
        this.view = { ...this.view, model: news.model, models: news.models };
        break;
      case "providers_changed":
        this.view = { ...this.view, providers: news.providers };
        break;
      case "downloads_changed":
        this.#setDownloads(news.downloads);
        break;
      case "download_changed":
        this.#setDownloads(this.view.downloads.map((one) => (one.id === news.download.id ? news.download : one)));
        break;
      case "vaults_changed":
        this.view = { ...this.view, vaults: news.vaults };
        break;
    }
  }

  #setDownloads(downloads: DownloadView[]): void {
    if (this.view === null) return;
    const before = new Map(this.view.downloads.map((one) => [one.id, one.state.type]));
    this.view = { ...this.view, downloads };
    for (const one of downloads) {
      const was = before.get(one.id);
      if (was !== undefined && was !== one.state.type && ["done", "failed"].includes(one.state.type)) {
        this.onDownloaded(one);
      }
    }
  }
}

/** Whatever was thrown, as a problem that can be shown. */
export function problemOf(error: unknown): Problem {
  if (isProblem(error)) return error;
  const message = error instanceof Error ? error.message : String(error);
  return { code: "unknown", message, hint: null, detail: null };
}
