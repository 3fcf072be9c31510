// Which page the window shows, as the hash of its address: `#/`, `#/c/ID`, `#/settings/SECTION/PLACE…`.

export type Section = "general" | "models" | "providers" | "servers" | "api" | "vaults" | "about";
export const SECTIONS: readonly Section[] = ["general", "models", "providers", "servers", "api", "vaults", "about"];

export type Page =
  { at: "chat"; conversation: string | null } | { at: "settings"; section: Section; place: readonly string[] };

export function parseHash(hash: string): Page {
  const [room, ...rest] = hash
    .replace(/^#?\/?/, "")
    .split("/")
    .map(decoded);
  if (room === "settings") {
    const section = SECTIONS.find((known) => known === rest[0]);
    return { at: "settings", section: section ?? "general", place: rest.slice(1).filter((part) => part !== "") };
  }
  if (room === "c" && rest[0]) return { at: "chat", conversation: rest[0] };
  return { at: "chat", conversation: null };
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return "";
  }
}

export function hashOf(page: Page): string {
  if (page.at === "settings") return `#/${["settings", page.section, ...page.place].map(encodeURIComponent).join("/")}`;
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

  settings(section: Section, place: readonly string[] = []): void {
    this.go({ at: "settings", section, place });
  }

  back(): void {
    this.chat(this.#last);
  }

  #set(page: Page): void {
    if (page.at === "chat") this.#last = page.conversation;
    this.page = page;
  }
}
