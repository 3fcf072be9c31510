// Short messages that float at the bottom: an undo, or an error that has no better place.

export interface Toast {
  readonly id: number;
  readonly text: string;
  readonly tone: "plain" | "danger";
  readonly action: { readonly label: string; readonly run: () => void } | null;
  /** What it is news of; see `closeAbout`. */
  readonly about: string | null;
}

const STAYS_MS = 8000;

export class Toasts {
  all = $state.raw<readonly Toast[]>([]);
  #next = 1;
  #timers = new Map<number, ReturnType<typeof setTimeout>>();

  show(text: string, options: Partial<Pick<Toast, "tone" | "action" | "about">> = {}): number {
    const id = this.#next++;
    const { tone = "plain", action = null, about = null } = options;
    this.all = [...this.all.slice(-2), { id, text, tone, action, about }];
    this.resume(id);
    return id;
  }

  close(id: number): void {
    this.hold(id);
    this.all = this.all.filter((toast) => toast.id !== id);
  }

  /** Takes news away that something later made untrue. */
  closeAbout(about: string): void {
    for (const toast of this.all) if (toast.about === about) this.close(toast.id);
  }

  /** While the pointer or the focus is on it, it stays. */
  hold(id: number): void {
    clearTimeout(this.#timers.get(id));
    this.#timers.delete(id);
  }

  resume(id: number): void {
    this.hold(id);
    this.#timers.set(
      id,
      setTimeout(() => this.close(id), STAYS_MS),
    );
  }
}
