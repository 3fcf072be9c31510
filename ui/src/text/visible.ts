// Makes characters visible that change how a text reads without being seen.
// Invariant: pure; what comes out shows every such character by its code point.

/** Controls, zero-width and bidirectional characters, fillers, variation selectors, tags. */
const HIDDEN =
  // eslint-disable-next-line no-control-regex, no-misleading-character-class
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\u{e0000}-\u{e0fff}]/gu;

export function visible(text: string): string {
  return text.replace(
    HIDDEN,
    (found) => `⟨U+${(found.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}⟩`,
  );
}

export function hidesSomething(text: string): boolean {
  return visible(text) !== text;
}
