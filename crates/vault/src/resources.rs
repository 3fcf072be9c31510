//! Notes as MCP resources: `note:///path` with the path percent-encoded.
//! Invariant: an address goes through the same checks as a path that a tool is given.

use rmcp::ErrorData;
use rmcp::model::{
    ListResourceTemplatesResult, ListResourcesResult, ReadResourceResult, Resource, ResourceContents,
    ResourceTemplate,
};
use serde_json::json;

use crate::notes::{Notes, NotesError, Part};
use crate::path::NotePath;
use crate::vault::LARGE_FILE;

const PAGE: usize = 200;
const MARKDOWN: &str = "text/markdown";

/// One page of all notes; the cursor is the path of the last one.
///
/// # Errors
/// When the folder cannot be listed.
pub fn list(notes: &Notes, cursor: Option<&str>) -> Result<ListResourcesResult, ErrorData> {
    let all = notes.list("").map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
    let begin = cursor.map_or(0, |cursor| all.partition_point(|path| path.as_str() <= cursor));
    let shown = &all[begin..all.len().min(begin + PAGE)];
    let described = shown.iter().map(|path| {
        Resource::new(path.uri(), path.as_str())
            .with_title(notes.title(path))
            .with_mime_type(MARKDOWN)
            .with_size(notes.size(path))
    });
    let mut result = ListResourcesResult::with_all_items(described.collect());
    result.next_cursor = shown.last().filter(|_| begin + shown.len() < all.len()).map(NotePath::to_string);
    Ok(result)
}

/// How addresses are made.
pub fn templates() -> ListResourceTemplatesResult {
    let template = ResourceTemplate::new("note:///{+path}", "note")
        .with_title("A note")
        .with_description("A Markdown note of the vault by its path, percent-encoded")
        .with_mime_type(MARKDOWN);
    ListResourceTemplatesResult::with_all_items(vec![template])
}

/// The whole note; of a very large one only the beginning.
///
/// # Errors
/// When there is no such note or it cannot be read.
pub fn read(notes: &Notes, uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let path = path(uri)?;
    let part = Part { budget: LARGE_FILE as usize, ..Part::default() };
    let read = notes.read(path.as_str(), &part).map_err(|error| match error {
        NotesError::Resolve(error) => not_found(uri, &error.to_string()),
        error @ (NotesError::File(_)
        | NotesError::Index(_)
        | NotesError::Heading { .. }
        | NotesError::Offset { .. }
        | NotesError::Empty(_)) => ErrorData::internal_error(error.to_string(), None),
    })?;
    let contents = ResourceContents::text(read.text, uri).with_mime_type(MARKDOWN);
    Ok(ReadResourceResult::new(vec![contents]))
}

/// The path in an address.
///
/// # Errors
/// When it is no address of a note.
pub fn path(uri: &str) -> Result<NotePath, ErrorData> {
    NotePath::from_uri(uri).map_err(|fault| not_found(uri, &format!("the address {fault}")))
}

fn not_found(uri: &str, why: &str) -> ErrorData {
    ErrorData::resource_not_found(why.to_owned(), Some(json!({"uri": uri})))
}
