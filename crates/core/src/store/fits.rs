//! Keeps what was done to make conversations fit: summaries of their oldest messages, and how much of which result the
//! model gets. So a conversation is cut at the same places in the next step and after a restart.

use rusqlite::{OptionalExtension, params};

use super::{Store, StoreError, from_millis};
use crate::Timestamp;
use crate::clock;
use crate::fit::shorten::Cuts;
use crate::ids::{ConversationId, MessageId, ToolCallId};

/// A summary that stands for the oldest messages of a conversation where the model reads them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredSummary {
    /// The last message that it stands for.
    pub up_to: MessageId,
    /// How many messages it stands for.
    pub messages: u32,
    /// Its text; empty when there is none, and the messages are left out.
    pub text: String,
    /// When it was made.
    pub at: Timestamp,
}

impl Store {
    /// The summary that reaches furthest on the active branch.
    pub fn summary(&self, conversation: &ConversationId) -> Result<Option<StoredSummary>, StoreError> {
        let connection = self.connection();
        let mut statement = connection.prepare_cached(
            "WITH RECURSIVE branch(id, depth) AS (
                SELECT leaf, 0 FROM conversations WHERE id = ?1 AND leaf IS NOT NULL
                UNION ALL
                SELECT m.parent, b.depth + 1 FROM messages m JOIN branch b ON m.id = b.id WHERE m.parent IS NOT NULL
            )
            SELECT s.up_to, s.messages, s.body, s.at FROM summaries s JOIN branch b ON b.id = s.up_to
            ORDER BY b.depth LIMIT 1",
        )?;
        let summary = statement.query_row([conversation.as_str()], |row| {
            Ok(StoredSummary {
                up_to: MessageId(row.get(0)?),
                messages: row.get(1)?,
                text: row.get(2)?,
                at: from_millis(row.get(3)?),
            })
        });
        Ok(summary.optional()?)
    }

    /// Keeps a summary.
    pub(crate) fn keep_summary(
        &self,
        conversation: &ConversationId,
        up_to: &MessageId,
        messages: u32,
        text: &str,
    ) -> Result<StoredSummary, StoreError> {
        let at = clock::now();
        self.connection()
            .prepare_cached(
                "INSERT OR REPLACE INTO summaries (up_to, conversation, messages, body, at) VALUES (?1, ?2, ?3, ?4, ?5)",
            )?
            .execute(params![up_to.as_str(), conversation.as_str(), messages, text, at.as_millisecond()])?;
        Ok(StoredSummary { up_to: up_to.clone(), messages, text: text.to_owned(), at })
    }

    /// How many characters the model gets of which results.
    pub(crate) fn cuts(&self, conversation: &ConversationId) -> Result<Cuts, StoreError> {
        let connection = self.connection();
        let mut statement =
            connection.prepare_cached("SELECT call, characters FROM cut_results WHERE conversation = ?1")?;
        let rows = statement.query_map([conversation.as_str()], |row| {
            Ok((ToolCallId(row.get(0)?), usize::try_from(row.get::<_, i64>(1)?).unwrap_or(usize::MAX)))
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Keeps how many characters the model gets of results.
    pub(crate) fn keep_cuts(&self, conversation: &ConversationId, cuts: &Cuts) -> Result<(), StoreError> {
        let mut connection = self.connection();
        let tx = connection.transaction()?;
        for (call, characters) in cuts {
            tx.prepare_cached(
                "INSERT OR REPLACE INTO cut_results (conversation, call, characters) VALUES (?1, ?2, ?3)",
            )?
            .execute(params![
                conversation.as_str(),
                call.as_str(),
                i64::try_from(*characters).unwrap_or(i64::MAX)
            ])?;
        }
        Ok(tx.commit()?)
    }

    /// The settings of a conversation, as JSON text.
    pub fn conversation_settings(&self, conversation: &ConversationId) -> Result<Option<String>, StoreError> {
        let connection = self.connection();
        let mut statement =
            connection.prepare_cached("SELECT body FROM conversation_settings WHERE conversation = ?1")?;
        Ok(statement.query_row([conversation.as_str()], |row| row.get(0)).optional()?)
    }

    /// Keeps the settings of a conversation; none forgets them.
    pub fn set_conversation_settings(
        &self,
        conversation: &ConversationId,
        settings: Option<&str>,
    ) -> Result<(), StoreError> {
        self.conversation(conversation)?;
        let connection = self.connection();
        match settings {
            Some(body) => connection
                .prepare_cached(
                    "INSERT OR REPLACE INTO conversation_settings (conversation, body) VALUES (?1, ?2)",
                )?
                .execute(params![conversation.as_str(), body])?,
            None => connection
                .prepare_cached("DELETE FROM conversation_settings WHERE conversation = ?1")?
                .execute([conversation.as_str()])?,
        };
        Ok(())
    }
}
