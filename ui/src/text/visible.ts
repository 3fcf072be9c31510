// Makes characters visible that change how a text reads without being seen, as the host does for names of tools.
// Invariant: pure; what comes out shows every such character by its code point.

/** Controls, zero-width and bidirectional characters, fillers, variation selectors, tags. */
const HIDDEN =
  // eslint-disable-next-line no-control-regex, no-misleading-character-class
  /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]/gu;

/** How one of them is shown. */
export const SHOWN = /(⟦U\+[0-9A-F]{4,6}⟧)/;

export function visible(text: string): string {
  return text.replace(HIDDEN, (found, at: number) =>
    belongs(found, text.slice(0, at), text.slice(at + found.length))
      ? found
      : `⟦U+${(found.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}⟧`,
  );
}

export function hidesSomething(text: string): boolean {
  return visible(text) !== text;
}

const PICTOGRAPH_END = /(\p{Extended_Pictographic}|\p{Emoji_Modifier})\ufe0f?$/u;
const KEYCAP_END = /[0-9#*]$/;
const JOINING =
  /[\p{Script=Arabic}\p{Script=Syriac}\p{Script=Mongolian}\p{Script=Devanagari}\p{Script=Bengali}\p{Script=Tamil}\p{Script=Telugu}\p{Script=Kannada}\p{Script=Malayalam}\p{Script=Gujarati}\p{Script=Gurmukhi}\p{Script=Oriya}\p{Script=Sinhala}\p{Script=Khmer}\p{Script=Myanmar}]/u;

/** Emoji and some scripts are written with characters that elsewhere hide something. */
function belongs(found: string, before: string, after: string): boolean {
  const last = before.slice(-4);
  if (found === "\ufe0e" || found === "\ufe0f") {
    return /\p{Extended_Pictographic}$/u.test(last) || (KEYCAP_END.test(last) && after.startsWith("\u20e3"));
  }
  if (found === "\u200d" && PICTOGRAPH_END.test(last)) return /^\p{Extended_Pictographic}/u.test(after);
  if (found !== "\u200c" && found !== "\u200d") return false;
  return JOINING.test([...last].at(-1) ?? "") && JOINING.test([...after.slice(0, 2)][0] ?? "");
}
