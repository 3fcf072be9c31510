//! Runs the tools: arguments in, text and structured content out.
//! Invariant: a call never fails as a request; what went wrong is a result that the model can read. The shape of the
//! text is part of the contract (docs/notes-server.md): small models are trained on it.

use rmcp::model::{CallToolResult, ContentBlock, JsonObject};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use crate::indexer::Progress;
use crate::notes::{Extract, Notes, NotesError, Part};
use crate::path::NotePath;
use crate::search::Hit;
use crate::tools::{DEFAULT_HITS, DEFAULT_LISTED, MOST_HITS, MOST_LISTED, READ_BUDGET, ToolKind};

/// A call with its arguments understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Call {
    /// See [`ToolKind::List`].
    List(ListArguments),
    /// See [`ToolKind::Search`].
    Search(SearchArguments),
    /// See [`ToolKind::Read`].
    Read(ReadArguments),
    /// See [`ToolKind::Create`].
    Create(WriteArguments),
    /// See [`ToolKind::Append`].
    Append(WriteArguments),
}

/// Arguments of `list_notes`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ListArguments {
    folder: Option<String>,
    #[serde(deserialize_with = "lenient_count")]
    limit: Option<usize>,
    cursor: Option<String>,
}

/// Arguments of `search_notes`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct SearchArguments {
    query: String,
    #[serde(default)]
    folder: Option<String>,
    #[serde(default, deserialize_with = "lenient_count")]
    limit: Option<usize>,
}

/// Arguments of `read_note`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ReadArguments {
    path: String,
    #[serde(default)]
    heading: Option<String>,
    #[serde(default, deserialize_with = "lenient_count")]
    offset: Option<usize>,
    #[serde(default, deserialize_with = "lenient_count")]
    limit: Option<usize>,
}

/// Arguments of `create_note` and `append_note`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct WriteArguments {
    path: String,
    content: String,
}

/// A model often writes a number as a text, and nothing as null.
fn lenient_count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<usize>, D::Error> {
    let fault = |value: &Value| serde::de::Error::custom(format!("{value} is not a whole number from 0"));
    match Value::deserialize(deserializer)? {
        Value::Null => Ok(None),
        Value::String(text) if text.trim().is_empty() => Ok(None),
        Value::String(text) => text.trim().parse().map(Some).map_err(|_| fault(&Value::String(text))),
        value => {
            let whole = value
                .as_u64()
                .or_else(|| value.as_f64().filter(|n| n.fract() == 0.0 && *n >= 0.0).map(|n| n as u64));
            whole.and_then(|n| usize::try_from(n).ok()).map(Some).ok_or_else(|| fault(&value))
        }
    }
}

impl Call {
    /// Reads the arguments of a tool.
    ///
    /// # Errors
    /// The result that says what is wrong with them.
    pub fn parse(tool: ToolKind, arguments: JsonObject) -> Result<Self, CallToolResult> {
        let value = Value::Object(arguments);
        let parsed = match tool {
            ToolKind::List => serde_json::from_value(value).map(Self::List),
            ToolKind::Search => serde_json::from_value(value).map(Self::Search),
            ToolKind::Read => serde_json::from_value(value).map(Self::Read),
            ToolKind::Create => serde_json::from_value(value).map(Self::Create),
            ToolKind::Append => serde_json::from_value(value).map(Self::Append),
        };
        parsed.map_err(|error| failed(&format!("the arguments of {} are wrong: {error}", tool.name())))
    }

    /// Whether the call is answered better when all notes are indexed.
    pub fn needs_index(&self) -> bool {
        match self {
            Self::Search(_) => true,
            Self::List(_) | Self::Read(_) | Self::Create(_) | Self::Append(_) => false,
        }
    }

    /// Does it.
    pub fn run(self, notes: &Notes) -> CallToolResult {
        let done = match self {
            Self::List(arguments) => list(notes, &arguments),
            Self::Search(arguments) => search(notes, &arguments),
            Self::Read(arguments) => read(notes, arguments),
            Self::Create(arguments) => create(notes, &arguments),
            Self::Append(arguments) => append(notes, &arguments),
        };
        done.unwrap_or_else(|error| failed(&chain(&error)))
    }
}

/// The message of an error with those of its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}

/// A result that tells of a failure, as a sentence.
pub fn failed(fragment: &str) -> CallToolResult {
    let mut chars = fragment.chars();
    let sentence: String = chars.next().into_iter().flat_map(char::to_uppercase).chain(chars).collect();
    CallToolResult::error(vec![ContentBlock::text(format!("{sentence}."))])
}

fn succeeded(text: String, structured: Value) -> CallToolResult {
    let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
    result.structured_content = Some(structured);
    result
}

fn list(notes: &Notes, arguments: &ListArguments) -> Result<CallToolResult, NotesError> {
    let limit = arguments.limit.unwrap_or(DEFAULT_LISTED).clamp(1, MOST_LISTED);
    let all = notes.list(arguments.folder.as_deref().unwrap_or_default())?;
    let after = arguments.cursor.as_deref().unwrap_or_default();
    let begin = all.partition_point(|path| !after.is_empty() && path.as_str() <= after);
    let shown = &all[begin..all.len().min(begin + limit)];
    let rest = all.len() - begin - shown.len();
    let cursor = shown.last().filter(|_| rest > 0).map(NotePath::to_string);
    let mut text: String = shown.iter().map(|path| format!("- {path}\n")).collect();
    match &cursor {
        Some(cursor) => text.push_str(&format!("({rest} more; the cursor for the next is \"{cursor}\")")),
        None if shown.is_empty() => text.push_str("No notes."),
        None => drop(text.pop()),
    }
    let described = shown.iter().map(|path| {
        json!({"path": path.as_str(), "title": notes.title(path), "uri": path.uri(), "size": notes.size(path)})
    });
    let mut structured = json!({"notes": described.collect::<Vec<_>>(), "total": all.len()});
    if let Some(cursor) = cursor {
        structured["nextCursor"] = cursor.into();
    }
    Ok(succeeded(text, structured))
}

fn search(notes: &Notes, arguments: &SearchArguments) -> Result<CallToolResult, NotesError> {
    let limit = arguments.limit.unwrap_or(DEFAULT_HITS).clamp(1, MOST_HITS);
    let hits = notes.search(&arguments.query, arguments.folder.as_deref().unwrap_or_default(), limit)?;
    let shown: Vec<String> = hits.iter().enumerate().map(|(at, hit)| shown(at + 1, hit)).collect();
    let mut text = if hits.is_empty() { "No notes match.".to_owned() } else { shown.join("\n\n") };
    let mut structured = json!({"hits": hits.iter().map(described).collect::<Vec<_>>()});
    let progress = *notes.progress().borrow();
    if !progress.complete {
        let Progress { done, total, .. } = progress;
        text.push_str(&format!("\n\n(Not all notes are indexed yet: {done} of {total} were searched.)"));
        structured["indexing"] = json!({"done": done, "total": total});
    }
    Ok(succeeded(text, structured))
}

fn shown(number: usize, hit: &Hit) -> String {
    format!("[{number}] {} ({})\n{}", one_line(&hit.title), hit.path, hit.passage)
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn described(hit: &Hit) -> Value {
    let mut source = source(&hit.path, &hit.title, &hit.trail, Some(hit.lines));
    source["passage"] = hit.passage.as_str().into();
    source
}

fn source(path: &NotePath, title: &str, trail: &[String], lines: Option<(usize, usize)>) -> Value {
    let mut source = json!({"path": path.as_str(), "title": title, "uri": path.uri(), "heading": trail});
    if let Some((first, last)) = lines {
        source["startLine"] = first.into();
        source["endLine"] = last.into();
    }
    source
}

fn read(notes: &Notes, arguments: ReadArguments) -> Result<CallToolResult, NotesError> {
    let ReadArguments { path, heading, offset, limit } = arguments;
    let extract = notes.read(&path, &Part { heading, offset, limit, budget: READ_BUDGET })?;
    let Extract { path, title, trail, text, lines, total, next } = extract;
    let mut structured = source(&path, &title, &trail, lines);
    structured["text"] = text.as_str().into();
    structured["totalLines"] = total.into();
    let mut shown = text;
    if let Some(next) = next {
        structured["nextOffset"] = next.into();
        if !shown.ends_with('\n') {
            shown.push('\n');
        }
        shown.push_str(&format!("[cut here: line {next} of {total} is next; read on with offset {next}]"));
    }
    Ok(succeeded(shown, structured))
}

fn create(notes: &Notes, arguments: &WriteArguments) -> Result<CallToolResult, NotesError> {
    let (path, lines) = notes.create(&arguments.path, &arguments.content)?;
    let source = source(&path, &notes.title(&path), &[], (lines > 0).then_some((1, lines)));
    Ok(succeeded(format!("Created {path}"), source))
}

fn append(notes: &Notes, arguments: &WriteArguments) -> Result<CallToolResult, NotesError> {
    let (path, lines) = notes.append(&arguments.path, &arguments.content)?;
    let source = source(&path, &notes.title(&path), &[], Some(lines));
    Ok(succeeded(format!("Appended to {path}"), source))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(tool: ToolKind, arguments: Value) -> Result<Call, CallToolResult> {
        let Value::Object(arguments) = arguments else { unreachable!() };
        Call::parse(tool, arguments)
    }

    #[test]
    fn numbers_may_be_written_as_text() {
        let call = |limit: Value| parse(ToolKind::Search, json!({"query": "x", "limit": limit}));
        let wanted = |limit| Call::Search(SearchArguments { query: "x".into(), folder: None, limit });
        assert_eq!(call(json!("5")), Ok(wanted(Some(5))));
        assert_eq!(call(json!(5.0)), Ok(wanted(Some(5))));
        assert_eq!(call(json!(null)), Ok(wanted(None)));
        assert!(call(json!(-1)).is_err() && call(json!("many")).is_err());
    }

    #[test]
    fn wrong_arguments_are_a_result_that_names_them() {
        let result = parse(ToolKind::Read, json!({"file": "x"})).unwrap_err();
        assert_eq!(result.is_error, Some(true));
        let text = &result.content[0].as_text().unwrap().text;
        assert!(text.contains("read_note") && text.contains("`path`"), "{text}");
    }
}
