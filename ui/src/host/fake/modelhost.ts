// The models' part of the fake host: a list, downloads that get on, a machine.
import type {
  BenchView,
  CuratedView,
  DownloadRequest,
  DownloadView,
  DropNews,
  HardwareView,
  HubView,
  ModelDetails,
  ModelFolderView,
  ModelView,
  RemovedModel,
  RepositoryView,
  StatesView,
} from "../../bindings/app";
import type { ModelHost } from "../models";
import * as data from "./models";
import { FakeServers, problem } from "./serverhost";

/** Between two steps of a download. */
const STEP_MS = 120;

export class FakeModels extends FakeServers implements ModelHost {
  #folders: ModelFolderView[] = [...data.folders];
  #removed = new Map<string, { model: ModelView; at: number }>();
  #next = 100;
  #states: StatesView = { bytes: 183_500_800, conversations: 4, limit: 2_147_483_648, saved: true };
  #hub: HubView = { mirror: null, from_environment: null, token: "none" };

  #model(id: string): ModelView {
    const model = this.view.models.find((one) => one.id === id);
    if (!model) throw problem("unknown_model", `there is no model \`${id}\``);
    return model;
  }

  #tellModels(models: ModelView[], model = this.view.model): void {
    this.view = { ...this.view, model, models };
    this.news({ type: "models_changed", model, models });
  }

  #add(model: ModelView): ModelView {
    this.#tellModels([...this.view.models.filter((one) => one.id !== model.id), model]);
    return model;
  }

  async selectModel(id: string): Promise<void> {
    this.#tellModels(this.view.models, id);
  }

  async modelWanted(conversation: string | null, draft: string, model: string | null): Promise<void> {
    const asked = window as unknown as { wanted?: unknown[] };
    asked.wanted = [...(asked.wanted ?? []), { conversation, draft, ...(model === null ? {} : { model }) }];
  }

  async addModel(): Promise<ModelView | null> {
    return this.#add(data.extraModel());
  }

  async watchDrops(onDrop: (news: DropNews) => void): Promise<void> {
    (window as unknown as { fakeDrop: (news: DropNews) => void }).fakeDrop = onDrop;
  }

  async addDropped(): Promise<ModelView[]> {
    return [this.#add({ ...data.extraModel(), id: "dropped", name: "Dropped 1B" })];
  }

  async removeModel(id: string): Promise<RemovedModel> {
    const model = this.#model(id);
    const at = this.view.models.indexOf(model);
    this.#removed.set(id, { model, at });
    const left = this.view.models.filter((one) => one.id !== id);
    this.#tellModels(left, this.view.model === id ? "starter" : this.view.model);
    const file_deleted = model.origin === "library";
    return {
      token: id,
      model,
      file_deleted,
      freed: file_deleted ? (model.size ?? 0) : 0,
      until: "2099-01-01T00:00:00Z",
    };
  }

  async restoreModel(token: string): Promise<ModelView> {
    const removed = this.#removed.get(token);
    if (!removed) throw problem("unknown_removal", `nothing that was removed has the token \`${token}\``);
    const models = [...this.view.models];
    models.splice(removed.at, 0, removed.model);
    this.#tellModels(models);
    return removed.model;
  }

  async modelDetails(id: string, context: number | null): Promise<ModelDetails> {
    const model = this.#model(id);
    if (model.problem) throw model.problem;
    if (model.missing) throw problem("bad_model_file", `model file \`${model.path}\`: there is no such file`);
    return data.detailsOf(model, context);
  }

  async benchModel(id: string): Promise<BenchView> {
    const model = this.#model(id);
    if (id === "coder") throw problem("bench", "load the model: not enough memory", "Choose a smaller model.");
    await new Promise((resolve) => setTimeout(resolve, 400));
    const bench = { ...data.bench(id), at: new Date().toISOString() };
    this.#tellModels(this.view.models.map((one) => (one.id === id ? { ...model, bench } : one)));
    return bench;
  }

  async hardware(): Promise<HardwareView> {
    return data.machine();
  }

  async modelFolders(): Promise<ModelFolderView[]> {
    return this.#folders;
  }

  async chooseModelFolder(): Promise<ModelFolderView | null> {
    return this.addModelFolder("/home/lena/Downloads");
  }

  async addModelFolder(path: string): Promise<ModelFolderView> {
    const folder: ModelFolderView = { path, kind: "watched", models: 1, problem: null };
    this.#folders = [...this.#folders.filter((one) => one.path !== path), folder];
    return folder;
  }

  async removeModelFolder(path: string): Promise<void> {
    this.#folders = this.#folders.filter((one) => one.path !== path);
  }

  async curatedModels(): Promise<CuratedView[]> {
    return data.curated();
  }

  async listRepository(target: string): Promise<RepositoryView> {
    await new Promise((resolve) => setTimeout(resolve, 100));
    if (/nobody/.test(target)) {
      throw problem("unknown_repository", `there is no repository \`${target}\``, "Check how the name is written.");
    }
    return data.repository(target);
  }

  async hub(): Promise<HubView> {
    return this.#hub;
  }

  async keepHubToken(token: string | null): Promise<HubView> {
    if (token !== null && /\s/.test(token.trim())) throw problem("bad_token", "a token has no spaces");
    this.#hub = { ...this.#hub, token: token === null ? "none" : "kept" };
    return this.#hub;
  }

  async chooseModelFile(): Promise<string | null> {
    return "/home/lena/Downloads/draft-0.1b.gguf";
  }

  async savedStates(): Promise<StatesView> {
    return this.#states;
  }

  async forgetStates(): Promise<StatesView> {
    this.#states = { ...this.#states, bytes: 0, conversations: 0 };
    return this.#states;
  }

  async setHubMirror(mirror: string | null): Promise<HubView> {
    if (mirror !== null && !/^https?:/.test(mirror)) throw problem("bad_address", `\`${mirror}\` is no web address`);
    this.#hub = { ...this.#hub, mirror };
    return this.#hub;
  }

  async startDownload(request: DownloadRequest): Promise<DownloadView> {
    if (/Mistral/.test(request.target)) {
      throw problem("disk_full", "14.3 GB are needed, 9.8 GB are free", "Free some space, then try again.");
    }
    const file = request.file?.split("/").at(-1) ?? "model.gguf";
    const one = data.download({ id: `d${this.#next++}`, name: file, target: request.target, done: 0 });
    this.#setDownloads([...this.view.downloads, one]);
    this.#run(one.id);
    return one;
  }

  /** A part more, until it is whole. */
  #run(id: string): void {
    setTimeout(() => {
      const one = this.view.downloads.find((other) => other.id === id);
      if (!one || one.state.type !== "running") return;
      const total = one.total ?? 0;
      const done = Math.min(total, one.done + total / 8);
      const download: DownloadView = { ...one, done, seconds_left: Math.round((total - done) / 8_300_000) };
      if (done >= total) download.state = { type: "done", model: this.#arrived(one) };
      this.#change(download);
      this.#run(id);
    }, STEP_MS);
  }

  #arrived(one: DownloadView): string {
    const id = one.name.replace(/\.gguf$/, "").toLowerCase();
    this.#add({ ...data.extraModel(), id, name: one.name.replace(/\.gguf$/, ""), path: one.path, origin: "library" });
    return id;
  }

  #change(download: DownloadView): DownloadView {
    this.view = {
      ...this.view,
      downloads: this.view.downloads.map((one) => (one.id === download.id ? download : one)),
    };
    this.news({ type: "download_changed", download });
    return download;
  }

  #setDownloads(downloads: DownloadView[]): void {
    this.view = { ...this.view, downloads };
    this.news({ type: "downloads_changed", downloads });
  }

  #download(id: string): DownloadView {
    const one = this.view.downloads.find((other) => other.id === id);
    if (!one) throw problem("unknown_download", `there is no download \`${id}\``);
    return one;
  }

  async pauseDownload(id: string): Promise<DownloadView> {
    return this.#change({
      ...this.#download(id),
      state: { type: "paused" },
      bytes_per_second: null,
      seconds_left: null,
    });
  }

  async resumeDownload(id: string): Promise<DownloadView> {
    const download = this.#change({ ...this.#download(id), state: { type: "running" }, bytes_per_second: 8_300_000 });
    this.#run(id);
    return download;
  }

  async cancelDownload(id: string): Promise<void> {
    this.#setDownloads(this.view.downloads.filter((one) => one.id !== id));
  }
}
