// What the window asks of the shell about the local API.
import type {
  ApiAddress,
  ApiCallers,
  ApiKeyDraft,
  ApiKeysView,
  ApiView,
  MadeApiKey,
  MetricsView,
} from "../bindings/app";

/** A part of `Host`, with the same rules. */
export interface ApiHost {
  /** How it is, now and whenever it changed. For as long as the page listens, calls wait for its answer. */
  watchApi(onApi: (api: ApiView) => void): Promise<void>;
  /** Now and whenever the window is open. What comes of it is told to who watches. */
  setApiOn(on: boolean): Promise<ApiView>;
  /** Rejects with `beyond_this_computer` until the user was warned. */
  setApiAddress(address: ApiAddress): Promise<ApiView>;
  /** From now on; a running server begins anew. Rejects with `bad_origin` or `bad_host`, which name the entry. */
  setApiCallers(callers: ApiCallers): Promise<ApiView>;
  /** The keyring may wait for its user. */
  apiKeys(): Promise<ApiKeysView>;
  /** The only answer with a key's secret in it. */
  addApiKey(draft: ApiKeyDraft): Promise<MadeApiKey>;
  revokeApiKey(name: string): Promise<void>;
  /** Rejects with `not_waiting` when the call is over, or was answered elsewhere. */
  answerApproval(id: string, allow: boolean): Promise<void>;
  /** Null while it does not run. */
  apiMetrics(): Promise<MetricsView | null>;
}
