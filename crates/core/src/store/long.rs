//! Protocol messages that are too long for an event: kept whole with their turn, so that no result is lost to the trace.
//!
//! Invariant: bounded, a message and a turn; they go with their conversation.

use rusqlite::{OptionalExtension, params};
use serde_json::Value;

use super::{Store, StoreError};
use crate::ids::{MessageId, TurnId};

/// Bytes of one message that is kept.
const MOST_BYTES: usize = 20 << 20;
/// Bytes of all that one turn keeps.
const MOST_OF_TURN: usize = 64 << 20;

impl Store {
    /// Keeps a message whole; none when it, or what its turn has kept already, is too long for that.
    pub(crate) fn keep_long(&self, turn: &TurnId, body: &str) -> Result<Option<MessageId>, StoreError> {
        if body.len() > MOST_BYTES {
            return Ok(None);
        }
        let connection = self.connection();
        let kept: i64 = connection
            .prepare_cached(
                "SELECT coalesce(sum(length(CAST(body AS BLOB))), 0) FROM long_messages WHERE turn = ?1",
            )?
            .query_row([turn.as_str()], |row| row.get(0))?;
        if usize::try_from(kept).unwrap_or(usize::MAX).saturating_add(body.len()) > MOST_OF_TURN {
            return Ok(None);
        }
        let id = MessageId::fresh();
        connection
            .prepare_cached("INSERT INTO long_messages (id, turn, body) VALUES (?1, ?2, ?3)")?
            .execute(params![id.as_str(), turn.as_str(), body])?;
        Ok(Some(id))
    }

    /// A whole protocol message by the id in `full` of its event; none when it was not kept.
    pub fn long_message(&self, id: &MessageId) -> Result<Option<Value>, StoreError> {
        let body: Option<String> = self
            .connection()
            .prepare_cached("SELECT body FROM long_messages WHERE id = ?1")?
            .query_row([id.as_str()], |row| row.get(0))
            .optional()?;
        let read = |body: String| serde_json::from_str(&body);
        body.map(read)
            .transpose()
            .map_err(|source| StoreError::Unreadable { what: "protocol message", source })
    }
}
