//! Lines of JSON from a server's output.
//!
//! Invariant: no line, however long, broken or oddly encoded, stops the reading, and whatever could have been a reply
//! names the request that it would have answered, as far as that can be read.

use serde_json::Value;
use tokio::io::{AsyncBufRead, AsyncBufReadExt};

/// What came on one line.
#[derive(Debug, PartialEq)]
pub(crate) enum Line {
    /// A JSON value.
    Message(Value),
    /// Something that was meant as a message, but can't be read.
    Damaged {
        /// The id in it, if one was found.
        id: Option<Value>,
        /// What is wrong, a lowercase fragment.
        reason: String,
    },
    /// Not a message at all: a banner, a stray print.
    Chatter(String),
}

/// Reads lines of at most `limit` bytes.
pub(crate) struct LineReader<R> {
    source: R,
    limit: usize,
    line: Vec<u8>,
}

impl<R: AsyncBufRead + Unpin> LineReader<R> {
    pub(crate) fn new(source: R, limit: usize) -> Self {
        Self { source, limit, line: Vec::new() }
    }

    /// The last line that was read, as it came; empty when it was too long.
    pub(crate) fn text(&self) -> &[u8] {
        trimmed(&self.line)
    }

    /// The next line that is not empty; none at the end.
    pub(crate) async fn next(&mut self) -> std::io::Result<Option<Line>> {
        loop {
            let line = &mut self.line;
            *line = Vec::new();
            let mut too_long: Option<(usize, IdScanner)> = None;
            let mut ended = false;
            while !ended {
                let chunk = self.source.fill_buf().await?;
                if chunk.is_empty() {
                    if line.is_empty() && too_long.is_none() {
                        return Ok(None);
                    }
                    break;
                }
                let newline = memchr::memchr(b'\n', chunk);
                let (part, used) = newline.map_or((chunk, chunk.len()), |at| (&chunk[..at], at + 1));
                match &mut too_long {
                    Some((length, scanner)) => {
                        *length += part.len();
                        scanner.feed(part);
                    }
                    None if line.len() + part.len() > self.limit => {
                        let mut scanner = IdScanner::default();
                        scanner.feed(line);
                        scanner.feed(part);
                        too_long = Some((line.len() + part.len(), scanner));
                        *line = Vec::new();
                    }
                    None => line.extend_from_slice(part),
                }
                self.source.consume(used);
                ended = newline.is_some();
            }
            if let Some((length, scanner)) = too_long {
                let reason =
                    format!("the message has {length} bytes, more than the {} that are allowed", self.limit);
                return Ok(Some(Line::Damaged { id: scanner.id(), reason }));
            }
            if let Some(line) = parse(line) {
                return Ok(Some(line));
            }
        }
    }
}

fn trimmed(line: &[u8]) -> &[u8] {
    line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line).trim_ascii()
}

/// Reads one line; none when it is blank.
fn parse(line: &[u8]) -> Option<Line> {
    let line = trimmed(line);
    if line.is_empty() {
        return None;
    }
    let error = match serde_json::from_slice::<Value>(line) {
        Ok(message @ (Value::Object(_) | Value::Array(_))) => return Some(Line::Message(message)),
        Ok(_) => return Some(Line::Chatter(String::from_utf8_lossy(line).into_owned())),
        Err(error) => error,
    };
    let text = String::from_utf8_lossy(line);
    if !text.contains("\"jsonrpc\"") {
        return Some(Line::Chatter(text.into_owned()));
    }
    let mut scanner = IdScanner::default();
    scanner.feed(line);
    let reason = match std::str::from_utf8(line) {
        Err(_) => "the message is not valid UTF-8".to_owned(),
        Ok(_) => format!("the message is not valid JSON ({error})"),
    };
    Some(Line::Damaged { id: scanner.id(), reason })
}

/// Finds the value of `"id"` at the top level of a JSON object, byte by byte, in constant memory.
#[derive(Default)]
struct IdScanner {
    depth: usize,
    in_string: bool,
    escaped: bool,
    /// The string or number being read, at the top level only.
    token: Vec<u8>,
    reading_id: bool,
    id: Option<Vec<u8>>,
}

impl IdScanner {
    /// Longer ids are nobody's.
    const LONGEST: usize = 256;

    fn feed(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.byte(byte);
        }
    }

    fn id(mut self) -> Option<Value> {
        if self.reading_id {
            self.finish_id();
        }
        let id: Value = serde_json::from_slice(&self.id?).ok()?;
        (id.is_number() || id.is_string()).then_some(id)
    }

    fn byte(&mut self, byte: u8) {
        if self.in_string {
            self.keep(byte);
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
            return;
        }
        match byte {
            b'"' => {
                if !self.reading_id {
                    self.token.clear();
                }
                self.in_string = true;
                self.keep(byte);
            }
            b':' if self.depth == 1 => {
                self.reading_id = self.token == b"\"id\"" && self.id.is_none();
                self.token.clear();
            }
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' | b',' => {
                if self.depth == 1 && self.reading_id {
                    self.finish_id();
                }
                if byte != b',' {
                    self.depth = self.depth.saturating_sub(1);
                }
            }
            b' ' | b'\t' | b'\r' => {}
            _ => self.keep(byte),
        }
    }

    fn keep(&mut self, byte: u8) {
        if self.depth == 1 && self.token.len() < Self::LONGEST {
            self.token.push(byte);
        }
    }

    fn finish_id(&mut self) {
        self.id = Some(std::mem::take(&mut self.token));
        self.reading_id = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tokio::io::BufReader;

    async fn lines(input: &[u8], limit: usize) -> Vec<Line> {
        // A small buffer, so that lines span several reads.
        let mut reader = LineReader::new(BufReader::with_capacity(7, input), limit);
        let mut lines = Vec::new();
        while let Some(line) = reader.next().await.unwrap() {
            lines.push(line);
        }
        lines
    }

    #[tokio::test]
    async fn messages_chatter_and_blank_lines_are_told_apart() {
        let input = b"Starting server...\r\n\r\n\xef\xbb\xbf{\"id\":1}\r\n42\n{'python': 1}\n[{\"id\":2}]";
        assert_eq!(
            lines(input, 1_000).await,
            [
                Line::Chatter("Starting server...".into()),
                Line::Message(json!({"id": 1})),
                Line::Chatter("42".into()),
                Line::Chatter("{'python': 1}".into()),
                Line::Message(json!([{"id": 2}])),
            ]
        );
    }

    #[tokio::test]
    async fn a_message_that_is_too_long_names_its_request_wherever_the_id_stands() {
        let filler = "y".repeat(500);
        for message in [
            format!(r#"{{"jsonrpc":"2.0","id":7,"result":{{"id":8,"x":"{filler}"}}}}"#),
            format!(r#"{{"result":{{"id":8,"x":"\"id\":9,{filler}"}},"jsonrpc":"2.0","id": 7 }}"#),
        ] {
            let input = format!("{message}\n{{\"id\":3}}\n");
            let lines = lines(input.as_bytes(), 100).await;
            assert!(
                matches!(&lines[0], Line::Damaged { id: Some(id), reason }
                if *id == json!(7) && reason.contains("bytes, more than the 100")),
                "{lines:?}"
            );
            assert_eq!(lines[1], Line::Message(json!({"id": 3})));
        }
    }

    #[tokio::test]
    async fn broken_encoding_names_its_request() {
        let input = b"{\"jsonrpc\":\"2.0\",\"id\":\"a\\\"b\",\"result\":{\"text\":\"\xff\xfe\"}}\n";
        let reason = "the message is not valid UTF-8".to_owned();
        assert_eq!(lines(input, 1_000).await, [Line::Damaged { id: Some(json!("a\"b")), reason }]);
    }

    #[tokio::test]
    async fn a_torn_message_without_id_is_still_damage() {
        let lines = lines(b"{\"jsonrpc\":\"2.0\",\"result\":{\n", 1_000).await;
        assert!(matches!(&lines[..], [Line::Damaged { id: None, .. }]), "{lines:?}");
    }
}
