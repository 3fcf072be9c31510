//! Makes visible what a font does not show: characters that hide text, or turn its direction.
//!
//! Invariant: pure. Text without such characters comes back as it is; nothing visible is ever changed.
//!
//! An emoji may have its variation selector and its joiners, and scripts that need joiners theirs; everything else
//! that leaves no mark on a screen is shown by its number. Look-alikes (a Cyrillic `а`) are visible and not looked for.

use std::borrow::Cow;

/// The text with everything invisible in it shown as `⟦U+200B⟧`.
pub fn visible(text: &str) -> Cow<'_, str> {
    if !has_invisible(text) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() * 2);
    walk(text, |c, hidden| {
        if hidden {
            out.push_str(&format!("⟦U+{:04X}⟧", u32::from(c)));
        } else {
            out.push(c);
        }
        true
    });
    Cow::Owned(out)
}

/// Whether a text holds characters that can't be seen.
pub fn has_invisible(text: &str) -> bool {
    if text.is_ascii() && !text.bytes().any(|byte| byte.is_ascii_control()) {
        return false;
    }
    let mut found = false;
    walk(text, |_, hidden| {
        found |= hidden;
        !found
    });
    found
}

/// Tells of each character whether it is hidden, until nobody wants to know more.
fn walk(text: &str, mut tell: impl FnMut(char, bool) -> bool) {
    let mut chars = text.chars().peekable();
    let mut before = None;
    while let Some(c) = chars.next() {
        let hidden = leaves_no_mark(c) && !belongs(before, c, chars.peek().copied());
        if !tell(c, hidden) {
            return;
        }
        before = Some(c);
    }
}

/// Controls, and the code points of Unicode 17 that are format characters or `Default_Ignorable_Code_Point`.
fn leaves_no_mark(c: char) -> bool {
    match c {
        '\n' | '\t' | '\r' => false,
        _ if c.is_control() => true,
        '\u{ad}'
        | '\u{34f}'
        | '\u{61c}'
        | '\u{115f}'..='\u{1160}'
        | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}'
        | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}' => true,
        // A blank of Braille, and one that no keyboard has.
        '\u{2800}' => true,
        _ => false,
    }
}

/// Whether an invisible character does its proper work between these two.
fn belongs(before: Option<char>, c: char, after: Option<char>) -> bool {
    let Some(before) = before else { return false };
    match c {
        // One selector right after what it selects.
        '\u{fe0e}' | '\u{fe0f}' => is_pictograph(before) || (is_keycap(before) && after == Some('\u{20e3}')),
        '\u{200d}' if is_pictograph(before) || matches!(before, '\u{fe0f}' | '\u{1f3fb}'..='\u{1f3ff}') => {
            after.is_some_and(is_pictograph)
        }
        '\u{200c}' | '\u{200d}' => joins(before) && after.is_some_and(joins),
        _ => false,
    }
}

fn is_pictograph(c: char) -> bool {
    matches!(c,
        '©' | '®' | '\u{203c}' | '\u{2049}' | '\u{2122}' | '\u{2139}' | '\u{2194}'..='\u{21aa}'
        | '\u{231a}'..='\u{23ff}' | '\u{24c2}' | '\u{25aa}'..='\u{27bf}' | '\u{2934}'..='\u{2935}'
        | '\u{2b05}'..='\u{2b55}' | '\u{3030}' | '\u{303d}' | '\u{3297}' | '\u{3299}' | '\u{1f000}'..='\u{1faff}')
}

fn is_keycap(c: char) -> bool {
    matches!(c, '0'..='9' | '#' | '*')
}

/// Letters of scripts whose spelling needs joiners: Arabic, Syriac, those of India, Khmer, Mongolian.
fn joins(c: char) -> bool {
    matches!(c, '\u{620}'..='\u{8ff}' | '\u{900}'..='\u{dff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17d3}'
        | '\u{1820}'..='\u{18aa}' | '\u{fb50}'..='\u{fdfb}' | '\u{fe70}'..='\u{fefc}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_are_shown_by_number() {
        for (text, shown) in [
            ("a\u{200b}b", "a⟦U+200B⟧b"),
            ("\u{202e}txt.exe\u{202c}", "⟦U+202E⟧txt.exe⟦U+202C⟧"),
            ("\u{2066}x\u{2069}", "⟦U+2066⟧x⟦U+2069⟧"),
            ("read\u{e0041}\u{e0042}\u{e007f}", "read⟦U+E0041⟧⟦U+E0042⟧⟦U+E007F⟧"),
            ("\u{feff}start", "⟦U+FEFF⟧start"),
            ("soft\u{ad}hyphen", "soft⟦U+00AD⟧hyphen"),
            ("bell\u{7}\u{1b}[2J", "bell⟦U+0007⟧⟦U+001B⟧[2J"),
            ("x\u{fe01}\u{e0101}", "x⟦U+FE01⟧⟦U+E0101⟧"),
            ("line\u{2028}line", "line⟦U+2028⟧line"),
            ("\u{3164}\u{2800}", "⟦U+3164⟧⟦U+2800⟧"),
            ("a\u{200d}b\u{200c}", "a⟦U+200D⟧b⟦U+200C⟧"),
            ("a\u{fe0f}", "a⟦U+FE0F⟧"),
            ("1\u{fe0f}2", "1⟦U+FE0F⟧2"),
        ] {
            assert!(has_invisible(text), "{shown}");
            assert_eq!(visible(text), shown);
        }
    }

    /// Variation selectors can carry any bytes, 256 of them, behind one innocent emoji.
    #[test]
    fn only_one_selector_may_follow_an_emoji() {
        assert_eq!(visible("⚠\u{fe0f}\u{fe0f}"), "⚠\u{fe0f}⟦U+FE0F⟧");
        assert_eq!(visible("😀\u{e0100}\u{e01ef}"), "😀⟦U+E0100⟧⟦U+E01EF⟧");
    }

    #[test]
    fn ordinary_text_of_any_script_stays_as_it_is() {
        for text in [
            "",
            "plain\ntext\twith\r\nlines",
            "⚠️ Deletes ❤️ ©️ 1️⃣ 👩‍💻 👨‍👩‍👧 🏳️‍🌈 👍🏽",
            "می‌خواهم کتاب",
            "क्‍ष र्‍य",
            "日本語、中文、한국어",
            "שלום עולם",
            "naïve café – “quoted” … €",
            "e\u{301} decomposed",
            "a non-breaking\u{a0}blank",
        ] {
            assert!(!has_invisible(text), "{text}");
            assert!(matches!(visible(text), Cow::Borrowed(same) if same == text));
        }
    }
}
