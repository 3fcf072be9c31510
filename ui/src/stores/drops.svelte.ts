// Model files, images and key files that are dragged over the window.
import type { DropNews } from "../bindings/app";
import type { Host } from "../host/host";

/** What is over the window now, and whether letting go of it adds something. */
export interface Dragged {
  readonly models: readonly string[];
  readonly images: readonly string[];
  /** Of which one may be the key of a service account. */
  readonly keys: readonly string[];
  readonly others: number;
}

/** Who is signed in with a key file that is let go of; nobody on most pages. */
export class KeyFiles {
  #taker = $state.raw<(() => unknown) | null>(null);

  get wanted(): boolean {
    return this.#taker !== null;
  }

  /** Takes them from now on; ends what it gives. */
  take(taker: () => unknown): () => void {
    this.#taker = taker;
    return () => {
      if (this.#taker === taker) this.#taker = null;
    };
  }

  dropped(): void {
    this.#taker?.();
  }
}

export class Drops {
  over = $state.raw<Dragged | null>(null);

  constructor(
    private readonly host: Host,
    /** Models were let go of; `add` adds them. */
    private readonly onDropped: (models: readonly string[], add: () => Promise<unknown>) => void,
    /** Images were let go of. */
    private readonly onImages: () => void,
    /** Files were let go of that may be keys of service accounts. */
    private readonly onKeys: () => void,
  ) {}

  watch(): Promise<void> {
    return this.host.watchDrops((news) => this.#hear(news));
  }

  #hear(news: DropNews): void {
    switch (news.type) {
      case "over":
        this.over = { models: news.models, images: news.images, keys: news.keys, others: news.others };
        break;
      case "left":
        this.over = null;
        break;
      case "dropped":
        this.over = null;
        if (news.models.length > 0) this.onDropped(news.models, () => this.host.addDropped());
        if (news.images.length > 0) this.onImages();
        if (news.keys.length > 0) this.onKeys();
        break;
    }
  }
}
