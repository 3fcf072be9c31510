//! The list of conversations: begin, name, delete, bring back.

use jiff::SignedDuration;
use rusqlite::{OptionalExtension, Row, params};

use super::{Store, StoreError, from_millis};
use crate::Timestamp;
use crate::clock;
use crate::ids::ConversationId;
use crate::message::{UserMessage, text_of};

/// How long a deleted conversation can be brought back.
const KEPT_AFTER_DELETE: SignedDuration = SignedDuration::from_hours(30 * 24);

/// Characters of a title at most.
const TITLE_LENGTH: usize = 60;

/// Characters of a title that the user gave.
const RENAMED_LENGTH: usize = 200;

/// One line of the conversation list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredConversation {
    /// Its id.
    pub id: ConversationId,
    /// Its title; empty until the first message.
    pub title: String,
    /// When it was begun.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

impl Store {
    /// Begins an empty conversation.
    pub fn create_conversation(&self) -> Result<ConversationId, StoreError> {
        let id = ConversationId::fresh();
        let now = clock::now().as_millisecond();
        self.connection()
            .prepare_cached("INSERT INTO conversations (id, created_at, updated_at) VALUES (?1, ?2, ?2)")?
            .execute(params![id.as_str(), now])?;
        Ok(id)
    }

    /// All conversations that have a message and were not deleted, the last changed first.
    pub fn conversations(&self) -> Result<Vec<StoredConversation>, StoreError> {
        let connection = self.connection();
        let mut statement = connection.prepare_cached(
            "SELECT id, title, created_at, updated_at FROM conversations
             WHERE deleted_at IS NULL AND leaf IS NOT NULL ORDER BY updated_at DESC, id DESC",
        )?;
        let rows = statement.query_map([], line)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// One conversation's line.
    pub fn conversation(&self, id: &ConversationId) -> Result<StoredConversation, StoreError> {
        self.connection()
            .prepare_cached(
                "SELECT id, title, created_at, updated_at FROM conversations
                 WHERE id = ?1 AND deleted_at IS NULL",
            )?
            .query_row([id.as_str()], line)
            .optional()?
            .ok_or_else(|| StoreError::UnknownConversation(id.clone()))
    }

    /// Gives a conversation another title; it is brought to one line of moderate length.
    pub fn rename(&self, id: &ConversationId, title: &str) -> Result<(), StoreError> {
        let title: String = words_of(title).chars().take(RENAMED_LENGTH).collect();
        self.change(id, "UPDATE conversations SET title = ?2 WHERE id = ?1 AND deleted_at IS NULL", title)
    }

    /// Hides a conversation. [`Store::restore`] brings it back within 30 days.
    pub fn delete(&self, id: &ConversationId) -> Result<(), StoreError> {
        let now = clock::now().as_millisecond();
        self.change(id, "UPDATE conversations SET deleted_at = ?2 WHERE id = ?1 AND deleted_at IS NULL", now)
    }

    /// Brings a deleted conversation back.
    pub fn restore(&self, id: &ConversationId) -> Result<(), StoreError> {
        self.change(id, "UPDATE conversations SET deleted_at = ?2 WHERE id = ?1", None::<i64>)
    }

    /// The conversations that can be brought back.
    pub fn deleted_conversations(&self) -> Result<Vec<ConversationId>, StoreError> {
        let connection = self.connection();
        let mut statement =
            connection.prepare_cached("SELECT id FROM conversations WHERE deleted_at IS NOT NULL")?;
        let ids = statement.query_map([], |row| Ok(ConversationId(row.get(0)?)))?;
        Ok(ids.collect::<Result<_, _>>()?)
    }

    fn change(&self, id: &ConversationId, sql: &str, value: impl rusqlite::ToSql) -> Result<(), StoreError> {
        let changed = self.connection().prepare_cached(sql)?.execute(params![id.as_str(), value])?;
        if changed == 0 { Err(StoreError::UnknownConversation(id.clone())) } else { Ok(()) }
    }

    /// Removes for good what was deleted long ago, and conversations that were begun but never used.
    pub(super) fn purge_deleted(&self, now: Timestamp) -> Result<(), StoreError> {
        let limit = now.saturating_sub(KEPT_AFTER_DELETE).unwrap_or(Timestamp::UNIX_EPOCH).as_millisecond();
        self.connection().execute(
            "DELETE FROM conversations
             WHERE deleted_at < ?1 OR (leaf IS NULL AND created_at < ?1)",
            [limit],
        )?;
        Ok(())
    }
}

fn line(row: &Row<'_>) -> rusqlite::Result<StoredConversation> {
    Ok(StoredConversation {
        id: ConversationId(row.get(0)?),
        title: row.get(1)?,
        created_at: from_millis(row.get(2)?),
        updated_at: from_millis(row.get(3)?),
    })
}

/// A title out of the first line of the first message, cut at a word where there is one.
pub(super) fn title_of(message: &UserMessage) -> String {
    let text = text_of(&message.parts);
    let line = text.lines().map(clean_line).find(|line| !line.is_empty()).unwrap_or_default();
    if line.chars().count() <= TITLE_LENGTH {
        return line;
    }
    let cut: String = line.chars().take(TITLE_LENGTH - 1).collect();
    // Languages without spaces are cut at a character; so is one endless word.
    let at_word = cut.rfind(' ').filter(|at| *at > cut.len() / 2).unwrap_or(cut.len());
    format!("{}…", cut[..at_word].trim_end())
}

fn clean_line(line: &str) -> String {
    let mut line = line.trim_start();
    // Markdown's marks of headings, quotes and lists say nothing in a title.
    while let Some((mark, rest)) = line.split_once(char::is_whitespace)
        && mark.chars().all(|c| matches!(c, '#' | '>' | '-' | '*'))
        && !mark.contains("**")
    {
        line = rest.trim_start();
    }
    words_of(line)
}

fn words_of(line: &str) -> String {
    line.split(|c: char| c.is_whitespace() || c.is_control())
        .filter(|w| !w.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}
