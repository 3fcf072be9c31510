//! Walks the active branch of a conversation from its end, as far as a reader needs it.
//!
//! Invariant: what is not asked for is not read; memory follows what is given back, not the length of the conversation.

use std::collections::BTreeSet;

use rusqlite::{Connection, OptionalExtension, params};

use super::read::{StoredMessage, StoredTurn, turns_of};
use super::{Store, StoreError, from_millis, images};
use crate::ids::{ConversationId, MessageId, TurnId};
use crate::message::Message;

/// Some turns of a conversation that follow each other.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StoredPage {
    /// Their messages, oldest first.
    pub messages: Vec<StoredMessage>,
    /// Their events; with the last page also the turns that have no message yet.
    pub turns: Vec<StoredTurn>,
    /// How many turns of the branch stand before them.
    pub earlier: u32,
}

/// What lies before a message, counted without reading it.
const EARLIER: &str = "
    WITH RECURSIVE branch(id, turn) AS (
        SELECT id, turn FROM messages WHERE id = ?1
        UNION ALL
        SELECT m.id, m.turn FROM branch b JOIN messages c ON c.id = b.id JOIN messages m ON m.id = c.parent
    )
    SELECT count(DISTINCT turn) FROM branch";

impl Store {
    /// The messages of the active branch that stand behind this one, oldest first; all of them when it is none of them.
    /// Also gives whether it was found.
    pub(crate) fn messages_behind(
        &self,
        conversation: &ConversationId,
        last: &MessageId,
    ) -> Result<(Vec<StoredMessage>, bool), StoreError> {
        let connection = self.connection();
        let mut walk = Walk::from_end(&connection, conversation)?;
        let messages = walk.while_next(|walk| Ok(walk.next.as_ref() != Some(last)))?;
        Ok((messages, walk.next.is_some()))
    }

    /// The messages of the active branch's last turns, oldest first; so many turns at most.
    pub(crate) fn messages_of_last_turns(
        &self,
        conversation: &ConversationId,
        turns: usize,
    ) -> Result<Vec<StoredMessage>, StoreError> {
        let connection = self.connection();
        let mut wanted = BTreeSet::new();
        Walk::from_end(&connection, conversation)?.while_next(|walk| wants(walk, &mut wanted, turns))
    }

    /// The last turns of the active branch, or those before a message of it: as many as asked for, each of them whole.
    pub fn page(
        &self,
        conversation: &ConversationId,
        before: Option<&MessageId>,
        turns: usize,
    ) -> Result<StoredPage, StoreError> {
        let connection = self.connection();
        let mut walk = match before {
            None => Walk::from_end(&connection, conversation)?,
            Some(before) => Walk::before(&connection, conversation, before)?,
        };
        let mut page = StoredPage::default();
        let mut wanted: BTreeSet<TurnId> = BTreeSet::new();
        page.messages = walk.while_next(|walk| wants(walk, &mut wanted, turns))?;
        if let Some(next) = &walk.next {
            page.earlier =
                connection.prepare_cached(EARLIER)?.query_row([next.as_str()], |row| row.get(0))?;
        }
        if before.is_none() {
            wanted.extend(without_message(&connection, conversation)?);
        }
        page.turns = turns_of(&connection, conversation, Some(&wanted))?;
        Ok(page)
    }
}

/// Whether the next message is of the last turns; so many are wanted, and at least one.
fn wants(walk: &Walk<'_>, wanted: &mut BTreeSet<TurnId>, turns: usize) -> Result<bool, StoreError> {
    let turn = walk.turn()?.filter(|turn| wanted.contains(turn) || wanted.len() < turns.max(1));
    Ok(turn.map(|turn| wanted.insert(turn)).is_some())
}

/// Turns that have begun, of which no message is stored.
fn without_message(
    connection: &Connection,
    conversation: &ConversationId,
) -> Result<Vec<TurnId>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT id FROM turns WHERE conversation = ?1 AND NOT EXISTS (SELECT 1 FROM messages WHERE turn = turns.id)",
    )?;
    let rows = statement.query_map([conversation.as_str()], |row| row.get(0).map(TurnId))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// A place on a branch, from which it goes up.
pub(super) struct Walk<'a> {
    connection: &'a Connection,
    conversation: &'a ConversationId,
    /// The message that is read next; none above the first.
    pub(super) next: Option<MessageId>,
}

impl<'a> Walk<'a> {
    /// From the leaf.
    pub(super) fn from_end(
        connection: &'a Connection,
        conversation: &'a ConversationId,
    ) -> Result<Self, StoreError> {
        let leaf = connection
            .prepare_cached("SELECT leaf FROM conversations WHERE id = ?1")?
            .query_row([conversation.as_str()], |row| row.get::<_, Option<String>>(0))
            .optional()?;
        Ok(Self { connection, conversation, next: leaf.flatten().map(MessageId) })
    }

    /// From the one above this message.
    fn before(
        connection: &'a Connection,
        conversation: &'a ConversationId,
        message: &MessageId,
    ) -> Result<Self, StoreError> {
        let parent = connection
            .prepare_cached("SELECT parent FROM messages WHERE id = ?1 AND conversation = ?2")?
            .query_row(params![message.as_str(), conversation.as_str()], |row| {
                row.get::<_, Option<String>>(0)
            })
            .optional()?;
        Ok(Self { connection, conversation, next: parent.flatten().map(MessageId) })
    }

    /// The turn of the message that is read next.
    fn turn(&self) -> Result<Option<TurnId>, StoreError> {
        let Some(next) = &self.next else { return Ok(None) };
        let turn = self
            .connection
            .prepare_cached("SELECT turn FROM messages WHERE id = ?1")?
            .query_row([next.as_str()], |row| row.get(0).map(TurnId))
            .optional()?;
        Ok(turn)
    }

    /// Reads on while this holds for where it stands; oldest first.
    pub(super) fn while_next(
        &mut self,
        mut holds: impl FnMut(&Self) -> Result<bool, StoreError>,
    ) -> Result<Vec<StoredMessage>, StoreError> {
        let mut messages = Vec::new();
        while self.next.is_some() && holds(self)? {
            messages.extend(self.step()?);
        }
        messages.reverse();
        Ok(messages)
    }

    /// Reads a message and goes up.
    fn step(&mut self) -> Result<Option<StoredMessage>, StoreError> {
        let Some(id) = self.next.take() else { return Ok(None) };
        let mut statement =
            self.connection.prepare_cached("SELECT parent, turn, at, body FROM messages WHERE id = ?1")?;
        let row = statement
            .query_row([id.as_str()], |row| {
                let body: String = row.get(3)?;
                Ok((row.get::<_, Option<String>>(0)?, TurnId(row.get(1)?), from_millis(row.get(2)?), body))
            })
            .optional()?;
        let Some((parent, turn, at, body)) = row else { return Ok(None) };
        self.next = parent.map(MessageId);
        let mut message = serde_json::from_str(&body)
            .map_err(|source| StoreError::Unreadable { what: "message", source })?;
        if let Message::User(user) = &mut message {
            images::bring_back(self.connection, self.conversation, user)?;
        }
        Ok(Some(StoredMessage { id, turn, at, message }))
    }
}
