//! Images of messages: their bytes stand once beside a conversation, and what is stored names them by digest.
//!
//! Invariant: what leaves the store has the bytes again; they go with their conversation. What older versions stored has
//! them inside of the message, and is read as it is.

use rusqlite::{Connection, OptionalExtension, params};

use super::StoreError;
use super::audit::sha256;
use crate::event::{Event, EventKind};
use crate::ids::ConversationId;
use crate::message::{Blob, Part, UserMessage};

/// Begins what stands in place of the bytes. A colon is no letter of base64.
const NAMED: &str = "sha256:";

/// Stores the images of a message; gives the message with their names in place of the bytes.
pub(super) fn put_aside(
    connection: &Connection,
    conversation: &ConversationId,
    message: &UserMessage,
) -> Result<UserMessage, StoreError> {
    let mut message = message.clone();
    for blob in blobs(&mut message) {
        // What is no base64 stays where it is.
        let Ok(bytes) = blob.bytes() else { continue };
        let digest = sha256(&bytes);
        connection
            .prepare_cached("INSERT OR IGNORE INTO images (conversation, sha256, bytes) VALUES (?1, ?2, ?3)")?
            .execute(params![conversation.as_str(), digest, bytes])?;
        blob.base64 = format!("{NAMED}{digest}");
    }
    Ok(message)
}

/// The same for the event that holds a message.
pub(super) fn put_aside_of_event(
    connection: &Connection,
    conversation: &ConversationId,
    event: &Event,
) -> Result<Event, StoreError> {
    let mut event = event.clone();
    if let EventKind::TurnStarted { message, .. } = &mut event.kind {
        *message = put_aside(connection, conversation, message)?;
    }
    Ok(event)
}

/// Puts the bytes back into a message. An image that is gone is an empty one.
pub(super) fn bring_back(
    connection: &Connection,
    conversation: &ConversationId,
    message: &mut UserMessage,
) -> Result<(), StoreError> {
    for blob in blobs(message) {
        let Some(digest) = blob.base64.strip_prefix(NAMED) else { continue };
        let bytes: Option<Vec<u8>> = connection
            .prepare_cached("SELECT bytes FROM images WHERE conversation = ?1 AND sha256 = ?2")?
            .query_row([conversation.as_str(), digest], |row| row.get(0))
            .optional()?;
        *blob = Blob::of(std::mem::take(&mut blob.mime), &bytes.unwrap_or_default());
    }
    Ok(())
}

fn blobs(message: &mut UserMessage) -> impl Iterator<Item = &mut Blob> {
    message.parts.iter_mut().filter_map(|part| match part {
        Part::Image(blob) => Some(blob),
        Part::Text { .. } | Part::Thinking(_) | Part::ToolCall(_) | Part::Resource(_) => None,
    })
}
