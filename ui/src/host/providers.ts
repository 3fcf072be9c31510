// What the window asks of the shell about remote models and those who serve them.
import type {
  FoundLogin,
  ModelTest,
  ModelView,
  OfferedModel,
  ProviderDraft,
  ProviderView,
  RemoteDraft,
  RemovedProvider,
  SignedIn,
  SignIn,
} from "../bindings/app";

/** A part of `Host`, with the same rules. No answer has a secret in it. */
export interface ProviderHost {
  /** Nothing is asked of it yet. */
  addProvider(draft: ProviderDraft): Promise<ProviderView>;
  /** Signs out when it is asked elsewhere or otherwise from now on. */
  changeProvider(id: string, draft: ProviderDraft): Promise<ProviderView>;
  removeProvider(id: string): Promise<RemovedProvider>;
  /** By the token of `removeProvider`. */
  restoreProvider(token: string): Promise<ProviderView>;

  /** The credentials are looked at, not tried. */
  signInProvider(id: string, sign: SignIn): Promise<SignedIn>;
  /** Opens the system's file dialog for the key of a service account; null when the user closed it. */
  chooseKeyFile(id: string): Promise<SignedIn | null>;
  /** With the key file that was let go of over the window; only the shell knows where it is. */
  signInDropped(id: string): Promise<SignedIn>;
  signOutProvider(id: string): Promise<ProviderView>;
  /** The application-default credentials of this computer; only looked at. */
  foundLogin(): Promise<FoundLogin | null>;

  /** By the provider's own word. Rejects with `cancelled` when it was stopped. */
  providerModels(id: string): Promise<OfferedModel[]>;
  stopProviderModels(id: string): Promise<void>;
  addRemoteModel(draft: RemoteDraft): Promise<ModelView>;
  changeRemoteModel(id: string, draft: RemoteDraft): Promise<ModelView>;
  /** One tiny question and one call of a tool. Rejects with `cancelled` when it was stopped. */
  testModel(id: string): Promise<ModelTest>;
  stopModelTest(id: string): Promise<void>;
  /** Null: the one that answers everywhere. */
  setConversationModel(conversation: string, model: string | null): Promise<void>;
}
