// What the running servers offer beside tools: resources and prompts, for the menus of the composer.
// Invariant: one server that is slow or refuses never keeps back what another one offers.
import { SvelteMap } from "svelte/reactivity";
import type { Problem, PromptsView, ResourcesView, ServerView } from "../bindings/app";
import type { Host } from "../host/host";
import { problemOf, type Desk } from "./desk.svelte";

/** One kind of offer. What is known is shown while it is asked for anew. */
export class Offer<View> {
  #known = new SvelteMap<string, View>();
  #problems = new SvelteMap<string, Problem>();
  #asked = new SvelteMap<string, true>();

  constructor(
    private readonly desk: Desk,
    private readonly ask: (server: string) => Promise<View>,
  ) {}

  /** Asks every running server that is not being asked already. */
  refresh(): void {
    for (const { id } of this.#running) if (!this.#asked.has(id)) void this.#refresh(id);
  }

  get views(): readonly View[] {
    return this.#running.flatMap(({ id }) => this.#known.get(id) ?? []);
  }

  get problems(): readonly { readonly server: string; readonly problem: Problem }[] {
    return this.#running.flatMap(({ id }) => {
      const problem = this.#problems.get(id);
      return problem ? [{ server: id, problem }] : [];
    });
  }

  /** The servers of which nothing is known yet. */
  get awaited(): readonly string[] {
    return this.#running.map(({ id }) => id).filter((id) => this.#asked.has(id) && !this.#known.has(id));
  }

  get #running(): readonly ServerView[] {
    return this.desk.servers.filter(({ state }) => state.type === "ready" || state.type === "degraded");
  }

  async #refresh(id: string): Promise<void> {
    this.#asked.set(id, true);
    try {
      this.#known.set(id, await this.ask(id));
      this.#problems.delete(id);
    } catch (error) {
      this.#known.delete(id);
      this.#problems.set(id, problemOf(error));
    } finally {
      this.#asked.delete(id);
    }
  }
}

export class Offers {
  readonly resources: Offer<ResourcesView>;
  readonly prompts: Offer<PromptsView>;

  constructor(host: Host, desk: Desk) {
    this.resources = new Offer(desk, (server) => host.resources(server));
    this.prompts = new Offer(desk, (server) => host.prompts(server));
  }
}
