//! The texts of a conversation that a reply may copy from, and the places in them where a copy may begin.
//!
//! Invariant: pure; a span never leaves its text.

mod passages;
mod places;

use serde_json::Value;

use passages::passages;
use places::{from_user, paths, paths_of_user, question, words};

/// Arguments of these names are paths.
const PATH_KEYS: [&str; 6] = ["path", "file", "filepath", "filename", "uri", "file_path"];
/// Arguments of these names are what is searched for.
const QUESTION_KEYS: [&str; 4] = ["query", "q", "question", "search"];
/// Required beside a path, arguments of these names are what is to be written there.
const TEXT_KEYS: [&str; 6] = ["content", "contents", "text", "body", "data", "edits"];
/// Stands in a list for the entries that were left out.
const MORE: &str = "…";

/// Whether an argument of this name is a path.
pub(super) fn is_path_key(key: &str) -> bool {
    PATH_KEYS.contains(&key)
}

/// Whether an argument of this name is what is searched for.
pub(super) fn is_question_key(key: &str) -> bool {
    QUESTION_KEYS.contains(&key)
}

/// The user's last message and what was called and answered since, and what had been answered before.
pub(super) struct Sources {
    texts: Vec<Text>,
}

struct Text {
    bytes: Vec<u8>,
    origin: Origin,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    User,
    Tool,
    /// What a tool answered before the user's last message.
    Earlier,
    /// A passage of a tool's answer as a quotation gives it, but for the mark of its first line.
    Passage,
    /// A path that was given to a tool that then answered without naming it, as a note does that was opened.
    Opened,
    /// What stands for entries left out.
    More,
    /// The name of a tool that does not write a text into a file.
    Reader,
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

impl Span {
    /// One byte further.
    pub(super) fn next(self) -> Self {
        Self { at: self.at + 1, ..self }
    }
}

/// Beginning, end, and whether the stretch is only good as a whole.
type Place = (usize, usize, bool);

impl Sources {
    pub(super) fn new(messages: &[Value], tools: &[Value]) -> Self {
        let last = messages.iter().rposition(|message| role(message) == Some("user")).unwrap_or(0);
        let mut texts = Vec::new();
        let mut calls: Vec<(&str, String)> = Vec::new();
        let earlier = messages[..last].iter().filter(|message| role(message) == Some("tool"));
        texts.extend(earlier.filter_map(content).map(|text| Text::new(text, Origin::Earlier)));
        for message in &messages[last..] {
            match role(message) {
                Some("user") => texts.extend(content(message).map(|text| Text::new(text, Origin::User))),
                Some("assistant") => calls.extend(paths_given(message)),
                Some("tool") => {
                    let Some(text) = content(message) else { continue };
                    let id = message.get("tool_call_id").and_then(Value::as_str);
                    let opened =
                        calls.iter().filter(|(call, path)| Some(*call) == id && !text.contains(path));
                    texts.extend(opened.map(|(_, path)| Text::new(path.clone(), Origin::Opened)));
                    texts.extend(passages(&text).into_iter().map(|text| Text::new(text, Origin::Passage)));
                    texts.push(Text::new(text, Origin::Tool));
                }
                Some(_) | None => {}
            }
        }
        texts.push(Text::new(MORE.to_owned(), Origin::More));
        texts.extend(readers(tools).map(|name| Text::new(name, Origin::Reader)));
        Self { texts }
    }

    /// The byte at a place that is not at its end.
    pub(super) fn byte(&self, span: Span) -> u8 {
        self.texts[span.text].bytes[span.at]
    }

    /// Whether a line of a passage was just finished.
    pub(super) fn after_line(&self, span: Span) -> bool {
        span.at.checked_sub(1).is_some_and(|before| self.texts[span.text].bytes[before] == b'\n')
    }

    /// Whether a copy may stop here: not within a word, nor after a blank.
    pub(super) fn is_boundary(&self, span: Span) -> bool {
        places::may_end(&self.texts[span.text].bytes, span.at)
    }

    /// What a text in an argument may be: words that the user said or a tool answered.
    pub(super) fn words(&self) -> Vec<Span> {
        let mut spans = self.collect(Origin::User, from_user);
        spans.extend(self.collect(Origin::Tool, words));
        spans
    }

    /// What may be asked for: a question that begins where the user's does is the whole of it.
    pub(super) fn questions(&self) -> Vec<Span> {
        let mut spans = self.collect(Origin::User, question);
        spans.extend(self.collect(Origin::Tool, words));
        spans
    }

    /// Beginnings of the lines of passages, but for these lines. What follows in the passage may follow.
    pub(super) fn lines(&self, quoted: &[Vec<u8>]) -> Vec<Span> {
        self.collect(Origin::Passage, |bytes| {
            let starts = passages::line_starts(bytes).into_iter();
            let new = starts.filter(|(start, end)| !quoted.iter().any(|line| *line == bytes[*start..*end]));
            new.map(|(start, _)| (start, bytes.len(), true)).collect()
        })
    }

    /// Paths of notes in what the tools answered, but for these.
    pub(super) fn paths(&self, named: &[Vec<u8>]) -> Vec<Span> {
        let mut spans = self.collect(Origin::Tool, paths);
        spans
            .retain(|span| !named.iter().any(|path| *path == self.texts[span.text].bytes[span.at..span.end]));
        spans
    }

    /// Paths of the notes that were opened, but for these; where none is left, all paths that the tools named.
    pub(super) fn paths_to_cite(&self, named: &[Vec<u8>]) -> Vec<Span> {
        let mut spans = self.opened();
        spans.retain(|span| !named.iter().any(|path| self.text(*span) == path.as_slice()));
        match spans.is_empty() {
            true => self.paths(named),
            false => spans,
        }
    }

    /// What a path that was begun in the open may be: one that a tool named or was given.
    pub(super) fn paths_begun(&self, begun: &[u8]) -> Vec<Span> {
        let mut spans = self.opened();
        spans.extend(self.paths(&[]));
        spans.retain(|span| self.text(*span).starts_with(begun));
        spans.iter_mut().for_each(|span| span.at += begun.len());
        spans
    }

    /// The path that follows the last one that was named, where it stands.
    pub(super) fn next_path(&self, named: &[Vec<u8>]) -> Vec<Span> {
        let paths = self.paths(&[]);
        let Some(last) = named.last() else { return paths };
        let at = paths.iter().rposition(|span| self.text(*span) == last.as_slice());
        let rest = paths[at.map_or(0, |at| at + 1)..].iter();
        rest.copied()
            .find(|span| !named.iter().any(|path| self.text(*span) == path.as_slice()))
            .into_iter()
            .collect()
    }

    /// What a tool may be asked to open: a path that an answer or the user named, and while there is none, the user's
    /// own words or a path that was named before.
    pub(super) fn paths_to_read(&self) -> Vec<Span> {
        let mut spans = self.paths(&[]);
        spans.extend(self.collect(Origin::User, paths_of_user));
        if spans.is_empty() {
            spans = self.collect(Origin::User, from_user);
            spans.extend(self.collect(Origin::Earlier, paths));
        }
        spans
    }

    /// Whether a note was opened and nobody has named another path.
    pub(super) fn is_all_opened(&self) -> bool {
        let opened = self.opened();
        let named = self.paths(&[]).into_iter().chain(self.collect(Origin::User, paths_of_user));
        let known = |path: Span| opened.iter().any(|opened| self.text(path).ends_with(self.text(*opened)));
        !opened.is_empty() && named.into_iter().all(known)
    }

    /// The mark for entries that were left out.
    pub(super) fn more(&self) -> Vec<Span> {
        self.collect(Origin::More, whole)
    }

    /// Names of the tools that may be called. Once a tool has answered, what it found is read: nothing is written.
    pub(super) fn tools(&self) -> Vec<Span> {
        match self.texts.iter().any(|text| text.origin == Origin::Tool) {
            true => self.collect(Origin::Reader, whole),
            false => Vec::new(),
        }
    }

    fn opened(&self) -> Vec<Span> {
        self.collect(Origin::Opened, whole)
    }

    fn text(&self, span: Span) -> &[u8] {
        &self.texts[span.text].bytes[span.at..span.end]
    }

    fn collect(&self, origin: Origin, places: impl Fn(&[u8]) -> Vec<Place>) -> Vec<Span> {
        let texts = self.texts.iter().enumerate().filter(|(_, text)| text.origin == origin);
        texts
            .flat_map(|(index, text)| {
                let places = places(&text.bytes);
                places.into_iter().map(move |(at, end, whole)| Span { text: index, at, end, whole })
            })
            .collect()
    }
}

fn whole(bytes: &[u8]) -> Vec<Place> {
    vec![(0, bytes.len(), true)]
}

impl Text {
    fn new(text: String, origin: Origin) -> Self {
        Self { bytes: text.into_bytes(), origin }
    }
}

fn role(message: &Value) -> Option<&str> {
    message.get("role").and_then(Value::as_str)
}

/// Names of the tools that do not take both a path and a text for it.
fn readers(tools: &[Value]) -> impl Iterator<Item = String> {
    tools.iter().filter_map(|tool| {
        let function = tool.get("function")?;
        let required = function.pointer("/parameters/required").and_then(Value::as_array);
        let keys = || required.into_iter().flatten().filter_map(Value::as_str);
        let writes = keys().any(is_path_key) && keys().any(|key| TEXT_KEYS.contains(&key));
        (!writes).then(|| function.get("name").and_then(Value::as_str).map(str::to_owned))?
    })
}

/// The paths in the arguments of a message's calls, each with the id of its call.
fn paths_given(message: &Value) -> Vec<(&str, String)> {
    let calls = message.get("tool_calls").and_then(Value::as_array).into_iter().flatten();
    let given = calls.filter_map(|call| {
        let id = call.get("id").and_then(Value::as_str)?;
        let arguments = match call.get("function")?.get("arguments")? {
            Value::String(text) => serde_json::from_str(text).ok()?,
            other => other.clone(),
        };
        let (_, path) = arguments.as_object()?.iter().find(|(key, _)| is_path_key(key))?;
        Some((id, path.as_str().filter(|path| !path.is_empty())?.to_owned()))
    });
    given.collect()
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
