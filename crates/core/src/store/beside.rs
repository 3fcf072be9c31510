//! Stores beside the window's own: for conversations of the local API. Their audit log is that of the main store, so that
//! there is one log for all that was decided.

use std::path::Path;

use rusqlite::{TransactionBehavior, params};

use super::{Store, StoreError, TurnKey, images, write};
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

    /// Removes what was deleted at once, for conversations that nobody brings back.
    pub fn purge_all_deleted(&self) -> Result<(), StoreError> {
        self.connection().execute("DELETE FROM conversations WHERE deleted_at IS NOT NULL", [])?;
        Ok(())
    }

    /// Begins a conversation of this id with what was said elsewhere, made valid for every provider.
    pub fn import(&self, conversation: &ConversationId, messages: Vec<Message>) -> Result<(), StoreError> {
        let key = TurnKey { conversation: conversation.clone(), turn: TurnId::fresh() };
        let mut connection = self.connection();
        let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
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
