//! Reads conversations back.

use std::collections::BTreeSet;

use rusqlite::{Connection, OptionalExtension, params};

use super::branch::Walk;
use super::{Store, StoreError, images};
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

impl Store {
    /// The messages of the active branch, oldest first, as they were stored.
    pub fn messages(&self, conversation: &ConversationId) -> Result<Vec<StoredMessage>, StoreError> {
        let connection = self.connection();
        Walk::from_end(&connection, conversation)?.while_next(|_| Ok(true))
    }

    /// The active branch as the next request must have it; see [`history::for_request`].
    pub fn history(&self, conversation: &ConversationId) -> Result<Vec<Message>, StoreError> {
        Ok(history::of_stored(self.messages(conversation)?))
    }

    /// The turns of a conversation with their stored events, oldest first.
    pub fn turns(&self, conversation: &ConversationId) -> Result<Vec<StoredTurn>, StoreError> {
        turns_of(&self.connection(), conversation, None)
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

/// The turns with their events; only these of them, if some are named.
pub(super) fn turns_of(
    connection: &Connection,
    conversation: &ConversationId,
    only: Option<&BTreeSet<TurnId>>,
) -> Result<Vec<StoredTurn>, StoreError> {
    let ids = match only {
        Some(only) => in_order(connection, only)?,
        None => connection
            .prepare_cached("SELECT id FROM turns WHERE conversation = ?1 ORDER BY started_at, id")?
            .query_map([conversation.as_str()], |row| row.get(0).map(TurnId))?
            .collect::<Result<_, _>>()?,
    };
    let mut statement = connection.prepare_cached("SELECT body FROM events WHERE turn = ?1 ORDER BY seq")?;
    let mut out = Vec::with_capacity(ids.len());
    for id in ids {
        let mut events = Vec::new();
        let mut rows = statement.query([id.as_str()])?;
        while let Some(row) = rows.next()? {
            let Some(mut event) = read_event(row.get_ref(0)?.as_str().unwrap_or_default()) else { continue };
            if let EventKind::TurnStarted { message, .. } = &mut event.kind {
                images::bring_back(connection, conversation, message)?;
            }
            events.push(event);
        }
        drop(rows);
        out.push(StoredTurn { id, events });
    }
    Ok(out)
}

/// The oldest first.
fn in_order(connection: &Connection, turns: &BTreeSet<TurnId>) -> Result<Vec<TurnId>, StoreError> {
    let mut statement = connection.prepare_cached("SELECT started_at FROM turns WHERE id = ?1")?;
    let mut dated = Vec::with_capacity(turns.len());
    for turn in turns {
        let started: Option<i64> = statement.query_row([turn.as_str()], |row| row.get(0)).optional()?;
        dated.extend(started.map(|started| (started, turn.clone())));
    }
    dated.sort();
    Ok(dated.into_iter().map(|(_, turn)| turn).collect())
}

/// An event of a kind we don't know (yet, or any more) is left out; the messages tell the conversation anyway.
pub(super) fn read_event(body: &str) -> Option<Event> {
    serde_json::from_str(body).inspect_err(|error| tracing::warn!(%error, "skip a stored event")).ok()
}
