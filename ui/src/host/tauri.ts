// The host in the app: one command of the shell per method.
// Invariant: no logic here; the only importer of `@tauri-apps/api`.
import { Channel, invoke } from "@tauri-apps/api/core";
import type { ApiView, AppNews, DoctorCheck, DropNews } from "../bindings/app";
import type { Event } from "../bindings/core";
import type { ApiHost } from "./api";
import type { Host } from "./host";
import type { GenerationHost } from "./generation";
import type { ModelHost } from "./models";
import type { ProviderHost } from "./providers";
import type { OfferHost, ServerHost } from "./servers";

export function tauriHost(): Host {
  return {
    appView: () => invoke("app_view"),
    subscribe: (onNews) => invoke("subscribe", { onNews: channel<AppNews>(onNews) }),

    conversations: () => invoke("conversations"),
    conversation: (id, before) => invoke("conversation", { id, before: before ?? null }),
    renameConversation: (id, title) => invoke("rename_conversation", { id, title }),
    deleteConversation: (id) => invoke("delete_conversation", { id }),
    restoreConversation: (id) => invoke("restore_conversation", { id }),

    send: (request, onEvents) => invoke("send", { request, onEvents: channel<Event[]>(onEvents) }),
    enclose: (file, name) => invoke("enclose", { file, name }),
    chooseEnclosures: () => invoke("choose_enclosures"),
    encloseDropped: () => invoke("enclose_dropped"),
    discardEnclosure: (id) => invoke("discard_enclosure", { id }),
    attachTurn: (turn, afterSeq, onEvents) =>
      invoke("attach_turn", { turn, afterSeq, onEvents: channel<Event[]>(onEvents) }),
    cancelTurn: (turn) => invoke("cancel_turn", { turn }),
    answerPermission: (turn, call, answer) => invoke("answer_permission", { turn, call, answer }),
    answerQuestion: (turn, question, answer) => invoke("answer_question", { turn, question, answer }),
    longMessage: (id) => invoke("long_message", { id }),

    addVault: () => invoke("add_vault"),
    removeVault: (path) => invoke("remove_vault", { path }),
    readNote: (server, path) => invoke("read_note", { server, path }),

    ...api(),
    ...models(),
    ...providers(),
    ...generation(),
    ...servers(),
    ...offers(),

    openLink: (url) => invoke("open_link", { url }),
    exportTrace: (conversation) => invoke("export_trace", { conversation }),
  };
}

function api(): ApiHost {
  return {
    watchApi: (onApi) => invoke("watch_api", { onApi: channel<ApiView>(onApi) }),
    setApiOn: (on) => invoke("set_api_on", { on }),
    setApiAddress: (address) => invoke("set_api_address", { address }),
    setApiCallers: (callers) => invoke("set_api_callers", { callers }),
    apiKeys: () => invoke("api_keys"),
    addApiKey: (draft) => invoke("add_api_key", { draft }),
    revokeApiKey: (name) => invoke("revoke_api_key", { name }),
    answerApproval: (id, allow) => invoke("answer_approval", { id, allow }),
    apiMetrics: () => invoke("api_metrics"),
  };
}

function models(): ModelHost {
  return {
    selectModel: (id) => invoke("select_model", { id }),
    modelWanted: (conversation, draft, model) => invoke("model_wanted", { conversation, draft, model }),
    addModel: () => invoke("add_model"),
    chooseModelFile: () => invoke("choose_model_file"),
    watchDrops: (onDrop) => invoke("watch_drops", { onDrop: channel<DropNews>(onDrop) }),
    addDropped: () => invoke("add_dropped"),
    removeModel: (id) => invoke("remove_model", { id }),
    restoreModel: (token) => invoke("restore_model", { token }),
    modelDetails: (id, context) => invoke("model_details", { id, context }),
    benchModel: (id) => invoke("bench_model", { id }),
    hardware: () => invoke("hardware"),
    modelFolders: () => invoke("model_folders"),
    chooseModelFolder: () => invoke("choose_model_folder"),
    addModelFolder: (path) => invoke("add_model_folder", { path }),
    removeModelFolder: (path) => invoke("remove_model_folder", { path }),
    curatedModels: () => invoke("curated_models"),
    listRepository: (target) => invoke("list_repository", { target }),
    savedStates: () => invoke("saved_states"),
    forgetStates: () => invoke("forget_states"),
    hub: () => invoke("hub"),
    keepHubToken: (token) => invoke("keep_hub_token", { token }),
    setHubMirror: (mirror) => invoke("set_hub_mirror", { mirror }),
    startDownload: (request) => invoke("start_download", { request }),
    pauseDownload: (id) => invoke("pause_download", { id }),
    resumeDownload: (id) => invoke("resume_download", { id }),
    cancelDownload: (id) => invoke("cancel_download", { id }),
  };
}

function providers(): ProviderHost {
  return {
    addProvider: (draft) => invoke("add_provider", { draft }),
    changeProvider: (id, draft) => invoke("change_provider", { id, draft }),
    removeProvider: (id) => invoke("remove_provider", { id }),
    restoreProvider: (token) => invoke("restore_provider", { token }),
    signInProvider: (id, sign) => invoke("sign_in_provider", { id, sign }),
    chooseKeyFile: (id) => invoke("choose_key_file", { id }),
    signInDropped: (id) => invoke("sign_in_dropped", { id }),
    signOutProvider: (id) => invoke("sign_out_provider", { id }),
    foundLogin: () => invoke("found_login"),
    providerModels: (id) => invoke("provider_models", { id }),
    stopProviderModels: (id) => invoke("stop_provider_models", { id }),
    addRemoteModel: (draft) => invoke("add_remote_model", { draft }),
    changeRemoteModel: (id, draft) => invoke("change_remote_model", { id, draft }),
    testModel: (id) => invoke("test_model", { id }),
    stopModelTest: (id) => invoke("stop_model_test", { id }),
    setConversationModel: (conversation, model) => invoke("set_conversation_model", { conversation, model }),
  };
}

function generation(): GenerationHost {
  return {
    generation: (model, conversation) => invoke("generation", { model, conversation }),
    setModelGeneration: (model, changes) => invoke("set_model_generation", { model, changes }),
    setConversationGeneration: (conversation, changes) =>
      invoke("set_conversation_generation", { conversation, changes }),
    resetModelGeneration: (model) => invoke("reset_model_generation", { model }),
    resetConversationGeneration: (conversation) => invoke("reset_conversation_generation", { conversation }),
    savePreset: (name, settings) => invoke("save_preset", { name, settings }),
    deletePreset: (name) => invoke("delete_preset", { name }),
  };
}

function servers(): ServerHost {
  return {
    serverLog: (id, after) => invoke("server_log", { id, after }),
    serverTraffic: (id, after) => invoke("server_traffic", { id, after }),
    startServer: (id) => invoke("start_server", { id }),
    stopServer: (id) => invoke("stop_server", { id }),
    restartServer: (id) => invoke("restart_server", { id }),
    setServerEnabled: (id, enabled) => invoke("set_server_enabled", { id, enabled }),
    setServerTrusted: (id, trusted) => invoke("set_server_trusted", { id, trusted }),
    approveServer: (id, digest) => invoke("approve_server", { id, digest }),
    signIn: (id) => invoke("sign_in", { id }),
    signOut: (id) => invoke("sign_out", { id }),
    saveServer: (draft) => invoke("save_server", { draft }),
    removeServer: (id) => invoke("remove_server", { id }),
    restoreServer: (token) => invoke("restore_server", { token }),
    knownHosts: () => invoke("known_hosts"),
    chooseImportFile: () => invoke("choose_import_file"),
    previewImport: (source) => invoke("preview_import", { source }),
    importServers: (request) => invoke("import_servers", { request }),
    exportServers: (ids) => invoke("export_servers", { ids }),
    saveExport: (ids) => invoke("save_export", { ids }),
    setToolPermission: (tool, permission) => invoke("set_tool_permission", { tool, permission }),
    setServerPermission: (id, permission) => invoke("set_server_permission", { id, permission }),
    acceptTool: (tool, digest) => invoke("accept_tool", { tool, digest }),
    doctor: (id, onCheck) => invoke("doctor", { id, onCheck: channel<DoctorCheck>(onCheck) }),
  };
}

function offers(): OfferHost {
  return {
    resources: (id) => invoke("resources", { id }),
    prompts: (id) => invoke("prompts", { id }),
    complete: (request) => invoke("complete", { request }),
  };
}

function channel<T>(onMessage: (message: T) => void): Channel<T> {
  const channel = new Channel<T>();
  channel.onmessage = onMessage;
  return channel;
}
