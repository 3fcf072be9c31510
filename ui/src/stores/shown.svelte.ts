// A yes to what was on the screen. When it was no longer so, the new state is fetched, shown, and asked about again.
import type { Problem } from "../bindings/app";
import { problemOf } from "./desk.svelte";

/** What the host answers when something is not as it was shown. */
export const CHANGED = "changed_since_shown";

export class ShownYes {
  busy = $state(false);
  /** Whether the last yes was for something that had changed meanwhile. */
  stale = $state(false);
  problem = $state.raw<Problem | null>(null);

  /** Says yes; `refresh` brings what is there now. */
  async say(yes: () => Promise<unknown>, refresh: () => Promise<unknown>): Promise<void> {
    this.busy = true;
    this.stale = false;
    this.problem = null;
    try {
      await yes();
    } catch (error) {
      await this.#refused(problemOf(error), refresh);
    } finally {
      this.busy = false;
    }
  }

  async #refused(problem: Problem, refresh: () => Promise<unknown>): Promise<void> {
    if (problem.code !== CHANGED) {
      this.problem = problem;
      return;
    }
    this.stale = true;
    try {
      await refresh();
    } catch (error) {
      this.problem = problemOf(error);
    }
  }
}
