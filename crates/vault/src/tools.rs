//! What the server offers: the tools with their schemas, as a model and a host read them.
//! Invariant: pure data. The annotations are true of `calls`; the output schemas describe what it returns.

use std::sync::Arc;

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};

/// How many hits a search returns when nothing is said.
pub const DEFAULT_HITS: usize = 3;
/// How many hits a search returns at most.
pub const MOST_HITS: usize = 20;
/// How many notes a list returns when nothing is said.
pub const DEFAULT_LISTED: usize = 50;
/// How many notes a list returns at most.
pub const MOST_LISTED: usize = 500;
/// How many characters of a note are read at once.
pub const READ_BUDGET: usize = 8_000;

/// The tools of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolKind {
    /// Lists the notes of a folder.
    List,
    /// Searches all notes.
    Search,
    /// Reads one note.
    Read,
    /// Writes a new note.
    Create,
    /// Adds to a note.
    Append,
}

impl ToolKind {
    /// All of them, in the order in which they are listed.
    pub const ALL: [Self; 5] = [Self::List, Self::Search, Self::Read, Self::Create, Self::Append];

    /// The tool of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }

    /// Its name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::List => "list_notes",
            Self::Search => "search_notes",
            Self::Read => "read_note",
            Self::Create => "create_note",
            Self::Append => "append_note",
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::List => "List notes",
            Self::Search => "Search notes",
            Self::Read => "Read a note",
            Self::Create => "Create a note",
            Self::Append => "Add to a note",
        }
    }

    fn description(self) -> &'static str {
        match self {
            Self::List => {
                "List the Markdown notes of the vault by path, in every folder or below one folder. \
                 Use it to see what there is; use search_notes to find an answer."
            }
            Self::Search => {
                "Search the full text of all notes and return the passages that answer best, each with the title \
                 and path of its note. The query may be a few words or a whole question, in any language."
            }
            Self::Read => {
                "Read a note as it was written. `path` is a path from list_notes or search_notes, or the note's \
                 title. Give `heading` to read one section only. Long notes are cut, with a line that says where \
                 to read on."
            }
            Self::Create => {
                "Write a new Markdown note. Missing folders are made. Fails if a note of that path exists: \
                 nothing is ever overwritten."
            }
            Self::Append => {
                "Add text at the end of an existing note. What is there stays as it is. Fails if the note does \
                 not exist."
            }
        }
    }

    fn input(self) -> Value {
        let path = json!({"type": "string", "minLength": 1, "description": "Path of the note in the vault, like `Recipes/Bread.md`"});
        let folder = json!({"type": "string", "description": "Only notes in this folder and the folders in it, like `Recipes`"});
        match self {
            Self::List => object(
                &[
                    ("folder", folder),
                    ("limit", count("At most so many notes", DEFAULT_LISTED, MOST_LISTED)),
                    (
                        "cursor",
                        json!({"type": "string", "description": "The cursor of the list before, to go on after it"}),
                    ),
                ],
                &[],
            ),
            Self::Search => object(
                &[
                    (
                        "query",
                        json!({"type": "string", "minLength": 1, "description": "Words to look for, or a question"}),
                    ),
                    ("folder", folder),
                    ("limit", count("At most so many passages", DEFAULT_HITS, MOST_HITS)),
                ],
                &["query"],
            ),
            Self::Read => object(
                &[
                    ("path", path),
                    (
                        "heading",
                        json!({"type": "string", "description": "Only the section under this heading"}),
                    ),
                    (
                        "offset",
                        json!({"type": "integer", "minimum": 1, "description": "First line to read, counted from 1"}),
                    ),
                    (
                        "limit",
                        json!({"type": "integer", "minimum": 1, "description": "At most so many lines"}),
                    ),
                ],
                &["path"],
            ),
            Self::Create => object(
                &[("path", path), ("content", content("The Markdown text of the note"))],
                &["path", "content"],
            ),
            Self::Append => object(
                &[("path", path), ("content", content("The Markdown text to add"))],
                &["path", "content"],
            ),
        }
    }

    fn output(self) -> Value {
        match self {
            Self::List => object(
                &[
                    (
                        "notes",
                        array(object(
                            &[
                                ("path", text("Path of the note in the vault")),
                                ("title", text("Title of the note")),
                                ("uri", text("Address of the note as a resource")),
                                ("size", json!({"type": "integer", "description": "Length in bytes"})),
                            ],
                            &["path", "title", "uri", "size"],
                        )),
                    ),
                    ("total", json!({"type": "integer", "description": "How many notes there are"})),
                    ("nextCursor", text("Give it as `cursor` to get the notes after these")),
                ],
                &["notes", "total"],
            ),
            Self::Search => object(
                &[
                    ("hits", array(source(&[("passage", text("What the passage says, on one line"))]))),
                    ("indexing", indexing()),
                ],
                &["hits"],
            ),
            Self::Read => source(&[
                ("text", text("The lines of the note, untouched")),
                ("totalLines", json!({"type": "integer"})),
                ("nextOffset", json!({"type": "integer", "description": "Give it as `offset` to read on"})),
            ]),
            Self::Create | Self::Append => source(&[]),
        }
    }

    fn annotations(self) -> ToolAnnotations {
        let hints = ToolAnnotations::with_title(self.title()).open_world(false);
        match self {
            Self::List | Self::Search | Self::Read => hints.read_only(true),
            // A second call with the same path fails and changes nothing.
            Self::Create => hints.read_only(false).destructive(false).idempotent(true),
            Self::Append => hints.read_only(false).destructive(false).idempotent(false),
        }
    }

    /// The tool as it is listed.
    pub fn describe(self) -> Tool {
        let mut tool = Tool::new(self.name(), self.description(), schema(self.input()))
            .with_title(self.title())
            .with_annotations(self.annotations());
        tool.output_schema = Some(schema(self.output()));
        tool
    }
}

fn schema(value: Value) -> Arc<JsonObject> {
    Arc::new(match value {
        Value::Object(object) => object,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            JsonObject::new()
        }
    })
}

fn object(properties: &[(&str, Value)], required: &[&str]) -> Value {
    let properties: JsonObject =
        properties.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

/// Where something stands, for a citation, and what else there is to say of it.
fn source(more: &[(&str, Value)]) -> Value {
    let mut properties = vec![
        ("path", text("Path of the note in the vault")),
        ("title", text("Title of the note")),
        ("uri", text("Address of the note as a resource")),
        ("heading", array(json!({"type": "string"}))),
        ("startLine", json!({"type": "integer", "description": "First line, counted from 1"})),
        ("endLine", json!({"type": "integer", "description": "Last line"})),
    ];
    properties.extend(more.iter().cloned());
    let required: Vec<&str> = ["path", "title", "uri", "heading"]
        .into_iter()
        .chain(more.iter().map(|(name, _)| *name).filter(|name| *name != "nextOffset"))
        .collect();
    object(&properties, &required)
}

fn indexing() -> Value {
    let mut value = object(
        &[("done", json!({"type": "integer"})), ("total", json!({"type": "integer"}))],
        &["done", "total"],
    );
    value["description"] = "Present while not all notes are read yet: how many were searched".into();
    value
}

fn text(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

fn content(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

fn array(items: Value) -> Value {
    json!({"type": "array", "items": items})
}

fn count(description: &str, default: usize, most: usize) -> Value {
    json!({"type": "integer", "minimum": 1, "maximum": most, "default": default, "description": description})
}
