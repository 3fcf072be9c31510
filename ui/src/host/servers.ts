// What the window asks of the shell about servers.
import type {
  CompletionRequest,
  CompletionView,
  DoctorCheck,
  DoctorReport,
  FoundHost,
  ImportPreview,
  ImportRequest,
  ImportSource,
  LogPage,
  PromptsView,
  ResourcesView,
  ServerDraft,
  TrafficPage,
} from "../bindings/app";
import type { RuleEffect } from "../bindings/core";

/** A part of `Host`, with the same rules. */
export interface ServerHost {
  /** The lines of a server's log after `after` (0: the last that are kept), oldest first. */
  serverLog(id: string, after: number): Promise<LogPage>;
  /** The messages after `after` (0: all that are kept), oldest first. */
  serverTraffic(id: string, after: number): Promise<TrafficPage>;
  startServer(id: string): Promise<void>;
  stopServer(id: string): Promise<void>;
  restartServer(id: string): Promise<void>;

  setServerEnabled(id: string, enabled: boolean): Promise<void>;
  setServerTrusted(id: string, trusted: boolean): Promise<void>;
  /** The user has seen what would run, and it may: what its approval names by this digest. */
  approveServer(id: string, digest: string): Promise<void>;
  /** Opens the browser; ends when the user has signed in or given up. */
  signIn(id: string): Promise<void>;
  signOut(id: string): Promise<void>;

  /** Adds or changes one; gives its id. */
  saveServer(draft: ServerDraft): Promise<string>;
  /** Gives what `restoreServer` needs to bring it back, until the app ends. */
  removeServer(id: string): Promise<string>;
  restoreServer(token: string): Promise<void>;

  /** Settings of other hosts on this machine. */
  knownHosts(): Promise<FoundHost[]>;
  /** Opens the system's file dialog; null when the user closed it. */
  chooseImportFile(): Promise<string | null>;
  /** Adds and starts nothing. */
  previewImport(source: ImportSource): Promise<ImportPreview>;
  /** Gives the ids of what was added. */
  importServers(request: ImportRequest): Promise<string[]>;
  /** `mcpServers` as JSON, secrets left out. */
  exportServers(ids: string[]): Promise<string>;
  /** Opens a save dialog and writes them; null when the user closed it, else the path. */
  saveExport(ids: string[]): Promise<string | null>;

  /** Null goes back to what holds for the server. */
  setToolPermission(tool: string, permission: RuleEffect | null): Promise<void>;
  /** Null goes back to the default. */
  setServerPermission(id: string, permission: RuleEffect | null): Promise<void>;
  /** The user has seen what became different about a tool: what the change names by this digest. */
  acceptTool(tool: string, digest: string): Promise<void>;
  /** Looks at a server step by step; `onCheck` hears of each step as it ends. */
  doctor(id: string, onCheck: (check: DoctorCheck) => void): Promise<DoctorReport>;
}

/** What servers offer beside tools; a part of `Host`, with the same rules. */
export interface OfferHost {
  /** What a running server has to read. */
  resources(id: string): Promise<ResourcesView>;
  /** What a running server has to say. */
  prompts(id: string): Promise<PromptsView>;
  /** Suggestions of a server for what is being typed; none when it has none. */
  complete(request: CompletionRequest): Promise<CompletionView>;
}
