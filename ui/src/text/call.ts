// The words of a tool call on one line.
// Invariant: pure.
import type { Content, ToolResult } from "../bindings/core";
import type { CallState, CallStatus } from "../fold/turn";

/** What the tool card is marked with (`data-state`). */
export type CardState = "writing" | "queued" | "waiting" | "running" | "done" | "failed" | "denied" | "cancelled";

export function cardState(status: CallStatus): CardState {
  return status === "succeeded" ? "done" : status;
}

/** Names that arguments which say what a call is about usually have; the first that is there wins. */
const TELLING = ["query", "q", "path", "name", "title", "uri", "url", "file", "folder", "directory", "command", "text"];

/** Only kinds of picture that run nothing. */
export const PICTURE = /^image\/(png|jpeg|gif|webp)$/;

/** The one argument that matters: by name, else the first short text, else the first of all. */
export function keyArgument(call: CallState): string {
  if (call.malformed !== null) return oneLine(call.malformed);
  if (call.arguments === null) return oneLine(call.draft.replace(/^\s*\{\s*/, ""));
  const entries = Object.entries(call.arguments);
  const named = TELLING.map((name) => entries.find(([key]) => key.toLowerCase() === name)).find(Boolean);
  const chosen = named ?? entries.find(([, value]) => typeof value === "string" && value !== "") ?? entries[0];
  if (!chosen) return "";
  return oneLine(typeof chosen[1] === "string" ? chosen[1] : JSON.stringify(chosen[1]));
}

/** The first line of why a call failed. */
export function cause(result: ToolResult | null): string {
  const text = result?.content.find((content) => content.type === "text");
  return text ? oneLine(text.text.trim().split("\n")[0] ?? "") : "";
}

export function resultText(result: ToolResult): string {
  return result.content
    .map(contentText)
    .filter((text) => text !== "")
    .join("\n\n");
}

function contentText(content: Content): string {
  switch (content.type) {
    case "text":
      return content.text;
    case "resource":
      return content.text ?? content.uri;
    case "image":
    case "audio":
      return `[${content.mime}]`;
    default:
      return "";
  }
}

function oneLine(text: string): string {
  const flat = text.replace(/\s+/g, " ").trim();
  return flat.length > 300 ? `${flat.slice(0, 300)}…` : flat;
}

/** A public name without the server's prefix, where it has one. */
export function shortTool(tool: string): string {
  const cut = tool.indexOf("__");
  return cut > 0 ? tool.slice(cut + 2) : tool;
}

/** The server that a public name speaks of, when no server is known that offers it. */
export function prefixOf(tool: string): string {
  const cut = tool.indexOf("__");
  return cut > 0 ? tool.slice(0, cut) : "";
}
