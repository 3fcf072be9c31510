// Which page the window shows, as the hash of its address: `#/`, `#/c/ID`, `#/settings/SECTION`.

export type Section = "general" | "models" | "servers" | "vaults" | "about";
export const SECTIONS: readonly Section[] = ["general", "models", "servers", "vaults", "about"];

export type Page = { at: "chat"; conversation: string | null } | { at: "settings"; section: Section };

export function parseHash(hash: string): Page {
  const [room, rest] = hash.replace(/^#?\/?/, "").split("/");
  if (room === "settings") {
    const section = SECTIONS.find((known) => known === rest);
    return { at: "settings", section: section ?? "general" };
  }
  if (room === "c" && rest) {
    try {
      return { at: "chat", conversation: decodeURIComponent(rest) };
    } catch {
      return { at: "chat", conversation: null };
    }
  }
  return { at: "chat", conversation: null };
}

export function hashOf(page: Page): string {
  if (page.at === "settings") return `#/settings/${page.section}`;
  return page.conversation === null ? "#/" : `#/c/${encodeURIComponent(page.conversation)}`;
}

export class Route {
  page = $state.raw<Page>({ at: "chat", conversation: null });
  /** The conversation that settings lead back to. */
  #last: string | null = null;

  constructor() {
    this.page = parseHash(location.hash);
    if (this.page.at === "chat") this.#last = this.page.conversation;
    addEventListener("hashchange", () => this.#set(parseHash(location.hash)));
  }

  go(page: Page): void {
    this.#set(page);
    const hash = hashOf(page);
    if (location.hash !== hash) history.pushState(null, "", hash);
  }

  chat(conversation: string | null): void {
    this.go({ at: "chat", conversation });
  }

  settings(section: Section): void {
    this.go({ at: "settings", section });
  }

  back(): void {
    this.chat(this.#last);
  }

  #set(page: Page): void {
    if (page.at === "chat") this.#last = page.conversation;
    this.page = page;
  }
}
