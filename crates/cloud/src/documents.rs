//! From bytes that should be JSON to documents.
//!
//! Servers write what JSON does not know (`NaN`, half of a surrogate pair, bytes that are no UTF-8), put several
//! documents where one should be, and are cut off in the middle of a list.
//!
//! Invariant: pure. What is sound is read as it is; only where that fails is anything mended, and never a missing end.

use std::borrow::Cow;

use serde::de::DeserializeOwned;
use serde_json::Value;

/// Reads one object. None when it is none, mended or not.
pub(crate) fn read<T: DeserializeOwned>(json: &[u8]) -> Option<T> {
    // A list would be read as the fields of an object in their order.
    if !json.trim_ascii_start().starts_with(b"{") {
        return None;
    }
    if let Ok(read) = serde_json::from_slice(json) {
        return Some(read);
    }
    let mended = mended(json);
    if let Ok(read) = serde_json::from_slice(&mended) {
        return Some(read);
    }
    // A field that stands there twice: the last one counts.
    let value: Value = serde_json::from_slice(&mended).ok()?;
    serde_json::from_value(value).ok()
}

/// Bytes that are no UTF-8 cost a few characters, half of a pair one, and a number that is none is null.
fn mended(json: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(json);
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_ref();
    let mut in_text = false;
    while let Some(first) = rest.chars().next() {
        let taken = match (in_text, first) {
            (true, '\\') => take_escape(rest, &mut out),
            (true, c) if c < ' ' => {
                out.extend_from_slice(format!("\\u{:04x}", c as u32).as_bytes());
                1
            }
            (false, 'N' | 'I' | '-') => take_number(rest, &mut out),
            (_, '"') => {
                in_text = !in_text;
                out.push(b'"');
                1
            }
            (_, c) => {
                out.extend_from_slice(&rest.as_bytes()[..c.len_utf8()]);
                c.len_utf8()
            }
        };
        rest = rest.get(taken..).unwrap_or_default();
    }
    out
}

/// Takes an escape; half of a surrogate pair becomes the character for what is no character.
fn take_escape(rest: &str, out: &mut Vec<u8>) -> usize {
    let unit = |text: &str| {
        let digits = text.strip_prefix("\\u")?.get(..4)?;
        u16::from_str_radix(digits, 16).ok()
    };
    let taken = match unit(rest) {
        Some(0xd800..=0xdbff) => match rest.get(6..).and_then(unit) {
            Some(0xdc00..=0xdfff) => 12,
            Some(_) | None => {
                out.extend_from_slice(b"\\ufffd");
                return 6;
            }
        },
        Some(0xdc00..=0xdfff) => {
            out.extend_from_slice(b"\\ufffd");
            return 6;
        }
        Some(_) => 6,
        None => 1 + rest.chars().nth(1).map_or(0, char::len_utf8),
    };
    out.extend_from_slice(rest.get(..taken).unwrap_or(rest).as_bytes());
    taken
}

/// `NaN`, `Infinity` and `-Infinity`, as Python writes them, are null.
fn take_number(rest: &str, out: &mut Vec<u8>) -> usize {
    match ["NaN", "Infinity", "-Infinity", "-NaN"].iter().find(|word| rest.starts_with(**word)) {
        Some(word) => {
            out.extend_from_slice(b"null");
            word.len()
        }
        None => {
            out.push(rest.as_bytes()[0]);
            1
        }
    }
}

/// What stands in a text that is not one document.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Several<'a> {
    /// The objects, one behind the other, on lines of their own, or in one list.
    pub(crate) objects: Vec<Cow<'a, [u8]>>,
    /// The last one has no end.
    pub(crate) cut: bool,
    /// The mark for the end of a stream stands behind them.
    pub(crate) end_mark: bool,
}

/// Takes a text apart into its objects.
pub(crate) fn several(text: &[u8]) -> Several<'_> {
    let mut found = Several::default();
    let (mut depth, mut begin, mut in_text, mut escaped) = (0usize, 0, false, false);
    for (at, byte) in text.iter().enumerate() {
        if in_text {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_text = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'{' => {
                if depth == 0 {
                    begin = at;
                }
                depth += 1;
            }
            b'}' if depth > 0 => {
                depth -= 1;
                if depth == 0 {
                    found.objects.push(Cow::Borrowed(&text[begin..=at]));
                }
            }
            // Outside of objects a quotation mark is a word of somebody.
            b'"' if depth > 0 => in_text = true,
            b'[' if depth == 0 => found.end_mark |= text[at..].starts_with(b"[DONE]"),
            _ => {}
        }
    }
    found.cut = depth > 0;
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_json_does_not_know_is_mended() {
        for (json, expected) in [
            (&br#"{"a":"\ud83d"}"#[..], json!({"a": "\u{fffd}"})),
            (
                br#"{"a":"\ud83dx\ude00y\ud83d\ude00\\ud83d"}"#,
                json!({"a": "\u{fffd}x\u{fffd}y\u{1f600}\\ud83d"}),
            ),
            (br#"{"a":"\ud83d\u0041"}"#, json!({"a": "\u{fffd}A"})),
            (
                br#"{"a":[NaN,-Infinity,Infinity,-1],"b":"NaN"}"#,
                json!({"a": [null, null, null, -1], "b": "NaN"}),
            ),
            (b"{\"a\":\"\xff\t\"}", json!({"a": "\u{fffd}\t"})),
        ] {
            assert_eq!(read::<Value>(json), Some(expected), "{}", String::from_utf8_lossy(json));
        }
        for broken in [&br#"{"a":"#[..], b"{", br#"{"a":"\u12"#, br#"{"a":"\"#, b"nonsense", b""] {
            assert_eq!(read::<Value>(broken), None, "{}", String::from_utf8_lossy(broken));
        }
    }

    #[test]
    fn several_documents_are_told_apart() {
        let found = |text: &str| {
            let Several { objects, cut, end_mark } = several(text.as_bytes());
            let objects: Vec<_> =
                objects.iter().map(|one| String::from_utf8_lossy(one).into_owned()).collect();
            (objects, cut, end_mark)
        };
        let two = vec![r#"{"a":"}\"{"}"#.to_owned(), r#"{"b":{}}"#.to_owned()];
        for text in [
            "{\"a\":\"}\\\"{\"}\n{\"b\":{}}",
            "[{\"a\":\"}\\\"{\"}\r\n,\r\n{\"b\":{}}]",
            "{\"a\":\"}\\\"{\"}{\"b\":{}}\n: x\n\"k",
        ] {
            assert_eq!(found(text), (two.clone(), false, false), "{text}");
        }
        assert_eq!(found("{\"b\":{}}\n[DONE]"), (two[1..].to_vec(), false, true));
        assert_eq!(found("[{\"b\":{}},{\"c\":"), (two[1..].to_vec(), true, false));
        assert_eq!(found("nothing"), (vec![], false, false));
    }
}
