//! Says whether one question was answered right: the right tool, the right note, the right quote.
//!
//! Invariant: pure. The same turn is always judged the same.

use std::collections::BTreeSet;

use lectern_core::{AssistantMessage, EventKind, ToolCall, ToolOutcome, ToolResult, Usage};
use serde::Deserialize;
use serde_json::Value;

/// A listing is answered when it names this many of its notes, or all of them.
const LISTED: usize = 8;

/// One fixed question.
#[derive(Clone, Debug, Deserialize)]
pub struct Question {
    /// Its name in reports.
    pub id: String,
    /// The language it is asked in.
    pub lang: String,
    /// What was asked before it, in the same conversation.
    #[serde(default)]
    pub before: Vec<String>,
    /// What is asked.
    pub question: String,
    /// What kind of answer is right.
    pub kind: Kind,
    /// The note, or the folder of a listing.
    pub path: Option<String>,
    /// What the answer quotes, or what is written.
    pub quote: Option<String>,
    /// The tools that have to be called, in this order, by the server's own names; where there are none, none may be.
    pub tools: Vec<String>,
}

/// What kind of answer is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A passage that search has to find.
    Ask,
    /// A note that is named.
    Read,
    /// The notes of a folder.
    List,
    /// A change on disk.
    Write,
    /// That there is nothing.
    None,
}

impl Kind {
    /// As the questions spell it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::Read => "read",
            Self::List => "list",
            Self::Write => "write",
            Self::None => "none",
        }
    }
}

/// What a turn did.
#[derive(Clone, Debug, Default)]
pub struct Done {
    /// Calls with their results, in order.
    pub calls: Vec<(ToolCall, ToolResult)>,
    /// The last message's text.
    pub answer: String,
    /// Over all steps but the first: tokens that the step before had evaluated, and how many of them were reused.
    pub reuse: (u64, u64),
    started: Vec<ToolCall>,
    before: Option<Usage>,
}

impl Done {
    /// Takes one event of the turn.
    pub fn take(&mut self, event: &EventKind) {
        match event {
            EventKind::StepFinished { message, stats, .. } => self.step(message, stats.usage),
            EventKind::ToolFinished { result, .. } => {
                if let Some(call) = self.started.iter().find(|call| call.id == result.call) {
                    self.calls.push((call.clone(), result.clone()));
                }
            }
            EventKind::TurnStarted { .. }
            | EventKind::StepStarted { .. }
            | EventKind::ModelLoading { .. }
            | EventKind::PromptProgress { .. }
            | EventKind::TextDelta { .. }
            | EventKind::ThinkingDelta { .. }
            | EventKind::ToolCallDelta { .. }
            | EventKind::PermissionRequested { .. }
            | EventKind::PermissionAnswered { .. }
            | EventKind::ToolStarted { .. }
            | EventKind::ToolProgress { .. }
            | EventKind::ToolWire { .. }
            | EventKind::ToolLog { .. }
            | EventKind::QuestionAsked { .. }
            | EventKind::QuestionAnswered { .. }
            | EventKind::SampleFinished { .. }
            | EventKind::Retrying { .. }
            | EventKind::Notice { .. }
            | EventKind::TurnFinished { .. } => {}
        }
    }

    fn step(&mut self, message: &AssistantMessage, usage: Usage) {
        self.started.extend(message.tool_calls().cloned());
        self.answer = message.text();
        if usage.prompt_tokens == 0 {
            // The step failed before its prompt was read.
            return;
        }
        if let Some(before) = self.before.replace(usage) {
            self.reuse.0 += u64::from(before.prompt_tokens) + u64::from(before.generated_tokens);
            self.reuse.1 += u64::from(usage.reused_tokens);
        }
    }

    /// The tools that succeeded, by the server's own names.
    fn tools(&self) -> Vec<&str> {
        self.succeeded().map(|(call, _)| own_name(call.tool.as_str())).collect()
    }

    fn succeeded(&self) -> impl Iterator<Item = &(ToolCall, ToolResult)> {
        self.calls.iter().filter(|(_, result)| result.outcome == ToolOutcome::Succeeded)
    }
}

/// What the vault looks like around a question.
pub struct Vault<'a> {
    /// Paths of all notes.
    pub notes: &'a BTreeSet<String>,
    /// The question's note before the turn, if it was there.
    pub before: Option<String>,
    /// The question's note after the turn, if it is there.
    pub after: Option<String>,
}

/// Nothing when the answer is right, else why it is wrong.
pub fn judge(question: &Question, done: &Done, vault: &Vault<'_>) -> Result<(), String> {
    expect_tools(question, done)?;
    let path = question.path.as_deref().unwrap_or_default();
    let quote = question.quote.as_deref().unwrap_or_default();
    match question.kind {
        Kind::Ask => {
            was_read(path, done)?;
            contains(&done.answer, path, "the answer does not name the note")?;
            contains(&done.answer, quote, "the answer does not quote")
        }
        Kind::Read => {
            was_read(path, done)?;
            contains(&done.answer, quote, "the answer does not quote")
        }
        Kind::List => lists(path, done, vault.notes),
        Kind::Write => {
            if vault.before.as_deref().is_some_and(|text| squeezed(text).contains(&squeezed(quote))) {
                return Err("the note already had the text".to_owned());
            }
            contains(vault.after.as_deref().unwrap_or_default(), quote, "the note on disk lacks")
        }
        Kind::None => match vault.notes.iter().find(|note| done.answer.contains(note.as_str())) {
            Some(note) => Err(format!("the answer claims {note}")),
            None if done.answer.trim().is_empty() => Err("there is no answer".to_owned()),
            None => Ok(()),
        },
    }
}

/// The notes that an answer names and that neither exist nor stand in a result.
pub fn invented(done: &Done, notes: &BTreeSet<String>) -> Vec<String> {
    let ends = done.answer.match_indices(".md").map(|(at, found)| at + found.len());
    let named = ends.filter_map(|end| done.answer.get(..end));
    let exists = |named: &str| {
        notes.iter().any(|note| named.ends_with(note.as_str()) || named.ends_with(file_name(note)))
    };
    let word = |named: &str| {
        let start = named.rfind(|c: char| c.is_whitespace() || "([\"'`".contains(c)).map_or(0, |at| at + 1);
        named.get(start..).unwrap_or(named).trim_start().to_owned()
    };
    let told = |word: &str| done.calls.iter().any(|(_, result)| result.text().contains(word));
    named.filter(|named| !exists(named)).map(word).filter(|word| !told(word)).collect()
}

fn file_name(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

/// The expected tools were called with success, in this order; others may stand between them.
fn expect_tools(question: &Question, done: &Done) -> Result<(), String> {
    let called = done.tools();
    if question.tools.is_empty() && !done.calls.is_empty() {
        return Err(format!("needed no tool (called: {})", called.join(", ")));
    }
    let mut rest = called.iter();
    match question.tools.iter().find(|tool| !rest.any(|called| called == tool)) {
        None => Ok(()),
        Some(missing) => {
            Err(format!("{missing} was not called with success (called: {})", called.join(", ")))
        }
    }
}

fn was_read(path: &str, done: &Done) -> Result<(), String> {
    let read: Vec<&str> = done
        .succeeded()
        .filter(|(call, _)| own_name(call.tool.as_str()) == "read_note")
        .flat_map(notes_of)
        .collect();
    if read.contains(&path) {
        return Ok(());
    }
    Err(format!(
        "read {} in place of {path}",
        if read.is_empty() { "nothing".to_owned() } else { read.join(", ") }
    ))
}

/// The notes that a result is from, as the server says.
fn notes_of((_, result): &(ToolCall, ToolResult)) -> Vec<&str> {
    let structured = result.structured.as_ref().and_then(|value| value.get("path")).and_then(Value::as_str);
    result.sources.iter().map(|source| source.path.as_str()).chain(structured).collect()
}

fn lists(folder: &str, done: &Done, notes: &BTreeSet<String>) -> Result<(), String> {
    let inside = format!("{folder}/");
    let (right, wrong): (Vec<_>, Vec<_>) = notes.iter().partition(|note| note.starts_with(&inside));
    if let Some(note) = wrong.iter().find(|note| done.answer.contains(note.as_str())) {
        return Err(format!("the answer lists {note}"));
    }
    let named = right.iter().filter(|note| done.answer.contains(note.as_str())).count();
    if named >= right.len().min(LISTED) && named > 0 {
        return Ok(());
    }
    Err(format!("the answer lists {named} of {} notes", right.len()))
}

fn contains(text: &str, wanted: &str, otherwise: &str) -> Result<(), String> {
    if !wanted.is_empty() && squeezed(text).contains(&squeezed(wanted)) {
        return Ok(());
    }
    Err(format!("{otherwise} “{wanted}”"))
}

/// One line, single blanks, without the marks of a quotation.
fn squeezed(text: &str) -> String {
    let lines = text.lines().map(|line| line.trim_start().trim_start_matches('>'));
    lines.flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ")
}

/// The name of a tool without its server.
fn own_name(tool: &str) -> &str {
    tool.split_once("__").map_or(tool, |(_, name)| name)
}

#[cfg(test)]
mod tests {
    use lectern_core::{Content, Source};
    use serde_json::json;

    use super::*;

    fn question(kind: &str, tools: &[&str]) -> Question {
        let value = json!({"id": "q", "lang": "en", "question": "?", "kind": kind, "path": "A/Key.md",
            "quote": "the number 14", "tools": tools});
        serde_json::from_value(value).unwrap()
    }

    fn called(tool: &str, path: &str, outcome: ToolOutcome) -> (ToolCall, ToolResult) {
        let call: ToolCall =
            serde_json::from_value(json!({"id": tool, "tool": tool, "arguments": {}})).unwrap();
        let source =
            Source { path: path.to_owned(), title: None, heading: None, start_line: None, end_line: None };
        let result = ToolResult {
            call: call.id.clone(),
            tool: call.tool.clone(),
            outcome,
            content: vec![Content::Text { text: String::new() }],
            structured: None,
            sources: vec![source],
            note: None,
        };
        (call, result)
    }

    #[test]
    fn a_note_that_nobody_named_is_invented() {
        let notes = BTreeSet::from(["A/The key.md".to_owned(), "B.md".to_owned()]);
        let (call, mut result) = called("search_notes", "B.md", ToolOutcome::Succeeded);
        result.content = vec![Content::Text { text: "see [Gone.md](Old/Gone.md)".to_owned() }];
        let done = |answer: &str| Done {
            calls: vec![(call.clone(), result.clone())],
            answer: answer.to_owned(),
            ..Done::default()
        };
        for fine in ["From A/The key.md:", "In `B.md`, and The key.md.", "Old/Gone.md is quoted", "no note"] {
            assert_eq!(invented(&done(fine), &notes), [] as [&str; 0], "{fine}");
        }
        assert_eq!(invented(&done("From A/Lock.md, or B.md"), &notes), ["A/Lock.md"]);
    }

    fn verdict(question: &Question, calls: Vec<(ToolCall, ToolResult)>, answer: &str) -> Result<(), String> {
        let notes = BTreeSet::from(["A/Key.md".to_owned(), "B.md".to_owned()]);
        let done = Done { calls, answer: answer.to_owned(), ..Done::default() };
        judge(
            question,
            &done,
            &Vault { notes: &notes, before: None, after: Some("> the\n> number 14".into()) },
        )
    }

    #[test]
    fn an_answer_needs_the_tools_the_note_and_the_quote() {
        let ask = question("ask", &["search_notes", "read_note"]);
        let search = || called("notes__search_notes", "B.md", ToolOutcome::Succeeded);
        let read = |path| called("notes__read_note", path, ToolOutcome::Succeeded);
        let right = "From A/Key.md:\n\n> behind it the\n> number  14";
        assert_eq!(verdict(&ask, vec![search(), read("A/Key.md")], right), Ok(()));
        let wrong = |calls, answer| verdict(&ask, calls, answer).unwrap_err();
        assert!(wrong(vec![read("A/Key.md"), search()], right).starts_with("read_note was not called"));
        assert!(wrong(vec![search(), read("B.md")], right).starts_with("read B.md in place of A/Key.md"));
        assert!(
            wrong(vec![search(), read("A/Key.md")], "From B.md: the number 14").contains("name the note")
        );
        assert!(wrong(vec![search(), read("A/Key.md")], "From A/Key.md: 13").contains("does not quote"));
        let failed = called("notes__read_note", "A/Key.md", ToolOutcome::Failed);
        assert!(wrong(vec![search(), failed], right).starts_with("read_note was not called"));
    }

    #[test]
    fn nothing_found_must_claim_no_note_and_a_listing_no_stranger() {
        let none = question("none", &[]);
        assert_eq!(verdict(&none, vec![], "I found nothing."), Ok(()));
        assert!(verdict(&none, vec![], "From B.md: x").is_err());
        assert!(verdict(&none, vec![], " ").is_err());
        let called_one = vec![called("notes__search_notes", "B.md", ToolOutcome::Succeeded)];
        assert!(verdict(&none, called_one, "You are welcome.").unwrap_err().starts_with("needed no tool"));
        let mut list = question("list", &[]);
        list.path = Some("A".to_owned());
        assert_eq!(verdict(&list, vec![], "- A/Key.md"), Ok(()));
        assert!(verdict(&list, vec![], "- A/Key.md\n- B.md").is_err());
        assert!(verdict(&list, vec![], "nothing").is_err());
        assert_eq!(verdict(&question("write", &[]), vec![], "done"), Ok(()));
    }
}
