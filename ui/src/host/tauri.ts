// The host in the app: one command of the shell per method.
// Invariant: no logic here; the only importer of `@tauri-apps/api`.
import { Channel, invoke } from "@tauri-apps/api/core";
import type { AppNews } from "../bindings/app";
import type { Event } from "../bindings/core";
import type { Host } from "./host";

export function tauriHost(): Host {
  return {
    appView: () => invoke("app_view"),
    subscribe: (onNews) => invoke("subscribe", { onNews: channel<AppNews>(onNews) }),

    conversations: () => invoke("conversations"),
    conversation: (id) => invoke("conversation", { id }),
    renameConversation: (id, title) => invoke("rename_conversation", { id, title }),
    deleteConversation: (id) => invoke("delete_conversation", { id }),
    restoreConversation: (id) => invoke("restore_conversation", { id }),

    send: (request, onEvents) => invoke("send", { request, onEvents: channel<Event[]>(onEvents) }),
    attachTurn: (turn, afterSeq, onEvents) =>
      invoke("attach_turn", { turn, afterSeq, onEvents: channel<Event[]>(onEvents) }),
    cancelTurn: (turn) => invoke("cancel_turn", { turn }),
    answerPermission: (turn, call, answer) => invoke("answer_permission", { turn, call, answer }),

    selectModel: (id) => invoke("select_model", { id }),
    addModel: () => invoke("add_model"),
    removeModel: (id) => invoke("remove_model", { id }),

    addVault: () => invoke("add_vault"),
    removeVault: (path) => invoke("remove_vault", { path }),
    readNote: (server, path) => invoke("read_note", { server, path }),

    serverLog: (id) => invoke("server_log", { id }),
    restartServer: (id) => invoke("restart_server", { id }),

    openLink: (url) => invoke("open_link", { url }),
    exportTrace: (conversation) => invoke("export_trace", { conversation }),
  };
}

function channel<T>(onMessage: (message: T) => void): Channel<T> {
  const channel = new Channel<T>();
  channel.onmessage = onMessage;
  return channel;
}
