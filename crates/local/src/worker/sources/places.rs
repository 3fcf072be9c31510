//! Places in a text where a copy may begin, and where it has to end.
//!
//! Invariant: pure; a place begins and ends on whole characters within its text.

use super::Place;

/// Endings of the files that a path may name.
const ENDINGS: [&str; 3] = [".md", ".markdown", ".txt"];
/// Marks between which a name or a text is given word for word.
const MARKS: [(&str, &str); 7] =
    [("“", "”"), ("«", "»"), ("《", "》"), ("「", "」"), ("『", "』"), ("\"", "\""), ("`", "`")];
/// What a person ends a sentence with.
const STOPS: [&str; 9] = [".", "?", "!", "…", "。", "？", "！", " ", "\u{a0}"];

/// Beginnings of words.
pub(super) fn words(bytes: &[u8]) -> Vec<Place> {
    word_starts(bytes).map(|at| (at, bytes.len(), false)).collect()
}

/// Beginnings of words of what a person said. What stands in quotation marks is copied whole, and what comes after the
/// last colon to the end, with or without its stop.
pub(super) fn from_user(bytes: &[u8]) -> Vec<Place> {
    let Ok(text) = std::str::from_utf8(bytes) else { return words(bytes) };
    let (colon, end) = (after_last_colon(text), text.trim_end().len());
    let mut places = Vec::new();
    for at in word_starts(bytes) {
        if let Some(end) = closing_mark(text, at) {
            places.push((at, end, true));
        } else if Some(at) == colon {
            let without = without_stops(&text[..end]);
            places.push((at, end, true));
            places.extend((at < without && without < end).then_some((at, without, true)));
        } else {
            places.push((at, bytes.len(), false));
        }
    }
    places
}

/// The same, but what begins where the text does is the whole of it, with or without its stop.
pub(super) fn question(bytes: &[u8]) -> Vec<Place> {
    let Ok(text) = std::str::from_utf8(bytes) else { return words(bytes) };
    let (start, end) = (text.len() - text.trim_start().len(), text.trim_end().len());
    let mut places = from_user(bytes);
    places.retain(|(at, _, _)| *at > start);
    let without = without_stops(&text[..end]);
    places.extend((start < end).then_some((start, end, true)));
    places.extend((start < without && without < end).then_some((start, without, true)));
    places
}

/// Paths in what a person said: each may begin at any word before its ending, but for the middle of a path.
pub(super) fn paths_of_user(bytes: &[u8]) -> Vec<Place> {
    let ends = path_ends(bytes);
    let places = word_starts(bytes).filter(|at| !within_path(bytes, *at)).filter_map(|at| {
        let end = *ends.iter().find(|end| **end > at)?;
        let path = &bytes[at..end];
        (!path.contains(&b'\n') && !is_ending(path)).then_some((at, end, true))
    });
    places.collect()
}

/// Stretches that end like a file, each from the bracket, quotation mark, bullet or line before it.
pub(super) fn paths(bytes: &[u8]) -> Vec<Place> {
    let mut spans = Vec::new();
    let mut start = 0;
    for line in bytes.split(|byte| *byte == b'\n') {
        let lead = line.len() - line.trim_ascii_start().len();
        for end in path_ends(line) {
            if let Some(first) = path_start(&line[lead..end]) {
                spans.push((start + lead + first, start + end, true));
            }
        }
        start += line.len() + 1;
    }
    spans
}

/// Whether a path would go on here rather than begin.
fn within_path(bytes: &[u8], at: usize) -> bool {
    let before = at.checked_sub(1).map_or(b' ', |before| bytes[before]);
    matches!(before, b'/' | b'.') || (bytes[at] == b'/' && !before.is_ascii_whitespace())
}

fn is_ending(bytes: &[u8]) -> bool {
    ENDINGS.iter().any(|ending| ending.as_bytes() == bytes)
}

/// Where something ends that ends like a file.
fn path_ends(bytes: &[u8]) -> Vec<usize> {
    let ends = (1..=bytes.len()).filter(|end| {
        let name = ENDINGS.iter().find_map(|ending| bytes[..*end].strip_suffix(ending.as_bytes()));
        let named =
            name.and_then(<[u8]>::last).is_some_and(|byte| !byte.is_ascii_whitespace() && *byte != b'/');
        named && !bytes.get(*end).is_some_and(u8::is_ascii_alphanumeric)
    });
    ends.collect()
}

/// Where the path begins that ends with this piece of a line.
fn path_start(until: &[u8]) -> Option<usize> {
    let from =
        until.iter().rposition(|byte| matches!(byte, b'(' | b'"' | b'`' | b'<')).map_or(0, |at| at + 1);
    let bullet = if from == 0 && until.starts_with(b"- ") { 2 } else { 0 };
    let start = from + bullet;
    (!is_ending(&until[start..])).then_some(start)
}

fn word_starts(bytes: &[u8]) -> impl Iterator<Item = usize> {
    (0..bytes.len()).filter(|at| {
        !bytes[*at].is_ascii_whitespace() && !is_continuation(bytes[*at]) && boundary(bytes, *at)
    })
}

/// Where the text begins that comes after the last colon; a colon within a word or a number is none.
fn after_last_colon(text: &str) -> Option<usize> {
    let after = text.char_indices().rev().find_map(|(at, sign)| match sign {
        ':' => text[at + 1..].starts_with(char::is_whitespace).then_some(at + 1),
        '：' => Some(at + sign.len_utf8()),
        _ => None,
    })?;
    let rest = text[after..].trim_start();
    (!rest.is_empty()).then_some(text.len() - rest.len())
}

fn without_stops(text: &str) -> usize {
    let mut text = text;
    while let Some(rest) = STOPS.iter().find_map(|stop| text.strip_suffix(stop)) {
        text = rest;
    }
    text.len()
}

/// Where the quotation ends that begins here; none where none does.
fn closing_mark(text: &str, at: usize) -> Option<usize> {
    let before = text.get(..at)?;
    let trimmed = before.trim_end_matches([' ', '\u{a0}', '\u{202f}']);
    let (open, close) = MARKS.iter().find(|(open, _)| match *open {
        "«" => trimmed.ends_with(open),
        open => before.ends_with(open),
    })?;
    if open == close && before.matches(open).count() % 2 == 0 {
        return None;
    }
    let rest = text.get(at..)?;
    let inside = rest[..rest.find(close)?].trim_end();
    (!inside.is_empty()).then_some(at + inside.len())
}

/// Whether a copy may end here: neither within a word nor after a blank.
pub(super) fn may_end(bytes: &[u8], at: usize) -> bool {
    boundary(bytes, at) && !at.checked_sub(1).is_some_and(|before| bytes[before].is_ascii_whitespace())
}

/// Whether this is not within a word.
fn boundary(bytes: &[u8], at: usize) -> bool {
    let word = |byte: &u8| byte.is_ascii_alphanumeric() || (0xc3..0xe0).contains(byte);
    let before = at.checked_sub(1).and_then(|before| bytes.get(before));
    let inside =
        before.is_some_and(|byte| word(byte) || latin_tail(bytes, at)) && bytes.get(at).is_some_and(word);
    !inside && !bytes.get(at).is_some_and(|byte| is_continuation(*byte))
}

/// Whether the character before is a letter of two bytes (Latin with accents, Greek, Cyrillic).
fn latin_tail(bytes: &[u8], at: usize) -> bool {
    at >= 2 && is_continuation(bytes[at - 1]) && (0xc3..0xe0).contains(&bytes[at - 2])
}

fn is_continuation(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown<'a>(text: &'a str, places: &[Place]) -> Vec<&'a str> {
        places.iter().filter(|(_, _, whole)| *whole).map(|(at, end, _)| &text[*at..*end]).collect()
    }

    #[test]
    fn a_path_that_a_person_names_is_whole() {
        let said = |text: &'static str| shown(text, &paths_of_user(text.as_bytes()));
        assert_eq!(said("Read A/my b.md now"), ["Read A/my b.md", "A/my b.md", "b.md"]);
        assert_eq!(said("新建 家/购.md，牛奶")[2..], ["家/购.md"]);
        assert_eq!(said("a.md or b.md"), ["a.md", "or b.md", "b.md"]);
        assert!(said("no path, a.mdx nor .md").is_empty(), "{:?}", said("no path, a.mdx nor .md"));
    }

    #[test]
    fn what_is_quoted_or_comes_after_a_colon_is_whole() {
        let said = |text: &'static str| shown(text, &from_user(text.as_bytes()));
        assert_eq!(said("Add “to do” to \"the list\""), ["to do", "the list"]);
        assert_eq!(said("Ajoute « du pain » ici"), ["du pain"]);
        assert_eq!(said("打开《包饺子》"), ["包饺子"]);
        assert_eq!(said("Note: at 10:30, tea. "), ["at 10:30, tea.", "at 10:30, tea"]);
        assert_eq!(said("内容是：牛奶"), ["牛奶"]);
        assert!(said("12:30 \"open").is_empty());
        assert_eq!(
            shown("Is it \"so\" ?", &question("Is it \"so\" ?".as_bytes())),
            ["so", "Is it \"so\" ?", "Is it \"so\""]
        );
    }
}
