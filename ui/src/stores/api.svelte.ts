// The local API as the window knows it: how it is, and what it counted.
import type { ApiView, MetricsView } from "../bindings/app";
import type { Host } from "../host/host";
import { Loaded } from "./loaded.svelte";

/** How often the numbers are read while somebody looks at them. */
const LOOK_MS = 1000;

export class Api {
  view = $state.raw<ApiView | null>(null);
  readonly numbers = new Loaded<MetricsView | null>();

  constructor(private readonly host: Host) {}

  watch(): Promise<void> {
    return this.host.watchApi((view) => (this.view = view));
  }

  get url(): string | null {
    return this.view?.state.type === "running" ? this.view.state.url : null;
  }

  /** Reads the numbers again and again, one reading after the other, until what it gives is called. */
  count(): () => void {
    let over = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const look = async () => {
      if (!document.hidden) await this.numbers.load(() => this.host.apiMetrics());
      if (!over) timer = setTimeout(() => void look(), LOOK_MS);
    };
    void look();
    return () => {
      over = true;
      clearTimeout(timer);
    };
  }
}
