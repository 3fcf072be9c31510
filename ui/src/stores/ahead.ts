// Tells the shell that the user types, so that the model is ready when the message is sent.
// Invariant: what is told is never waited for, and its failure is nobody's concern.
import type { Host } from "../host/host";

/** Between two words, but shorter than most people look at what they wrote before they send it. */
const PAUSE_MS = 300;
/** Whoever writes this has ended a word, in scripts that set words apart. */
const ENDS_A_WORD = /[\s\p{P}]$/u;

export class Ahead {
  #typing = false;
  #told: string | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly host: Host) {}

  /** A key was pressed: the first one counts at once, those that end a word too, the others when the user pauses.
   *  `model` is the one that was chosen for this message alone. */
  typed(conversation: string | null, draft: string, model?: string): void {
    clearTimeout(this.#timer);
    if (!this.#typing || ENDS_A_WORD.test(draft)) this.#tell(conversation, draft, model);
    this.#typing = true;
    this.#timer = setTimeout(() => {
      this.#typing = false;
      if (this.#told !== draft) this.#tell(conversation, draft, model);
    }, PAUSE_MS);
  }

  /** The message was sent; the shell knows of it by that. */
  sent(): void {
    clearTimeout(this.#timer);
    this.#typing = false;
  }

  #tell(conversation: string | null, draft: string, model?: string): void {
    this.#told = draft;
    this.host.modelWanted(conversation, draft, model ?? null).catch(() => undefined);
  }
}
