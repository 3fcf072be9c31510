//! What a running turn writes.

use rusqlite::{OptionalExtension, Transaction, TransactionBehavior, params};

use super::conversations::title_of;
use super::{Store, StoreError, TurnKey, images, to_json};
use crate::clock;
use crate::event::Event;
use crate::ids::{ConversationId, MessageId, TurnId};
use crate::message::{AssistantMessage, Message, UserMessage};

/// A turn that begins.
pub(crate) struct NewTurn<'a> {
    pub turn: TurnKey,
    pub message_id: &'a MessageId,
    pub message: &'a UserMessage,
    /// `TurnStarted`.
    pub event: &'a Event,
}

/// What is stored together.
#[derive(Default)]
pub(crate) struct TurnWrite<'a> {
    /// Appended to the conversation, in order.
    pub messages: Vec<(&'a MessageId, Message)>,
    pub events: &'a [Event],
    /// The step is whole; its draft is no longer needed.
    pub drop_draft: bool,
    /// Nothing more will come.
    pub finished: bool,
}

impl Store {
    /// Stores the user's message and the turn, unless one runs there already.
    pub(crate) fn begin_turn(&self, new: &NewTurn<'_>) -> Result<(), StoreError> {
        let conversation = &new.turn.conversation;
        let mut connection = self.connection();
        let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        self.refuse_second_turn(&tx, conversation)?;
        let title: Option<String> = tx
            .prepare_cached("SELECT title FROM conversations WHERE id = ?1 AND deleted_at IS NULL")?
            .query_row([conversation.as_str()], |row| row.get(0))
            .optional()?;
        let title = title.ok_or_else(|| StoreError::UnknownConversation(conversation.clone()))?;
        if title.is_empty() {
            tx.prepare_cached("UPDATE conversations SET title = ?2 WHERE id = ?1")?
                .execute(params![conversation.as_str(), title_of(new.message)])?;
        }
        tx.prepare_cached(
            "INSERT INTO turns (id, conversation, started_at, instance) VALUES (?1, ?2, ?3, ?4)",
        )?
        .execute(params![
            new.turn.turn.as_str(),
            conversation.as_str(),
            clock::now().as_millisecond(),
            self.instance().id()
        ])?;
        let message = images::put_aside(&tx, conversation, new.message)?;
        let event = images::put_aside_of_event(&tx, conversation, new.event)?;
        append_message(&tx, &new.turn, new.message_id, &Message::User(message))?;
        append_event(&tx, &new.turn.turn, &event)?;
        Ok(tx.commit()?)
    }

    fn refuse_second_turn(
        &self,
        tx: &Transaction<'_>,
        conversation: &ConversationId,
    ) -> Result<(), StoreError> {
        let mut statement =
            tx.prepare_cached("SELECT id, instance FROM turns WHERE conversation = ?1 AND finished = 0")?;
        let running = statement
            .query_map([conversation.as_str()], |row| {
                Ok((row.get(0).map(TurnId)?, row.get::<_, String>(1)?))
            })?
            .collect::<Result<Vec<_>, _>>()?;
        for (turn, instance) in running {
            if self.instance().lives(&instance) {
                return Err(StoreError::Busy(conversation.clone()));
            }
            super::recovery::repair(tx, &TurnKey { conversation: conversation.clone(), turn })?;
        }
        Ok(())
    }

    /// Stores a piece of a running turn, all of it or nothing.
    pub(crate) fn write_turn(&self, key: &TurnKey, write: &TurnWrite<'_>) -> Result<(), StoreError> {
        let mut connection = self.connection();
        let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        apply(&tx, key, write)?;
        Ok(tx.commit()?)
    }

    /// Keeps what a running step has so far, so that a crash loses nearly nothing.
    pub(crate) fn save_draft(
        &self,
        turn: &TurnId,
        step: u32,
        seq: u64,
        draft: &AssistantMessage,
    ) -> Result<(), StoreError> {
        let body = to_json("draft", draft)?;
        self.connection()
            .prepare_cached("INSERT OR REPLACE INTO drafts (turn, step, seq, body) VALUES (?1, ?2, ?3, ?4)")?
            .execute(params![turn.as_str(), step, seq.cast_signed(), body])?;
        Ok(())
    }
}

pub(super) fn apply(tx: &Transaction<'_>, key: &TurnKey, write: &TurnWrite<'_>) -> Result<(), StoreError> {
    for (id, message) in &write.messages {
        append_message(tx, key, id, message)?;
    }
    for event in write.events {
        append_event(tx, &key.turn, event)?;
    }
    if write.drop_draft {
        tx.prepare_cached("DELETE FROM drafts WHERE turn = ?1")?.execute([key.turn.as_str()])?;
    }
    if write.finished {
        tx.prepare_cached("UPDATE turns SET finished = 1 WHERE id = ?1")?.execute([key.turn.as_str()])?;
    }
    Ok(())
}

pub(super) fn append_message(
    tx: &Transaction<'_>,
    key: &TurnKey,
    id: &MessageId,
    message: &Message,
) -> Result<(), StoreError> {
    let now = clock::now().as_millisecond();
    let conversation = key.conversation.as_str();
    tx.prepare_cached(
        "INSERT INTO messages (id, conversation, parent, turn, at, body)
         VALUES (?1, ?2, (SELECT leaf FROM conversations WHERE id = ?2), ?3, ?4, ?5)",
    )?
    .execute(params![
        id.as_str(),
        conversation,
        key.turn.as_str(),
        now,
        to_json("message", message)?
    ])?;
    tx.prepare_cached("UPDATE conversations SET leaf = ?2, updated_at = ?3 WHERE id = ?1")?
        .execute(params![conversation, id.as_str(), now])?;
    Ok(())
}

fn append_event(tx: &Transaction<'_>, turn: &TurnId, event: &Event) -> Result<(), StoreError> {
    tx.prepare_cached("INSERT INTO events (turn, seq, body) VALUES (?1, ?2, ?3)")?.execute(params![
        turn.as_str(),
        event.seq.cast_signed(),
        to_json("event", event)?
    ])?;
    Ok(())
}
