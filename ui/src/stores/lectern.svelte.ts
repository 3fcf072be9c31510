// All stores of the window, and the actions that touch more than one of them.
import { getContext, setContext } from "svelte";
import type {
  DownloadView,
  Enclosures,
  HardwareView,
  Problem,
  ProviderView,
  RemovedModel,
  SignedIn,
  SignIn,
} from "../bindings/app";
import type { Host } from "../host/host";
import { language, t } from "../i18n/i18n.svelte";
import type { Draft } from "../text/draft";
import { bytes } from "../text/format";
import { Ahead } from "./ahead";
import { Api } from "./api.svelte";
import { Desk, problemOf } from "./desk.svelte";
import { Drops, KeyFiles } from "./drops.svelte";
import { Loaded } from "./loaded.svelte";
import { Offers } from "./offers.svelte";
import type { Prefs } from "./prefs.svelte";
import { Route, type Section } from "./route.svelte";
import { NEW, Talks } from "./talks.svelte";
import { Toasts } from "./toasts.svelte";
import { Floating } from "./window.svelte";

const KEY = Symbol("lectern");
/** What toasts of models that came are about. */
const NEW_MODELS = "new models";
const FOR_THIS_SESSION = "a secret of this session";

export class Lectern {
  readonly desk: Desk;
  readonly talks: Talks;
  readonly offers: Offers;
  readonly api: Api;
  readonly drops: Drops;
  readonly keyFiles = new KeyFiles();
  readonly ahead: Ahead;
  /** What this computer has. */
  readonly machine = new Loaded<HardwareView>();
  readonly route = new Route();
  readonly toasts = new Toasts();
  readonly floating = new Floating();
  #refusedSignIns = new Map<string, Problem>();
  /** Set by the composer; puts the caret there. */
  focusComposer: (draft?: Draft) => void = () => {};
  /** Takes along what is read here; nothing where no message can be written. */
  takeImages: (read: () => Promise<Enclosures>) => void = () => {};
  /** Set by the list; puts the caret into its search field. */
  focusSearch: () => void = () => {};

  constructor(
    readonly host: Host,
    readonly prefs: Prefs,
  ) {
    this.desk = new Desk(host);
    this.talks = new Talks(host, this.desk);
    this.offers = new Offers(host, this.desk);
    this.api = new Api(host);
    this.ahead = new Ahead(host);
    this.drops = new Drops(
      host,
      (names, add) => void this.addDropped(names, add),
      () => this.takeImages(() => this.host.encloseDropped()),
      () => this.keyFiles.dropped(),
    );
    this.desk.onDownloaded = (download) => this.#downloaded(download);
    this.talks.onBegun = (id) => {
      if (this.current === NEW && this.route.page.at === "chat") this.route.chat(id);
    };
  }

  /** Reads what the window shows; once more, when it failed. */
  async load(): Promise<void> {
    await this.desk.load();
    if (this.desk.problem === null) await this.attempt(() => this.api.watch());
  }

  /** The conversation that is shown, or would be. */
  get current(): string {
    return this.route.page.at === "chat" ? (this.route.page.conversation ?? NEW) : NEW;
  }

  newConversation(): void {
    this.route.chat(null);
    this.floating.drawer = false;
    queueMicrotask(() => this.focusComposer());
  }

  openConversation(id: string): void {
    this.route.chat(id);
    this.floating.drawer = false;
  }

  /** `place` is where in that section, e.g. `["id", "files", "log"]`. */
  openSettings(section: Section = "general", place: readonly string[] = []): void {
    this.route.settings(section, place);
    this.floating.drawer = false;
  }

  async rename(id: string, title: string): Promise<void> {
    const before = this.desk.summary(id)?.title ?? "";
    if (title === "" || title === before) return;
    this.desk.patchSummary(id, { title });
    await this.attempt(
      () => this.host.renameConversation(id, title),
      () => this.desk.patchSummary(id, { title: before }),
    );
  }

  async remove(id: string): Promise<void> {
    const title = this.desk.summary(id)?.title || t("conversation.untitled");
    const done = await this.attempt(() => this.host.deleteConversation(id));
    if (!done) return;
    this.desk.dropSummary(id);
    if (this.current === id) this.newConversation();
    this.talks.forget(id);
    this.toasts.show(t("list.deleted", { title }), {
      action: { label: t("undo"), run: () => void this.restore(id) },
    });
  }

  async restore(id: string): Promise<void> {
    const done = await this.attempt(() => this.host.restoreConversation(id));
    if (!done) return;
    await this.attempt(() => this.desk.refreshConversations());
    this.openConversation(id);
  }

  /** Takes a server off the list; the toast brings it back. */
  async removeServer(id: string): Promise<void> {
    let token = "";
    const done = await this.attempt(async () => (token = await this.host.removeServer(id)));
    if (!done) return;
    this.openSettings("servers");
    const back = () => void this.attempt(() => this.host.restoreServer(token));
    this.toasts.show(t("servers.removed", { name: id }), { action: { label: t("undo"), run: back } });
  }

  /** Takes a model off the list; says what became of its file, and the toast brings both back. */
  async removeModel(id: string): Promise<void> {
    let removed: RemovedModel | null = null;
    await this.attempt(async () => (removed = await this.host.removeModel(id)));
    if (removed === null) return;
    const { token, model, file_deleted, freed } = removed as RemovedModel;
    const { page } = this.route;
    if (page.at === "settings" && page.section === "models" && page.place[1] === id) this.openSettings("models");
    const words = file_deleted
      ? t("models.removedDeleted", { name: model.name, size: bytes(language.lang, freed) })
      : t("models.removedListed", { name: model.name });
    const back = () => void this.attempt(() => this.host.restoreModel(token));
    // "Use it" and "show it" beside "undo" would be about a model that is gone.
    this.toasts.closeAbout(NEW_MODELS);
    this.toasts.show(words, { action: { label: t("undo"), run: back } });
  }

  /** Takes a provider off the list, with its models; the toast brings them back. */
  async removeProvider(provider: ProviderView): Promise<void> {
    let token = "";
    let n = 0;
    const done = await this.attempt(async () => {
      const removed = await this.host.removeProvider(provider.id);
      token = removed.token;
      n = removed.models.length;
    });
    if (!done) return;
    this.openSettings("providers");
    const back = () => void this.attempt(() => this.host.restoreProvider(token));
    const words = t("providers.removed", { name: provider.name, n });
    this.toasts.show(words, { action: { label: t("undo"), run: back } });
  }

  /** Signs in with what was typed before there was a page of the provider; that page says what came of it. */
  async signIn(provider: string, sign: SignIn): Promise<void> {
    try {
      this.signedIn(await this.host.signInProvider(provider, sign));
    } catch (error) {
      this.#refusedSignIns.set(provider, problemOf(error));
    }
  }

  /** The same with a key file that was let go of over the form of a new provider. */
  async signInDropped(provider: string): Promise<void> {
    try {
      this.signedIn(await this.host.signInDropped(provider));
    } catch (error) {
      this.#refusedSignIns.set(provider, problemOf(error));
    }
  }

  /** Says why a secret is not in the keyring, when it is not; once, not for each secret anew. */
  signedIn(result: SignedIn | null): void {
    const why = result?.for_this_session;
    if (!why) return;
    this.toasts.closeAbout(FOR_THIS_SESSION);
    const words = [`${t("login.session")}: ${why.message}.`, why.hint].filter(Boolean).join(" ");
    this.toasts.show(words, { about: FOR_THIS_SESSION });
  }

  takeSignInProblem(provider: string): Problem | null {
    const problem = this.#refusedSignIns.get(provider) ?? null;
    this.#refusedSignIns.delete(provider);
    return problem;
  }

  /** Files were let go of over the window. */
  async addDropped(names: readonly string[], add: () => Promise<unknown>): Promise<void> {
    const done = await this.attempt(add);
    if (!done) return;
    const run = () => this.openSettings("models");
    this.toasts.show(t("models.added", { n: names.length, names: names.join(", ") }), {
      about: NEW_MODELS,
      action: { label: t("models.show"), run },
    });
  }

  /** The hardware stays what it is; how much of it is free does not. */
  readMachine(): Promise<void> {
    return this.machine.load(() => this.host.hardware());
  }

  #downloaded({ name, state }: DownloadView): void {
    if (state.type === "failed") {
      const run = () => this.openSettings("models");
      this.toasts.show(`${t("download.failed")}: ${name}`, {
        tone: "danger",
        action: { label: t("models.show"), run },
      });
    } else if (state.type === "done") {
      const { model } = state;
      const use = () => void this.attempt(() => this.host.selectModel(model ?? ""));
      this.toasts.show(t("download.ready", { name }), {
        about: NEW_MODELS,
        action: model === null ? null : { label: t("download.use"), run: use },
      });
    }
  }

  async exportTrace(): Promise<void> {
    const id = this.current;
    if (id === NEW) return;
    await this.attempt(async () => {
      const path = await this.host.exportTrace(id);
      if (path !== null) this.toasts.show(t("trace.exported", { path }));
    });
  }

  async copy(text: string): Promise<boolean> {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      return copyByCommand(text);
    }
  }

  openLink(url: string): void {
    void this.attempt(() => this.host.openLink(url));
  }

  showInTrace(row: string): void {
    this.floating.traceRow = row;
    this.prefs.setTrace(true);
  }

  /** Runs an action whose failure has no better place than a toast. */
  async attempt(action: () => Promise<unknown>, undo?: () => void): Promise<boolean> {
    try {
      await action();
      return true;
    } catch (error) {
      undo?.();
      const problem = problemOf(error);
      this.toasts.show(problem.hint ? `${problem.message} ${problem.hint}` : problem.message, { tone: "danger" });
      return false;
    }
  }
}

export function provideLectern(lectern: Lectern): void {
  setContext(KEY, lectern);
}

export function useLectern(): Lectern {
  return getContext<Lectern>(KEY);
}

/** For web views that keep the clipboard from pages without a secure context. */
function copyByCommand(text: string): boolean {
  const field = document.createElement("textarea");
  field.value = text;
  field.style.position = "fixed";
  field.style.opacity = "0";
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  return done;
}
