//! Turns the parser's growing message into pieces that are each given out once.
//!
//! Invariant: pure. A piece is never taken back; where the parser changes its mind, the change is left out until
//! the end and then reported.

use crate::native::ParsedMessage;
use crate::protocol::Piece;

/// What was given out so far.
#[derive(Debug, Default)]
pub(super) struct PieceStream {
    content: String,
    reasoning: String,
    calls: Vec<SentCall>,
}

#[derive(Debug, Default)]
struct SentCall {
    name: Option<String>,
    arguments: String,
}

impl PieceStream {
    /// The pieces by which the message has grown. Unfinished names wait for their arguments, or for the end.
    pub(super) fn grow(&mut self, message: &ParsedMessage, whole: bool) -> Vec<Piece> {
        let mut out = Vec::new();
        if let Some(new) = growth(&self.reasoning, &message.reasoning) {
            out.push(Piece::Thinking(new.to_owned()));
            self.reasoning.clone_from(&message.reasoning);
        }
        if let Some(new) = growth(&self.content, &message.content) {
            out.push(Piece::Text(new.to_owned()));
            self.content.clone_from(&message.content);
        }
        for (index, call) in message.tool_calls.iter().enumerate() {
            if self.calls.len() <= index {
                self.calls.push(SentCall::default());
            }
            let last = index + 1 == message.tool_calls.len();
            let settled = whole || !last || !call.arguments.is_empty();
            let sent = &mut self.calls[index];
            let index = u32::try_from(index).unwrap_or(u32::MAX);
            if sent.name.is_none() && settled && !call.name.is_empty() {
                sent.name = Some(call.name.clone());
                out.push(Piece::Call { index, name: call.name.clone() });
            }
            if let (Some(_), Some(new)) = (&sent.name, growth(&sent.arguments, &call.arguments)) {
                out.push(Piece::Arguments { index, fragment: new.to_owned() });
                sent.arguments.clone_from(&call.arguments);
            }
        }
        out
    }

    /// Whether anything but reasoning was given out.
    pub(super) fn is_silent(&self) -> bool {
        self.content.trim().is_empty() && self.calls.is_empty()
    }

    /// Whether a call was begun.
    pub(super) fn has_calls(&self) -> bool {
        !self.calls.is_empty()
    }

    /// How much content was given out.
    pub(super) fn content(&self) -> &str {
        &self.content
    }
}

/// What is new, if the text has grown.
fn growth<'text>(sent: &str, now: &'text str) -> Option<&'text str> {
    now.strip_prefix(sent).filter(|new| !new.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::ParsedCall;

    fn message(content: &str, calls: &[(&str, &str)]) -> ParsedMessage {
        let tool_calls = calls
            .iter()
            .map(|(name, arguments)| ParsedCall { name: (*name).into(), arguments: (*arguments).into() })
            .collect();
        ParsedMessage { content: content.into(), reasoning: String::new(), tool_calls }
    }

    #[test]
    fn names_wait_until_they_are_whole() {
        let mut stream = PieceStream::default();
        assert_eq!(stream.grow(&message("Hi", &[("no", "")]), false), [Piece::Text("Hi".into())]);
        assert_eq!(
            stream.grow(&message("Hi", &[("notes", "{\"q")]), false),
            [
                Piece::Call { index: 0, name: "notes".into() },
                Piece::Arguments { index: 0, fragment: "{\"q".into() },
            ]
        );
        assert_eq!(
            stream.grow(&message("Hi", &[("notes", "{\"q\":1}"), ("b", "")]), true),
            [
                Piece::Arguments { index: 0, fragment: "\":1}".into() },
                Piece::Call { index: 1, name: "b".into() },
            ]
        );
    }

    #[test]
    fn nothing_is_taken_back() {
        let mut stream = PieceStream::default();
        stream.grow(&message("Hello", &[]), false);
        assert_eq!(stream.grow(&message("Help", &[]), false), []);
        assert_eq!(stream.grow(&message("Hello you", &[]), false), [Piece::Text(" you".into())]);
    }
}
