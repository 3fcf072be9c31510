// Something that is read from the host: what it was last, whether it is being read, why it could not be.
import type { Problem } from "../bindings/app";
import { problemOf } from "./desk.svelte";

export class Loaded<T> {
  value = $state.raw<T | null>(null);
  problem = $state.raw<Problem | null>(null);
  busy = $state(false);
  /** Whether the last reading was stopped before its end. */
  stopped = $state(false);
  /** The answer to the last question counts, however late an earlier one comes. */
  #asked = 0;

  /** Keeps what is known while it is read anew. */
  async load(read: () => Promise<T>): Promise<void> {
    const asked = ++this.#asked;
    this.busy = true;
    this.stopped = false;
    try {
      const value = await read();
      if (asked !== this.#asked) return;
      this.value = value;
      this.problem = null;
    } catch (error) {
      if (asked === this.#asked) this.problem = problemOf(error);
    } finally {
      if (asked === this.#asked) this.busy = false;
    }
  }

  /** Ends a reading; false when there is none. */
  stop(): boolean {
    if (!this.busy) return false;
    this.clear();
    this.stopped = true;
    return true;
  }

  /** As before the first question; an answer that is on its way no longer counts. */
  clear(): void {
    this.#asked++;
    this.value = null;
    this.problem = null;
    this.busy = false;
  }
}
