//! The bytes of a note as text, and text added to it.
//! Invariant: pure. What was in a note stays in it, byte for byte.

/// Text of UTF-8 (read as far as possible) or of UTF-16 with its mark; `None` for anything binary.
pub(crate) fn decode(bytes: &[u8]) -> Option<String> {
    let wide = |bytes: &[u8], join: fn([u8; 2]) -> u16| {
        let units: Vec<u16> = bytes.chunks_exact(2).map(|pair| join([pair[0], pair[1]])).collect();
        String::from_utf16_lossy(&units)
    };
    match bytes {
        [0xff, 0xfe, rest @ ..] => Some(wide(rest, u16::from_le_bytes)),
        [0xfe, 0xff, rest @ ..] => Some(wide(rest, u16::from_be_bytes)),
        _ if bytes.contains(&0) => None,
        _ => Some(String::from_utf8_lossy(bytes).into_owned()),
    }
}

/// The old text and the new one below it, and the line where the new one starts.
pub(crate) fn appended(old: &str, content: &str) -> (String, usize) {
    let newline = if old.contains("\r\n") { "\r\n" } else { "\n" };
    let content = content.trim_matches(['\n', '\r']).replace("\r\n", "\n").replace('\n', newline);
    let mut text = old.to_owned();
    if !text.is_empty() && !text.ends_with('\n') {
        text.push_str(newline);
    }
    let last = text.lines().last().unwrap_or_default().trim();
    // An item goes on with the list above it.
    let same_list =
        crate::note::item_mark(last).is_some() && crate::note::item_mark(content.trim_start()).is_some();
    if !last.is_empty() && !same_list {
        text.push_str(newline);
    }
    let line = text.lines().count() + 1;
    text.push_str(&content);
    text.push_str(newline);
    (text, line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn appending_keeps_an_empty_line_between() {
        assert_eq!(appended("", "x"), ("x\n".into(), 1));
        assert_eq!(appended("# A", "x\n"), ("# A\n\nx\n".into(), 3));
        assert_eq!(appended("# A\n\n", "x"), ("# A\n\nx\n".into(), 3));
        assert_eq!(appended("- a\n", "- b"), ("- a\n- b\n".into(), 2));
        assert_eq!(appended("a\r\n", "x\ny"), ("a\r\n\r\nx\r\ny\r\n".into(), 3));
    }

    #[test]
    fn text_is_told_from_data() {
        assert_eq!(decode(b"caf\xe9"), Some("caf\u{fffd}".into()));
        assert_eq!(decode(b"\xff\xfea\0"), Some("a".into()));
        assert_eq!(decode(b"PNG\0"), None);
    }
}
