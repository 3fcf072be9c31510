// How well servers are, in one word.
import type { ServerState, ServerView } from "../../bindings/app";

export type HealthWord = "ok" | "starting" | "attention" | "danger" | "off";

export function healthOf(state: ServerState): HealthWord {
  switch (state.type) {
    case "ready":
      return "ok";
    case "starting":
    case "restarting":
      return "starting";
    case "degraded":
    case "needs_approval":
    case "needs_sign_in":
      return "attention";
    case "failed":
      return "danger";
    case "stopped":
      return "off";
  }
}

const ORDER: readonly HealthWord[] = ["danger", "attention", "starting", "ok"];

/** The worst of all; stopped servers don't count. */
export function worst(servers: readonly ServerView[]): HealthWord {
  const all = servers.map((server) => healthOf(server.state));
  return ORDER.find((word) => all.includes(word)) ?? "off";
}
