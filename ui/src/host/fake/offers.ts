// What the servers of the fake host offer beside tools. `?offers=none|refused|slow|many` says how they answer.
import type {
  CompletionRequest,
  CompletionView,
  PromptsView,
  PromptView,
  ResourcesView,
  ResourceView,
} from "../../bindings/app";
import type { OfferHost } from "../servers";
import { problem } from "./serverhost";

function note(path: string, title: string): ResourceView {
  const uri = `note:///${path.split("/").map(encodeURIComponent).join("/")}`;
  return { uri, name: path, title, description: null, mime: "text/markdown", size: 2048 };
}

function prompt(name: string, title: string, description: string, ...names: string[]): PromptView {
  const args = names.map((one) => ({
    name: one.replace("?", ""),
    title: null,
    description: `The ${one.replace("?", "")} that it is about.`,
    required: !one.endsWith("?"),
  }));
  return { name, title, description, arguments: args };
}

const NOTES: readonly ResourceView[] = [
  note("Recipes/Oat biscuits.md", "Oat biscuits"),
  note("Travel/Lyon.md", "Lyon"),
  note("Travel/2019 Norway by rail.md", "Norway by rail"),
  note(`Journal/${"a very long folder name ".repeat(6)}/note.md`, `A day with ${"many words ".repeat(12)}`),
];

const RESOURCES: Readonly<Record<string, ResourcesView>> = {
  notes: {
    server: "notes",
    resources: [...NOTES],
    templates: [
      { uri_template: "note:///{+path}", name: "note", title: "A note", description: "By its path", mime: null },
    ],
  },
};

const PROMPTS: Readonly<Record<string, PromptsView>> = {
  everything: {
    server: "everything",
    prompts: [
      prompt("simple-prompt", "Simple prompt", "A prompt with no arguments."),
      prompt("team", "Team management", "The first choice narrows the second.", "department", "name"),
      prompt("weather", "Weather\u202eevil", "Asks for the weather of a city.", "city", "state?"),
    ],
  },
};

const VALUES: Readonly<Record<string, readonly string[]>> = {
  department: ["Engineering", "Sales", "Marketing", "Support"],
  path: NOTES.map(({ name }) => name),
};

const PEOPLE: Readonly<Record<string, readonly string[]>> = { Engineering: ["Alice", "Bob"], Sales: ["David", "Eve"] };

export class FakeOffers implements OfferHost {
  constructor(private readonly how: string) {}

  async resources(server: string): Promise<ResourcesView> {
    await this.#answer(server);
    const view = RESOURCES[server] ?? { server, resources: [], templates: [] };
    if (this.how === "none") return { server, resources: [], templates: [] };
    if (this.how !== "many") return view;
    const many = Array.from({ length: 900 }, (_, index) => note(`Log/${index}.md`, `Day ${index}`));
    return { ...view, resources: [...view.resources, ...(server === "notes" ? many : [])] };
  }

  async prompts(server: string): Promise<PromptsView> {
    await this.#answer(server);
    return (this.how === "none" ? null : PROMPTS[server]) ?? { server, prompts: [] };
  }

  async complete({ server, argument, typed, known }: CompletionRequest): Promise<CompletionView> {
    await this.#answer(server);
    const all = argument === "name" ? (PEOPLE[known["department"] ?? ""] ?? []) : (VALUES[argument] ?? []);
    return { values: all.filter((one) => one.startsWith(typed)), has_more: false };
  }

  async #answer(server: string): Promise<void> {
    if (this.how === "slow" && server === "everything") await new Promise(() => {});
    if (this.how === "refused" && server === "everything")
      throw problem("server_refused", "the server `everything` gave no list: internal error");
  }
}
