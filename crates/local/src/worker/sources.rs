//! The texts of a conversation that a reply may copy from, and the places in them where a copy may begin.
//!
//! Invariant: pure; a span never leaves its text.

mod passages;
mod places;

use serde_json::Value;

use passages::{passages, passages_of_hit};
use places::{from_user, paths, paths_of_user, question, words};

/// Arguments of these names are paths.
const PATH_KEYS: [&str; 6] = ["path", "file", "filepath", "filename", "uri", "file_path"];
/// Arguments of these names are what is searched for.
const QUESTION_KEYS: [&str; 4] = ["query", "q", "question", "search"];
/// Required beside a path, arguments of these names are what is to be written there.
const TEXT_KEYS: [&str; 6] = ["content", "contents", "text", "body", "data", "edits"];
/// In their names, tools that are given a path and do not open it.
const LOOKS: [&str; 6] = ["list", "dir", "tree", "info", "search", "find"];
/// Stands in a list for the entries that were left out.
const MORE: &str = "…";

/// Whether an argument of this name is a path.
pub(super) fn is_path_key(key: &str) -> bool {
    PATH_KEYS.contains(&key)
}

/// Whether lines that begin so make a list.
pub(super) fn is_bullet(opener: &[u8]) -> bool {
    opener.first().is_some_and(u8::is_ascii_punctuation)
}

/// Whether an argument of this name is what is searched for.
pub(super) fn is_question_key(key: &str) -> bool {
    QUESTION_KEYS.contains(&key)
}

/// The user's last message and what was called and answered since, and what had been answered before.
pub(super) struct Sources {
    texts: Vec<Text>,
    /// What the model had said before the user's last message.
    said: Vec<String>,
    /// Passages that were found of the notes that were opened: the path, and which text it is.
    found: Vec<(String, usize)>,
    /// Whether the last thing that happened is that a note was opened which holds something.
    opened: bool,
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
    /// What the answer about a note may begin with.
    Opener,
    /// What a call begins with.
    Call,
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
    /// `openers` are what a line begins with after which a path stands, `call` is what a call begins with.
    pub(super) fn new(messages: &[Value], tools: &[Value], openers: &[Vec<u8>], call: &[u8]) -> Self {
        let last = messages.iter().rposition(|message| role(message) == Some("user")).unwrap_or(0);
        let earlier = |who| {
            let messages = messages[..last].iter().filter(move |message| role(message) == Some(who));
            messages.filter_map(content)
        };
        let texts = earlier("tool").map(|text| Text::new(text, Origin::Earlier)).collect();
        let mut sources =
            Self { texts, said: earlier("assistant").collect(), found: Vec::new(), opened: false };
        let mut calls: Vec<(&str, String)> = Vec::new();
        for message in &messages[last..] {
            match (role(message), content(message)) {
                (Some("user"), Some(text)) => sources.texts.push(Text::new(text, Origin::User)),
                (Some("assistant"), _) => calls.extend(paths_opened(message)),
                (Some("tool"), Some(text)) => {
                    let id = message.get("tool_call_id").and_then(Value::as_str);
                    sources.add_answer(&text, calls.iter().filter(|(call, _)| Some(*call) == id));
                }
                _ => {}
            }
        }
        let openers = openers.iter().filter(|opener| !is_bullet(opener));
        sources.texts.extend(openers.map(|opener| Text { bytes: opener.clone(), origin: Origin::Opener }));
        sources.texts.push(Text { bytes: call.to_vec(), origin: Origin::Call });
        sources.texts.push(Text::new(MORE.to_owned(), Origin::More));
        sources.texts.extend(readers(tools).map(|name| Text::new(name, Origin::Reader)));
        sources
    }

    /// What a tool answered to a call that was given these paths. An error begins with a line that names the path; a note
    /// may do so in its title.
    fn add_answer<'a>(&mut self, text: &str, given: impl Iterator<Item = &'a (&'a str, String)>) {
        let before = self.texts.len();
        let first = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
        let opened = given.filter(|(_, path)| first.starts_with('#') || !first.contains(path));
        for (_, path) in opened {
            for passage in self.found_of(path) {
                self.found.push((path.clone(), self.texts.len()));
                self.texts.push(Text::new(passage, Origin::Passage));
            }
            self.texts.push(Text::new(path.clone(), Origin::Opened));
        }
        self.opened = self.texts.len() > before && !text.trim().is_empty();
        self.texts.extend(passages(text).into_iter().map(|text| Text::new(text, Origin::Passage)));
        self.texts.push(Text::new(text.to_owned(), Origin::Tool));
    }

    /// What was found of a note, the best first: since the user's last message or, if that is nothing, before; and of
    /// that, what is not quoted yet, if there is any.
    fn found_of(&self, path: &str) -> Vec<String> {
        let of = |origin: Origin| -> Vec<String> {
            let texts = self.texts.iter().filter(|text| text.origin == origin);
            texts.flat_map(|text| passages_of_hit(&String::from_utf8_lossy(&text.bytes), path)).collect()
        };
        let now = of(Origin::Tool);
        if !now.is_empty() {
            return now;
        }
        let found = of(Origin::Earlier);
        let is_new = |passage: &&String| !self.said.iter().any(|said| said.contains(passage.trim_end()));
        let new: Vec<String> = found.iter().filter(is_new).cloned().collect();
        if new.is_empty() { found } else { new }
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

    /// The beginning of the best of what was found of a note that was opened; nothing where it was not searched for.
    pub(super) fn best_found(&self, path: &[u8]) -> Vec<Span> {
        let best = self.found.iter().find(|(found, _)| found.as_bytes() == path).map(|(_, text)| *text);
        let starts = best.and_then(|text| {
            let bytes = &self.texts[text].bytes;
            let start = passages::line_starts(bytes).first().map(|(start, _)| *start)?;
            Some(Span { text, at: start, end: bytes.len(), whole: true })
        });
        starts.into_iter().collect()
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
    /// own words or a path that was named before. What was opened is not opened again.
    pub(super) fn paths_to_read(&self) -> Vec<Span> {
        let mut spans = self.paths(&[]);
        spans.extend(self.collect(Origin::User, paths_of_user));
        let opened = self.opened();
        let new: Vec<Span> = spans.iter().copied().filter(|path| !self.is_opened(*path, &opened)).collect();
        if !new.is_empty() {
            return new;
        }
        if spans.is_empty() {
            spans = self.collect(Origin::User, from_user);
            spans.extend(self.collect(Origin::Earlier, paths));
        }
        spans
    }

    /// What a reply may begin with after a note was opened: its path, an opener, or the next call while the user has named
    /// another path to open. Nothing where anything may follow.
    pub(super) fn beginnings(&self) -> Vec<Span> {
        let mut spans = Vec::new();
        if self.opened {
            spans.extend(self.opened());
            spans.extend(self.collect(Origin::Opener, whole));
            spans.extend(if self.is_all_opened() { Vec::new() } else { self.collect(Origin::Call, whole) });
        }
        spans
    }

    /// Whether the user has named no other path than those that were opened.
    fn is_all_opened(&self) -> bool {
        let opened = self.opened();
        self.collect(Origin::User, paths_of_user).into_iter().all(|path| self.is_opened(path, &opened))
    }

    /// Whether a path, perhaps with words of the user before it, is one of those that were opened.
    fn is_opened(&self, path: Span, opened: &[Span]) -> bool {
        opened.iter().any(|opened| self.text(path).ends_with(self.text(*opened)))
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

/// The paths in the arguments of a message's calls that read something, each with the id of its call.
fn paths_opened(message: &Value) -> Vec<(&str, String)> {
    let calls = message.get("tool_calls").and_then(Value::as_array).into_iter().flatten();
    let given = calls.filter_map(|call| {
        let id = call.get("id").and_then(Value::as_str)?;
        let function = call.get("function")?;
        let name = function.get("name").and_then(Value::as_str)?.to_lowercase();
        let arguments = match function.get("arguments")? {
            Value::String(text) => serde_json::from_str(text).ok()?,
            other => other.clone(),
        };
        let arguments = arguments.as_object()?;
        let other = LOOKS.iter().any(|look| name.contains(look))
            || arguments.keys().any(|key| TEXT_KEYS.contains(&key.as_str()));
        let (_, path) = arguments.iter().find(|(key, _)| !other && is_path_key(key))?;
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
