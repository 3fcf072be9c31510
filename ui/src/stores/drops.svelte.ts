// Model files and images that are dragged over the window.
import type { DropNews } from "../bindings/app";
import type { Host } from "../host/host";

/** What is over the window now, and whether letting go of it adds something. */
export interface Dragged {
  readonly models: readonly string[];
  readonly images: readonly string[];
  readonly others: number;
}

export class Drops {
  over = $state.raw<Dragged | null>(null);

  constructor(
    private readonly host: Host,
    /** Models were let go of; `add` adds them. */
    private readonly onDropped: (models: readonly string[], add: () => Promise<unknown>) => void,
    /** Images were let go of. */
    private readonly onImages: () => void,
  ) {}

  watch(): Promise<void> {
    return this.host.watchDrops((news) => this.#hear(news));
  }

  #hear(news: DropNews): void {
    switch (news.type) {
      case "over":
        this.over = { models: news.models, images: news.images, others: news.others };
        break;
      case "left":
        this.over = null;
        break;
      case "dropped":
        this.over = null;
        if (news.models.length > 0) this.onDropped(news.models, () => this.host.addDropped());
        if (news.images.length > 0) this.onImages();
        break;
    }
  }
}
