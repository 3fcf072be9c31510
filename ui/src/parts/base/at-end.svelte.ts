// A view that grows at its end: follows it, but stays where the user reads.

import { tick } from "svelte";

/** The place in a scrolling element whose only child holds what grows. Used as an attachment: `{@attach end.view}`. */
export class AtEnd {
  /** Whether the end is in sight, so that what is added is followed. */
  here = $state(true);
  /** Pixels from the end that still are the end. */
  readonly #near: number;
  readonly #live: () => boolean;
  #view: HTMLElement | undefined;
  /** Where the view was left. */
  #top = 0;

  /** While it is live, whatever changes the size of the content is followed; else only what `grew` tells, for a part
   * that the user unfolds shall not move away. */
  constructor(near = 48, live: () => boolean = () => false) {
    this.#near = near;
    this.#live = live;
  }

  /** Follows in the frame in which a size changes, before it is painted. */
  readonly view = (node: HTMLElement) => {
    this.#view = node;
    const observer = new ResizeObserver((sizes) => {
      if (this.#live() || sizes.some(({ target }) => target === node)) this.#follow();
    });
    observer.observe(node);
    if (node.firstElementChild) observer.observe(node.firstElementChild);
    node.addEventListener("scroll", this.#scrolled, { passive: true });
    return () => {
      observer.disconnect();
      node.removeEventListener("scroll", this.#scrolled);
      this.#view = undefined;
    };
  };

  readonly #scrolled = () => {
    if (!this.#view) return;
    const { scrollTop } = this.#view;
    // Where it was put is no place that the user went to, however much came below it before the event did.
    if (this.here && Math.abs(scrollTop - this.#top) < 1) return;
    this.here = this.#view.scrollHeight - scrollTop - this.#view.clientHeight < this.#near;
    this.#top = scrollTop;
  };

  /** Content that became shorter takes the view with it; a place over that one was scrolled to by the user. */
  #follow(): void {
    if (!this.#view || !this.here) return;
    const end = this.#view.scrollHeight - this.#view.clientHeight;
    if (this.#view.scrollTop < Math.min(this.#top, end) - 2) this.here = false;
    else this.go();
  }

  /** There is more to see, as soon as it is drawn. */
  grew(): void {
    void tick().then(() => this.#follow());
  }

  /** To the end, wherever the user was. */
  readonly go = (): void => {
    this.here = true;
    if (!this.#view) return;
    this.#view.scrollTo({ top: this.#view.scrollHeight });
    this.#top = this.#view.scrollTop;
  };
}
