// Protocol messages as the trace has them: whole, or only their start when they are long.
// Invariant: pure.

/** What an event has of a message that is too long for it. */
export interface CutMessage {
  readonly bytes: number;
  readonly start: string;
  /** By what the whole is found; none when it was too long to be kept. */
  readonly full: string | null;
}

export function cutMessage(message: unknown): CutMessage | null {
  if (typeof message !== "object" || message === null || "jsonrpc" in message) return null;
  const { cut, bytes, start, full } = message as Record<string, unknown>;
  if (cut !== true || typeof bytes !== "number" || typeof start !== "string") return null;
  return { bytes, start, full: typeof full === "string" ? full : null };
}
