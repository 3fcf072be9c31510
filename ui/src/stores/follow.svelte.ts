// Follows something that grows in pages: a log, a list of messages.
import type { Problem } from "../bindings/app";
import { problemOf } from "./desk.svelte";

interface Page<T> {
  readonly items: readonly T[];
  readonly next: number;
}

/** Between two looks; a person sees no difference to a stream. */
const PAUSE_MS = 700;
/** The oldest go first. */
const MOST = 3000;

export class Follow<T> {
  items = $state.raw<readonly T[]>([]);
  problem = $state.raw<Problem | null>(null);
  /** Whether the first page has come. */
  begun = $state(false);
  paused = $state(false);
  #next = 0;

  constructor(private readonly read: (after: number) => Promise<Page<T>>) {}

  /** Looks again and again until the returned function is called. */
  start(): () => void {
    let over = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const look = async () => {
      if (!this.paused) await this.look();
      if (!over) timer = setTimeout(() => void look(), PAUSE_MS);
    };
    void look();
    return () => {
      over = true;
      clearTimeout(timer);
    };
  }

  async look(): Promise<void> {
    try {
      const page = await this.read(this.#next);
      // A server that was removed and came back counts anew.
      if (page.next < this.#next) this.items = [];
      this.#next = page.next;
      if (page.items.length > 0) this.items = [...this.items, ...page.items].slice(-MOST);
      this.problem = null;
    } catch (error) {
      this.problem = problemOf(error);
    }
    this.begun = true;
  }
}
