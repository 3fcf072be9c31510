//! Cuts a body into the events of a stream, wherever the network cut it, and keeps what is no event.
//!
//! Why not the workspace's `sse-stream`: by the book, a line without a known field name is dropped, and so is a last
//! event without an empty line behind it. Vertex writes a plain JSON error after good events (the recorded answer
//! `streaming-failure-error-mid-stream.txt`): the reply would look whole. Some servers end without the empty line, and
//! an answer that is no stream at all (one JSON document, a page of HTML) has to be read too; and some leave the empty
//! line between events out. The tests compare both parsers on everything else.
//!
//! Invariant: pure. The same bytes give the same events however they are cut; no event and no rest is longer than the
//! limit.

use memchr::memchr2;

/// What is longer is no reply of a chat model.
pub(crate) const LIMIT: usize = 64 << 20;

/// The body is longer than it may be.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

/// Cuts one body.
#[derive(Default)]
pub(crate) struct Splitter {
    /// A line whose end has not come.
    line: Vec<u8>,
    after_cr: bool,
    begun: bool,
    /// The data of the event that is being read.
    data: Vec<u8>,
    has_data: bool,
    /// Lines that belong to no event.
    stray: Vec<u8>,
}

impl Splitter {
    /// Takes bytes in and gives each event that is whole with them to `event`.
    pub(crate) fn push(&mut self, mut bytes: &[u8], event: &mut dyn FnMut(&[u8])) -> Result<(), TooLong> {
        if self.after_cr && !bytes.is_empty() {
            self.after_cr = false;
            bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
        }
        while let Some(end) = memchr2(b'\n', b'\r', bytes) {
            if self.line.is_empty() {
                self.take_line(&bytes[..end], event)?;
            } else {
                let mut line = std::mem::take(&mut self.line);
                line.extend_from_slice(&bytes[..end]);
                let taken = self.take_line(&line, event);
                line.clear();
                self.line = line;
                taken?;
            }
            let was_cr = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
            if was_cr {
                self.after_cr = bytes.is_empty();
                bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
            }
        }
        self.line.extend_from_slice(bytes);
        if self.line.len() > LIMIT { Err(TooLong) } else { Ok(()) }
    }

    /// The body is over: the last event, if no empty line ended it, and what was no event.
    pub(crate) fn finish(mut self, event: &mut dyn FnMut(&[u8])) -> Result<Vec<u8>, TooLong> {
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.take_line(&line, event)?;
        }
        self.dispatch(event);
        Ok(self.stray)
    }

    fn take_line(&mut self, mut line: &[u8], event: &mut dyn FnMut(&[u8])) -> Result<(), TooLong> {
        if !std::mem::replace(&mut self.begun, true) {
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        if line.is_empty() {
            self.dispatch(event);
        } else if let Some(value) = field(line, b"data") {
            if self.begins_anew(value) {
                self.dispatch(event);
            }
            if std::mem::replace(&mut self.has_data, true) {
                self.data.push(b'\n');
            }
            self.data.extend_from_slice(value);
        } else if !(self.stray.is_empty() && is_other_field(line)) {
            self.stray.extend_from_slice(line);
            self.stray.push(b'\n');
        }
        if self.data.len().max(self.stray.len()) > LIMIT { Err(TooLong) } else { Ok(()) }
    }

    /// Whether this line of data is a document of its own: some servers leave out the empty line between events. In one
    /// document an object never begins right behind the end of another.
    fn begins_anew(&self, value: &[u8]) -> bool {
        let value = value.trim_ascii_start();
        let begins = value.starts_with(b"{") || value.starts_with(b"[DONE]");
        begins && self.data.trim_ascii_end().ends_with(b"}")
    }

    fn dispatch(&mut self, event: &mut dyn FnMut(&[u8])) {
        if std::mem::take(&mut self.has_data) {
            event(&self.data);
            self.data.clear();
        }
    }
}

/// The value of a line of this field (HTML, Server-sent events, 9.2.6).
fn field<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let rest = line.strip_prefix(name)?;
    match rest {
        [] => Some(rest),
        [b':', b' ', value @ ..] | [b':', value @ ..] => Some(value),
        [_, ..] => None,
    }
}

/// Comments, and the fields that say nothing of a reply.
fn is_other_field(line: &[u8]) -> bool {
    line.starts_with(b":") || [&b"event"[..], b"id", b"retry"].iter().any(|name| field(line, name).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(body: &[u8], size: usize) -> (Vec<String>, String) {
        let mut splitter = Splitter::default();
        let mut events = Vec::new();
        let mut event = |data: &[u8]| events.push(String::from_utf8(data.to_vec()).unwrap());
        for piece in body.chunks(size) {
            splitter.push(piece, &mut event).unwrap();
        }
        let stray = splitter.finish(&mut event).unwrap();
        (events, String::from_utf8(stray).unwrap())
    }

    #[test]
    fn every_line_ending_and_every_cut_gives_the_same() {
        for end in ["\n", "\r\n", "\r"] {
            let lines =
                ["\u{feff}: hello", "data: a", "data:b", "data", "id: 1", "", "event: x", "data:  c", ""];
            let body = lines.join(end) + end;
            for size in 1..body.len() {
                assert_eq!(cut(body.as_bytes(), size), (vec!["a\nb\n".into(), " c".into()], String::new()));
            }
        }
    }

    #[test]
    fn a_last_event_without_an_empty_line_counts() {
        assert_eq!(cut(b"data: a\n\ndata: b", 3).0, ["a", "b"]);
    }

    #[test]
    fn documents_on_lines_without_an_empty_one_between_are_events() {
        for end in ["\n", "\r\n"] {
            let body = ["data: {\"a\":{}}", "data: {\"b\":", "data: 1}", "data: [DONE]", ""].join(end);
            for size in 1..body.len() {
                let (events, _) = cut(body.as_bytes(), size);
                assert_eq!(events, ["{\"a\":{}}", "{\"b\":\n1}", "[DONE]"]);
            }
        }
    }

    #[test]
    fn what_is_no_event_is_kept() {
        let (events, stray) = cut(b"data: {}\n\n{\n  \"error\": {\n    \"id\": 1\n:\n2}}\n", 2);
        assert_eq!(events, ["{}"]);
        assert_eq!(stray, "{\n  \"error\": {\n    \"id\": 1\n:\n2}}\n");
    }

    #[test]
    fn a_line_without_an_end_is_bounded() {
        let mut splitter = Splitter::default();
        let piece = vec![b'x'; 1 << 20];
        let refused = (0..65).any(|_| splitter.push(&piece, &mut |_| ()).is_err());
        assert!(refused);
    }
}
