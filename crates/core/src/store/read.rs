//! Reads conversations back.

use rusqlite::params;

use super::{Store, StoreError, from_millis, images};
use crate::Timestamp;
use crate::event::{Event, EventKind};
use crate::history;
use crate::ids::{ConversationId, MessageId, ToolCallId, TurnId};
use crate::message::Message;

/// A message as it is stored.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredMessage {
    /// Its id.
    pub id: MessageId,
    /// The turn that made it.
    pub turn: TurnId,
    /// When it was stored.
    pub at: Timestamp,
    /// The message.
    pub message: Message,
}

/// A turn as it is stored: its events without the deltas.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredTurn {
    /// Its id.
    pub id: TurnId,
    /// Its events, oldest first. Deltas and the progress of the prompt are not stored, so `seq` has gaps.
    pub events: Vec<Event>,
}

/// From the leaf up to the first message.
const BRANCH: &str = "
    WITH RECURSIVE branch(id, depth) AS (
        SELECT leaf, 0 FROM conversations WHERE id = ?1 AND leaf IS NOT NULL
        UNION ALL
        SELECT m.parent, b.depth + 1 FROM messages m JOIN branch b ON m.id = b.id WHERE m.parent IS NOT NULL
    )
    SELECT m.id, m.turn, m.at, m.body FROM branch b JOIN messages m ON m.id = b.id ORDER BY b.depth DESC";

impl Store {
    /// The messages of the active branch, oldest first, as they were stored.
    pub fn messages(&self, conversation: &ConversationId) -> Result<Vec<StoredMessage>, StoreError> {
        let connection = self.connection();
        let mut statement = connection.prepare_cached(BRANCH)?;
        let mut rows = statement.query([conversation.as_str()])?;
        let mut out = Vec::new();
        while let Some(row) = rows.next()? {
            let body: String = row.get(3)?;
            let mut message = serde_json::from_str(&body)
                .map_err(|source| StoreError::Unreadable { what: "message", source })?;
            if let Message::User(user) = &mut message {
                images::bring_back(&connection, conversation, user)?;
            }
            out.push(StoredMessage {
                id: MessageId(row.get(0)?),
                turn: TurnId(row.get(1)?),
                at: from_millis(row.get(2)?),
                message,
            });
        }
        Ok(out)
    }

    /// The active branch as the next request must have it; see [`history::for_request`].
    pub fn history(&self, conversation: &ConversationId) -> Result<Vec<Message>, StoreError> {
        let messages = self.messages(conversation)?.into_iter().map(|stored| stored.message).collect();
        Ok(history::for_request(messages))
    }

    /// The turns of a conversation with their stored events, oldest first.
    pub fn turns(&self, conversation: &ConversationId) -> Result<Vec<StoredTurn>, StoreError> {
        let connection = self.connection();
        let mut statement = connection.prepare_cached(
            "SELECT t.id, e.body FROM turns t LEFT JOIN events e ON e.turn = t.id
             WHERE t.conversation = ?1 ORDER BY t.started_at, t.id, e.seq",
        )?;
        let mut rows = statement.query([conversation.as_str()])?;
        let mut out: Vec<StoredTurn> = Vec::new();
        while let Some(row) = rows.next()? {
            let id = TurnId(row.get(0)?);
            if out.last().is_none_or(|turn| turn.id != id) {
                out.push(StoredTurn { id, events: Vec::new() });
            }
            let body: Option<String> = row.get(1)?;
            let mut event = body.and_then(|body| read_event(&body));
            if let Some(EventKind::TurnStarted { message, .. }) = event.as_mut().map(|event| &mut event.kind)
            {
                images::bring_back(&connection, conversation, message)?;
            }
            if let (Some(turn), Some(event)) = (out.last_mut(), event) {
                turn.events.push(event);
            }
        }
        Ok(out)
    }

    /// The ids of all calls of a conversation, other branches included.
    pub(crate) fn call_ids(&self, conversation: &ConversationId) -> Result<Vec<ToolCallId>, StoreError> {
        let connection = self.connection();
        let mut statement = connection.prepare_cached(
            "SELECT json_extract(part.value, '$.id') FROM messages m, json_each(m.body, '$.parts') part
             WHERE m.conversation = ?1 AND json_extract(part.value, '$.type') = 'tool_call'",
        )?;
        let rows = statement.query_map(params![conversation.as_str()], |row| row.get(0).map(ToolCallId))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

/// An event of a kind we don't know (yet, or any more) is left out; the messages tell the conversation anyway.
pub(super) fn read_event(body: &str) -> Option<Event> {
    serde_json::from_str(body).inspect_err(|error| tracing::warn!(%error, "skip a stored event")).ok()
}
