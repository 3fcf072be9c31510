// What the window asks of the shell. `tauri.ts` answers in the app, `fake.ts` in a plain browser.
// Invariant: this folder is the only importer of `@tauri-apps/*`.
import type {
  AppNews,
  AppView,
  ConversationSummary,
  ConversationView,
  Enclosure,
  Enclosures,
  NoteView,
  Problem,
  SendReceipt,
  SendRequest,
  VaultView,
} from "../bindings/app";
import type { Blob as Bytes, Event, PermissionAnswer, QuestionAnswer } from "../bindings/core";
import type { ApiHost } from "./api";
import type { GenerationHost } from "./generation";
import type { ModelHost } from "./models";
import type { ProviderHost } from "./providers";
import type { OfferHost, ServerHost } from "./servers";

/** Called with one batch of events, in order; at most one batch a frame. */
export type OnEvents = (events: Event[]) => void;

/** Every method rejects with a `Problem`. One Tauri command each, named in snake_case (`app_view`, …). */
export interface Host extends ApiHost, ServerHost, OfferHost, ModelHost, ProviderHost, GenerationHost {
  appView(): Promise<AppView>;
  /** News that belongs to no turn, for as long as the window lives. */
  subscribe(onNews: (news: AppNews) => void): Promise<void>;

  conversations(): Promise<ConversationSummary[]>;
  /** Its last turns, or those that stand before a message. */
  conversation(id: string, before?: string): Promise<ConversationView>;
  renameConversation(id: string, title: string): Promise<void>;
  /** Hides it; `restoreConversation` undoes it until the app ends. */
  deleteConversation(id: string): Promise<void>;
  restoreConversation(id: string): Promise<void>;

  /** Starts a turn. Events come through `onEvents` until `turn_finished`. */
  send(request: SendRequest, onEvents: OnEvents): Promise<SendReceipt>;
  /** Takes in an image or a document that was pasted; `send` names it by its id. */
  enclose(file: Bytes, name: string | null): Promise<Enclosure>;
  /** Opens the system's file dialog; nothing is taken when the user closes it. */
  chooseEnclosures(): Promise<Enclosures>;
  /** Takes in the images that the user let go of last. */
  encloseDropped(): Promise<Enclosures>;
  /** Drops one that will not be sent. */
  discardEnclosure(id: string): Promise<void>;
  /** Events of a running turn from `afterSeq` + 1 on (-1: from the start), e.g. after the window was reloaded. */
  attachTurn(turn: string, afterSeq: number, onEvents: OnEvents): Promise<void>;
  cancelTurn(turn: string): Promise<void>;
  answerPermission(turn: string, call: string, answer: PermissionAnswer): Promise<void>;
  /** Rejects with `answer_does_not_fit` when a form is not filled as it should be; the question stays open. */
  answerQuestion(turn: string, question: string, answer: QuestionAnswer): Promise<void>;
  /** A protocol message of which the event has only the start; by the `full` of the event. */
  longMessage(id: string): Promise<unknown>;

  /** Opens the system's folder dialog; null when the user closed it. */
  addVault(): Promise<VaultView | null>;
  removeVault(path: string): Promise<void>;
  readNote(server: string, path: string): Promise<NoteView>;

  /** Opens an http(s) link in the user's browser. */
  openLink(url: string): Promise<void>;
  /** Opens a save dialog and writes the trace as JSON; null when the user closed it, else the path. */
  exportTrace(conversation: string): Promise<string | null>;
}

/** True for what a `Host` rejects with. */
export function isProblem(value: unknown): value is Problem {
  return typeof value === "object" && value !== null && "code" in value && "message" in value;
}
