// All stores of the window, and the actions that touch more than one of them.
import { getContext, setContext } from "svelte";
import type { Host } from "../host/host";
import { t } from "../i18n/i18n.svelte";
import type { Draft } from "../text/draft";
import { Desk, problemOf } from "./desk.svelte";
import { Offers } from "./offers.svelte";
import type { Prefs } from "./prefs.svelte";
import { Route, type Section } from "./route.svelte";
import { NEW, Talks } from "./talks.svelte";
import { Toasts } from "./toasts.svelte";
import { Floating } from "./window.svelte";

const KEY = Symbol("lectern");

export class Lectern {
  readonly desk: Desk;
  readonly talks: Talks;
  readonly offers: Offers;
  readonly route = new Route();
  readonly toasts = new Toasts();
  readonly floating = new Floating();
  /** Set by the composer; puts the caret there. */
  focusComposer: (draft?: Draft) => void = () => {};
  /** Set by the list; puts the caret into its search field. */
  focusSearch: () => void = () => {};

  constructor(
    readonly host: Host,
    readonly prefs: Prefs,
  ) {
    this.desk = new Desk(host);
    this.talks = new Talks(host, this.desk);
    this.offers = new Offers(host, this.desk);
    this.talks.onBegun = (id) => {
      if (this.current === NEW && this.route.page.at === "chat") this.route.chat(id);
    };
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
