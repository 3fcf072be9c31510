// What the window asks of the shell about models.
import type {
  BenchView,
  CuratedView,
  DownloadRequest,
  DownloadView,
  DropNews,
  HardwareView,
  HubView,
  ModelDetails,
  ModelFolderView,
  ModelView,
  RemovedModel,
  RepositoryView,
  StatesView,
} from "../bindings/app";

/** A part of `Host`, with the same rules. */
export interface ModelHost {
  selectModel(id: string): Promise<void>;
  /** The user types, and this is what the next message begins with; answers at once. */
  modelWanted(conversation: string | null, draft: string, model: string | null): Promise<void>;
  /** Opens the system's file dialog; null when the user closed it. */
  addModel(): Promise<ModelView | null>;
  /** The same, for a file that is not added: its path. */
  chooseModelFile(): Promise<string | null>;
  /** Hears of files that are dragged over the window, for as long as it lives. */
  watchDrops(onDrop: (news: DropNews) => void): Promise<void>;
  /** Adds the model files that the user let go of last. */
  addDropped(): Promise<ModelView[]>;
  removeModel(id: string): Promise<RemovedModel>;
  /** By the token of `removeModel`. */
  restoreModel(token: string): Promise<ModelView>;

  /** Everything about a model; its need for memory with so many tokens of context (null: as it would be used). */
  modelDetails(id: string, context: number | null): Promise<ModelDetails>;
  /** Takes about five seconds; one at a time. */
  benchModel(id: string): Promise<BenchView>;
  hardware(): Promise<HardwareView>;

  modelFolders(): Promise<ModelFolderView[]>;
  /** Opens the system's folder dialog; null when the user closed it. */
  chooseModelFolder(): Promise<ModelFolderView | null>;
  addModelFolder(path: string): Promise<ModelFolderView>;
  removeModelFolder(path: string): Promise<void>;

  /** What is saved of conversations so that they go on at once. */
  savedStates(): Promise<StatesView>;
  /** Deletes all of it; conversations stay. */
  forgetStates(): Promise<StatesView>;

  curatedModels(): Promise<CuratedView[]>;
  /** By `owner/repo`, `owner/repo:Q4_K_M`, or an address. */
  listRepository(target: string): Promise<RepositoryView>;
  hub(): Promise<HubView>;
  /** Null forgets it; it is never given back. */
  keepHubToken(token: string | null): Promise<HubView>;
  /** Null for Hugging Face itself; holds at once. */
  setHubMirror(mirror: string | null): Promise<HubView>;
  startDownload(request: DownloadRequest): Promise<DownloadView>;
  pauseDownload(id: string): Promise<DownloadView>;
  resumeDownload(id: string): Promise<DownloadView>;
  /** Takes it off the list; what has come of one that is not done is deleted. */
  cancelDownload(id: string): Promise<void>;
}
