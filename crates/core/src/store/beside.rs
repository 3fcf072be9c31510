//! Stores beside the window's own: for conversations of the local API. Their audit log is that of the main store, so that
//! there is one log for all that was decided.

use std::path::Path;

use rusqlite::{TransactionBehavior, params};

use super::{Store, StoreError, TurnKey, images, write};
use crate::Timestamp;
use crate::clock;
use crate::history;
use crate::ids::{ConversationId, MessageId, TurnId};
use crate::message::Message;

impl Store {
    /// A store that ends with the last handle on it. What is decided about calls is written to `main`.
    pub fn in_memory_beside(main: &Self) -> Result<Self, StoreError> {
        let connection = rusqlite::Connection::open_in_memory()?;
        let instance = super::instance::Instance::alone();
        Self::set_up(connection, Path::new(":memory:"), instance, Some(main.clone()))
    }

    /// Opens or makes a file. What is decided about calls is written to `main`.
    pub fn open_beside(path: &Path, main: &Self) -> Result<Self, StoreError> {
        Self::open_with(path, Some(main.clone()))
    }

    /// Notes that a conversation is in use; one that does not exist begins. True when it is new.
    pub fn touch(&self, conversation: &ConversationId) -> Result<bool, StoreError> {
        let (connection, now) = (self.connection(), clock::now().as_millisecond());
        let touched = connection
            .prepare_cached("UPDATE conversations SET updated_at = ?2 WHERE id = ?1")?
            .execute(params![conversation.as_str(), now])?;
        if touched > 0 {
            return Ok(false);
        }
        connection
            .prepare_cached("INSERT INTO conversations (id, created_at, updated_at) VALUES (?1, ?2, ?2)")?
            .execute(params![conversation.as_str(), now])?;
        Ok(true)
    }

    /// The conversations that nobody used since then, those without a message included.
    pub fn unused_since(&self, then: Timestamp) -> Result<Vec<ConversationId>, StoreError> {
        let connection = self.connection();
        let mut statement =
            connection.prepare_cached("SELECT id FROM conversations WHERE updated_at <= ?1")?;
        let ids = statement.query_map([then.as_millisecond()], |row| Ok(ConversationId(row.get(0)?)))?;
        Ok(ids.collect::<Result<_, _>>()?)
    }

    /// Removes a conversation for good, for those that nobody brings back. False when there is none.
    pub fn erase(&self, conversation: &ConversationId) -> Result<bool, StoreError> {
        let gone = self
            .connection()
            .execute("DELETE FROM conversations WHERE id = ?1", params![conversation.as_str()])?;
        Ok(gone > 0)
    }

    /// Begins a conversation of this id with what was said elsewhere, made valid for every provider. What it had before is
    /// replaced, at once or not at all.
    pub fn import(&self, conversation: &ConversationId, messages: Vec<Message>) -> Result<(), StoreError> {
        let key = TurnKey { conversation: conversation.clone(), turn: TurnId::fresh() };
        let mut connection = self.connection();
        let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        tx.prepare_cached("DELETE FROM conversations WHERE id = ?1")?.execute([conversation.as_str()])?;
        tx.prepare_cached("INSERT INTO conversations (id, created_at, updated_at) VALUES (?1, ?2, ?2)")?
            .execute(params![conversation.as_str(), clock::now().as_millisecond()])?;
        tx.prepare_cached(
            "INSERT INTO turns (id, conversation, started_at, finished, instance) VALUES (?1, ?2, ?3, 1, ?4)",
        )?
        .execute(params![
            key.turn.as_str(),
            conversation.as_str(),
            clock::now().as_millisecond(),
            self.instance().id()
        ])?;
        for message in history::for_request(messages) {
            let message = match message {
                Message::User(user) => Message::User(images::put_aside(&tx, conversation, &user)?),
                message @ (Message::Assistant(_) | Message::Tool(_)) => message,
            };
            write::append_message(&tx, &key, &MessageId::fresh(), &message)?;
        }
        Ok(tx.commit()?)
    }
}
