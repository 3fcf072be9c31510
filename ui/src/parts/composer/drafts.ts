// What was written but not sent, for each conversation, across restarts.

const PREFIX = "lectern.draft.";

export function readDraft(conversation: string): string {
  try {
    return localStorage.getItem(PREFIX + conversation) ?? "";
  } catch {
    return "";
  }
}

export function keepDraft(conversation: string, text: string): void {
  try {
    if (text === "") localStorage.removeItem(PREFIX + conversation);
    else localStorage.setItem(PREFIX + conversation, text);
  } catch {
    // A full or missing storage only costs the draft.
  }
}

export function forgetDraft(conversation: string): void {
  keepDraft(conversation, "");
}
