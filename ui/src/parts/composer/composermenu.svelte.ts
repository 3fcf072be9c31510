// The open menu of the composer: what it shows, which choice is marked, what its keys do.
import BookOpen from "@lucide/svelte/icons/book-open";
import Command from "@lucide/svelte/icons/command";
import FilePlus from "@lucide/svelte/icons/file-plus-2";
import FileText from "@lucide/svelte/icons/file-text";
import MessageSquareQuote from "@lucide/svelte/icons/message-square-quote";
import type { PromptRun } from "../../bindings/app";
import { t } from "../../i18n/i18n.svelte";
import type { Lectern } from "../../stores/lectern.svelte";
import { notesOf } from "../../text/cite";
import type { Taken } from "../../text/draft";
import { ACTIONS, spell } from "../over/actions";
import type { Choice } from "./Menu.svelte";
import { choicesFor, fairly, menuAt, type MenuRequest } from "./menu";
import { aboutOf, blanksOf, labelOf, placeOf, readable, runnable, searchedOf, type Offered } from "./offered";

/** A list that is longer than this is searched, not read. */
const MOST = 50;

/** Takes what asked for the menu out of a text. */
type Cut = (text: string) => string;

interface Doings {
  take(one: Taken, cut: Cut): void;
  run(prompt: PromptRun, cut: Cut): void;
  fill(offered: Offered, cut: Cut): void;
  insert(text: string, from: number, length: number): void;
  clear(): void;
}

interface Found extends Choice {
  readonly searched: string;
  /** Whose it is; empty for what is Lectern's own. */
  readonly server: string;
}

export class ComposerMenu {
  #request = $state.raw<MenuRequest | null>(null);
  at = $state(0);

  constructor(
    private readonly lectern: () => Lectern,
    private readonly conversation: () => string,
    private readonly doings: Doings,
  ) {}

  readonly #found = $derived.by((): readonly Found[] => {
    if (this.#request === null) return [];
    const all = this.#request.kind === "read" ? this.#toRead() : [...this.#prompts(), ...this.#commands()];
    return choicesFor(all, ({ searched }) => searched, this.#request.query);
  });
  readonly choices = $derived<readonly Choice[]>(fairly(this.#found, ({ server }) => server, MOST));

  get kind(): "run" | "read" | null {
    return this.#request?.kind ?? null;
  }

  get more(): number {
    return this.#found.length - this.choices.length;
  }

  /** While the user searches, nothing found is nothing shown; the field is for writing. */
  get shown(): boolean {
    return this.#request !== null && (this.choices.length > 0 || this.#request.query === "");
  }

  /** Looks anew at what stands before the caret. */
  ask(text: string, caret: number): void {
    const before = this.#request;
    this.#request = menuAt(text, caret);
    this.at = 0;
    if (this.#request === null || this.#request.kind === before?.kind) return;
    const { resources, prompts } = this.lectern().offers;
    (this.#request.kind === "read" ? resources : prompts).refresh();
  }

  close(): void {
    this.#request = null;
  }

  choose(index: number): void {
    const choice = this.choices[index];
    choice?.run();
    this.close();
  }

  /** True when the key was for the menu. */
  key(event: KeyboardEvent): boolean {
    const { length } = this.choices;
    if (!this.shown) return false;
    if (event.key === "Escape") this.close();
    else if (length === 0) return false;
    else if (event.key === "ArrowDown") this.at = (this.at + 1) % length;
    else if (event.key === "ArrowUp") this.at = (this.at + length - 1) % length;
    else if (event.key === "Enter" || event.key === "Tab") this.choose(this.at);
    else return false;
    event.preventDefault();
    event.stopPropagation();
    return true;
  }

  get #cut(): Cut {
    const { from, query } = this.#request ?? { from: 0, query: "" };
    return (text) => text.slice(0, from) + text.slice(from + query.length + 1);
  }

  /** Notes that this conversation has seen come first; those that no server lists are only named in the text. */
  #toRead(): Found[] {
    const seen = new Set(
      this.lectern()
        .talks.get(this.conversation())
        .turns.flatMap((turn) => [...notesOf(turn.calls, () => null).keys()]),
    );
    const all = readable(this.lectern().offers.resources.views);
    const isSeen = (one: Offered) => one.kind === "resource" && seen.has(one.resource.name);
    const listed = new Set(all.filter(isSeen).map((one) => (one.kind === "resource" ? one.resource.name : "")));
    const named = [...seen].filter((path) => !listed.has(path)).map((path) => this.#note(path));
    return [
      ...all.filter(isSeen).map((one) => this.#offered(one)),
      ...named,
      ...all.filter((one) => !isSeen(one)).map((one) => this.#offered(one)),
    ];
  }

  #prompts(): Found[] {
    return runnable(this.lectern().offers.prompts.views).map((one) => this.#offered(one));
  }

  #commands(): Found[] {
    return ACTIONS.map((action) => {
      const label = action.of ? `${t(action.of)}: ${t(action.label)}` : t(action.label);
      return {
        label,
        searched: label,
        server: "",
        place: null,
        about: null,
        keys: action.keys ? spell(action.keys) : null,
        icon: Command,
        run: () => {
          this.doings.clear();
          action.run(this.lectern());
        },
      };
    });
  }

  #note(path: string): Found {
    const run = () => this.doings.insert(path, this.#request?.from ?? 0, (this.#request?.query.length ?? 0) + 1);
    return { label: path, searched: path, server: "", place: null, about: null, keys: null, icon: BookOpen, run };
  }

  #offered(one: Offered): Found {
    const icon = { resource: FileText, template: FilePlus, prompt: MessageSquareQuote }[one.kind];
    const run = () => {
      if (one.kind === "resource") {
        const { uri } = one.resource;
        this.doings.take({ server: one.server, uri, name: one.resource.title || one.resource.name || uri }, this.#cut);
      } else if (one.kind === "prompt" && blanksOf(one).length === 0) {
        this.doings.run({ server: one.server, name: one.prompt.name, arguments: {} }, this.#cut);
      } else this.doings.fill(one, this.#cut);
    };
    return {
      label: labelOf(one),
      searched: searchedOf(one),
      server: one.server,
      place: placeOf(one),
      about: aboutOf(one),
      keys: null,
      icon,
      run,
    };
  }
}
