// What was written but not sent, for each conversation, across restarts.
import { readKept, type Draft } from "../../text/draft";

const PREFIX = "lectern.draft.";
/** Beside the words: the prompt and what goes along. */
const BESIDE = "lectern.draft-with.";

export function readDraft(conversation: string): Draft {
  try {
    const text = localStorage.getItem(PREFIX + conversation) ?? "";
    return { text, ...readKept(localStorage.getItem(BESIDE + conversation)) };
  } catch {
    return { text: "", ...readKept(null) };
  }
}

export function keepDraft(conversation: string, { text, prompt, taken, enclosed }: Draft): void {
  try {
    keep(PREFIX + conversation, text);
    const nothing = prompt === null && taken.length === 0 && enclosed.length === 0;
    keep(BESIDE + conversation, nothing ? "" : JSON.stringify({ prompt, taken, enclosed }));
  } catch {
    // A full or missing storage only costs the draft.
  }
}

function keep(key: string, text: string): void {
  if (text === "") localStorage.removeItem(key);
  else localStorage.setItem(key, text);
}
