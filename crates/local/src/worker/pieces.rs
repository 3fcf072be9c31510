//! Turns the parser's growing message into pieces that are each given out once.
//!
//! Invariant: pure. A piece is never taken back; where the parser changes its mind, the change is left out until
//! the end and then reported.

use serde_json::Value;

use crate::native::{Format, ParsedMessage};
use crate::parse::{begins_thinking, split_thought};
use crate::prompted::{before_tag, parse_free_text};
use crate::protocol::Piece;

/// What was given out so far.
#[derive(Debug, Default)]
pub(super) struct PieceStream {
    /// Names that a call can have before its reply is whole.
    tools: Vec<String>,
    /// How thinking begins, and how it may end.
    thinking: (String, Vec<String>),
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
    /// For a reply in which these tools may be called, and thinking begins and ends so. A call of another tool may still turn
    /// out to be text; it waits for the end.
    pub(super) fn new(tools: Vec<String>, thinking: (String, Vec<String>)) -> Self {
        Self { tools, thinking, ..Self::default() }
    }

    /// The pieces by which the message has grown. Unfinished names wait for their arguments, or for the end.
    pub(super) fn grow(&mut self, message: &ParsedMessage, whole: bool) -> Vec<Piece> {
        let mut out = Vec::new();
        // What may become the tag of a call is not said; before a call it is a part of it.
        let whole_text = whole && message.tool_calls.is_empty();
        let certain = |text| if whole_text { text } else { before_tag(text) };
        let opening = self.thinking.0.starts_with(message.reasoning.trim());
        let thought = match (whole, opening) {
            (true, _) => &message.reasoning,
            (false, true) => "",
            (false, false) => before_tag(&message.reasoning),
        };
        if let Some(new) = growth(&self.reasoning, thought) {
            out.push(Piece::Thinking(new.to_owned()));
            thought.clone_into(&mut self.reasoning);
        }
        // A parser that gives the thinking up takes it for text.
        let unread_thought = !whole && begins_thinking(&message.content, &self.thinking.0);
        let said = if unread_thought { "" } else { certain(&message.content) };
        if let Some(new) = growth(&self.content, said) {
            out.push(Piece::Text(new.to_owned()));
            said.clone_into(&mut self.content);
        }
        for (index, call) in message.tool_calls.iter().enumerate() {
            if self.calls.len() <= index {
                self.calls.push(SentCall::default());
            }
            let last = index + 1 == message.tool_calls.len();
            let known = self.tools.contains(&call.name) && (!last || call.has_begun());
            let sent = &mut self.calls[index];
            if sent.name.is_none() && !(whole || known) {
                break;
            }
            let index = u32::try_from(index).unwrap_or(u32::MAX);
            if sent.name.is_none() && !call.name.is_empty() {
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

    /// The pieces that are new in the beginning of a reply. A text that cannot be parsed yet is shown later, at the
    /// latest at the end.
    pub(super) fn read(&mut self, format: &Format, text: &str) -> Vec<Piece> {
        format.parse(text, true).map(|message| self.grow(&message, false)).unwrap_or_default()
    }

    /// The last pieces of a reply, and the part of its text that the template's parser could not read.
    pub(super) fn end(
        &mut self,
        message: Option<&ParsedMessage>,
        format: Option<&Format>,
        raw: &str,
    ) -> (Vec<Piece>, Option<String>) {
        match message {
            Some(message) => {
                let split = split_thought(&message.content, &self.thinking.0, &self.thinking.1, None);
                match split.filter(|_| message.reasoning.is_empty() && self.is_silent()) {
                    Some((reasoning, said)) => {
                        let message =
                            ParsedMessage { reasoning, content: said.to_owned(), ..message.clone() };
                        (self.grow(&message, true), None)
                    }
                    None => (self.grow(message, true), None),
                }
            }
            None => {
                let (mut out, raw) = self.thought(format, raw);
                out.extend(self.completed(raw));
                (out, self.unread(raw))
            }
        }
    }

    /// What was thought in a reply of which nothing was given out, and the rest.
    fn thought<'text>(&self, format: Option<&Format>, raw: &'text str) -> (Vec<Piece>, &'text str) {
        let split =
            split_thought(raw, &self.thinking.0, &self.thinking.1, format).filter(|_| self.is_silent());
        let Some((thought, rest)) = split else { return (Vec::new(), raw) };
        let pieces = if thought.is_empty() { Vec::new() } else { vec![Piece::Thinking(thought)] };
        (pieces, rest)
    }

    fn is_silent(&self) -> bool {
        self.reasoning.is_empty()
            && self.content.is_empty()
            && self.calls.iter().all(|call| call.name.is_none())
    }

    /// Calls that were begun in a form that is not quite the template's: the rest of them, when they can be read
    /// otherwise. Else what was begun stays begun; nothing new is believed.
    fn completed(&mut self, raw: &str) -> Vec<Piece> {
        let begun = self.calls.iter().filter(|call| call.name.is_some()).count();
        let (_, found) = parse_free_text(raw, self.tools.iter().cloned(), false);
        let found: Vec<(String, String)> =
            found.into_iter().map(|call| (call.name, Value::Object(call.arguments).to_string())).collect();
        let goes_on = |(sent, (name, arguments)): (&SentCall, &(String, String))| {
            sent.name.as_ref() == Some(name) && arguments.starts_with(&sent.arguments)
        };
        if begun == 0 || found.len() < begun || !self.calls[..begun].iter().zip(&found).all(goes_on) {
            return Vec::new();
        }
        let mut out = Vec::new();
        for (place, (name, arguments)) in found.into_iter().enumerate() {
            let index = u32::try_from(place).unwrap_or(u32::MAX);
            let sent = self.calls.get(place).filter(|call| call.name.is_some());
            let known = sent.map_or(0, |call| call.arguments.len());
            if sent.is_none() {
                out.push(Piece::Call { index, name });
            }
            out.push(Piece::Arguments { index, fragment: arguments[known..].to_owned() });
        }
        out
    }

    fn unread(&self, raw: &str) -> Option<String> {
        if self.calls.iter().any(|call| call.name.is_some()) {
            return None;
        }
        let (thought, said) = (self.reasoning.trim(), self.content.as_str());
        let mut rest = raw;
        if let Some(at) = raw.find(thought).filter(|_| !thought.is_empty()) {
            rest = raw[at + thought.len()..].trim_start();
            rest = self.thinking.1.iter().find_map(|end| rest.strip_prefix(end.trim())).unwrap_or(rest);
        }
        if !said.trim().is_empty() {
            rest = rest.split_once(said).map_or("", |(_, rest)| rest);
        }
        (!rest.is_empty()).then(|| rest.to_owned())
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

    fn thinking() -> (String, Vec<String>) {
        ("<think>".into(), vec!["</think>".into()])
    }

    #[test]
    fn names_wait_until_they_are_whole() {
        let mut stream = PieceStream::new(vec!["notes".into()], Default::default());
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
    fn a_call_of_an_unknown_tool_waits_for_the_end() {
        let mut stream = PieceStream::new(vec!["notes".into()], thinking());
        let message = message("", &[("John", "{}"), ("notes", "{}")]);
        assert_eq!(stream.grow(&message, false), []);
        assert_eq!(stream.end(None, None, "{'name': 'John'}").1.as_deref(), Some("{'name': 'John'}"));
        assert_eq!(stream.end(Some(&message), None, "").0.len(), 4);
    }

    #[test]
    fn a_call_that_the_parser_gives_up_is_completed() {
        let mut stream = PieceStream::new(vec!["notes".into()], Default::default());
        stream.grow(&message("I look. <tool_call>", &[("notes", "{\"")]), false);
        let raw = "I look. <tool_call>{\"name\": \"notes\", \"arguments\": {\"q\": 1}}</tool_call>";
        let rest = Piece::Arguments { index: 0, fragment: "q\":1}".into() };
        assert_eq!(stream.end(None, None, raw), (vec![rest], None));
        assert_eq!(stream.content, "I look. ");
    }

    #[test]
    fn what_was_thought_and_said_is_not_unread() {
        let mut stream = PieceStream::new(vec![], thinking());
        stream.grow(&ParsedMessage { reasoning: "Hm.".into(), ..message("Well, ", &[]) }, false);
        let raw = "<think>\nHm.\n</think>\nWell, <tool_call>";
        assert_eq!(stream.end(None, None, raw).1.as_deref(), Some("<tool_call>"));
        let mut silent = PieceStream::new(vec![], thinking());
        silent.grow(&ParsedMessage { reasoning: "Hm.".into(), ..message("", &[]) }, false);
        assert_eq!(silent.end(None, None, "<think>Hm.</think><odd>").1.as_deref(), Some("<odd>"));
    }

    #[test]
    fn nothing_is_taken_back() {
        let mut stream = PieceStream::default();
        stream.grow(&message("Hello", &[]), false);
        assert_eq!(stream.grow(&message("Help", &[]), false), []);
        assert_eq!(stream.grow(&message("Hello you", &[]), false), [Piece::Text(" you".into())]);
    }
}
