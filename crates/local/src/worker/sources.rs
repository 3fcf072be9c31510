//! The texts of a conversation that a reply may copy from, and the places in them where a copy may begin.
//!
//! Invariant: pure; a span never leaves its text.

use serde_json::Value;

/// Endings of the files that a path may name.
const ENDINGS: [&str; 3] = [".md", ".markdown", ".txt"];

/// The user's last message and what the tools have answered since.
pub(super) struct Sources {
    texts: Vec<Text>,
}

struct Text {
    bytes: Vec<u8>,
    from_tool: bool,
}

/// A place in a text, and where the stretch that is copied ends at the latest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    text: usize,
    pub(super) at: usize,
    pub(super) end: usize,
    /// Whether it is only good as a whole.
    pub(super) whole: bool,
}

impl Sources {
    pub(super) fn new(messages: &[Value]) -> Self {
        let role = |message: &Value| message.get("role").and_then(Value::as_str).map(str::to_owned);
        let last = messages.iter().rposition(|message| role(message).as_deref() == Some("user")).unwrap_or(0);
        let texts = messages[last..].iter().filter_map(|message| {
            let from_tool = match role(message)?.as_str() {
                "tool" => true,
                "user" => false,
                _ => return None,
            };
            Some(Text { bytes: content(message)?.into_bytes(), from_tool })
        });
        Self { texts: texts.collect() }
    }

    /// The byte at a place that is not at its end.
    pub(super) fn byte(&self, span: Span) -> u8 {
        self.texts[span.text].bytes[span.at]
    }

    /// Whether a copy may stop here: not within a word.
    pub(super) fn is_boundary(&self, span: Span) -> bool {
        boundary(&self.texts[span.text].bytes, span.at)
    }

    /// Beginnings of words.
    pub(super) fn words(&self) -> Vec<Span> {
        self.collect(
            |_| true,
            |bytes| {
                let starts = (0..bytes.len()).filter(|at| {
                    !bytes[*at].is_ascii_whitespace() && !is_continuation(bytes[*at]) && boundary(bytes, *at)
                });
                starts.map(|at| (at, bytes.len(), false)).collect()
            },
        )
    }

    /// Lines of what the tools answered; the heading of a hit is none.
    pub(super) fn lines(&self) -> Vec<Span> {
        self.collect(
            |text| text.from_tool,
            |bytes| {
                let mut spans = Vec::new();
                for (start, end) in lines(bytes) {
                    let line = &bytes[start..end];
                    let heading = line.first() == Some(&b'[') && line.last() == Some(&b')');
                    if !line.is_empty() && !heading {
                        spans.push((start, end, true));
                    }
                }
                spans
            },
        )
    }

    /// Paths of notes in what the tools answered.
    pub(super) fn paths(&self) -> Vec<Span> {
        self.collect(|text| text.from_tool, paths)
    }

    /// What a tool may be asked to open: a path of an answer, and while there is none, the user's own words.
    pub(super) fn paths_to_read(&self) -> Vec<Span> {
        match self.paths() {
            none if none.is_empty() => self.words(),
            paths => paths,
        }
    }

    fn collect(
        &self,
        wanted: impl Fn(&Text) -> bool,
        spans: impl Fn(&[u8]) -> Vec<(usize, usize, bool)>,
    ) -> Vec<Span> {
        let texts = self.texts.iter().enumerate().filter(|(_, text)| wanted(text));
        texts
            .flat_map(|(index, text)| {
                let spans = spans(&text.bytes);
                spans.into_iter().map(move |(at, end, whole)| Span { text: index, at, end, whole })
            })
            .collect()
    }
}

fn content(message: &Value) -> Option<String> {
    match message.get("content")? {
        Value::String(text) => Some(text.clone()),
        Value::Array(parts) => {
            Some(parts.iter().filter_map(|part| part.get("text").and_then(Value::as_str)).collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

fn lines(bytes: &[u8]) -> Vec<(usize, usize)> {
    let mut spans = Vec::new();
    let mut start = 0;
    for line in bytes.split(|byte| *byte == b'\n') {
        let trimmed = line.trim_ascii();
        let lead = line.len() - line.trim_ascii_start().len();
        spans.push((start + lead, start + lead + trimmed.len()));
        start += line.len() + 1;
    }
    spans
}

/// Stretches that end like a file, each from the bracket, quotation mark, bullet or line before it.
fn paths(bytes: &[u8]) -> Vec<(usize, usize, bool)> {
    let mut spans = Vec::new();
    for (start, end) in lines(bytes) {
        let line = &bytes[start..end];
        for ending in ENDINGS {
            let ending = ending.as_bytes();
            for at in 0..line.len().saturating_sub(ending.len() - 1) {
                let after = at + ending.len();
                let whole =
                    line[at..].starts_with(ending) && !line.get(after).is_some_and(u8::is_ascii_alphanumeric);
                if let Some(first) = whole.then(|| path_start(&line[..at])).flatten() {
                    spans.push((start + first, start + after, true));
                }
            }
        }
    }
    spans
}

/// Where the path begins whose name ends at the end of this piece of a line.
fn path_start(before: &[u8]) -> Option<usize> {
    let from =
        before.iter().rposition(|byte| matches!(byte, b'(' | b'"' | b'`' | b'<')).map_or(0, |at| at + 1);
    let bullet = if from == 0 && before.starts_with(b"- ") { 2 } else { 0 };
    let start = from + bullet;
    (start < before.len()).then_some(start)
}

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
