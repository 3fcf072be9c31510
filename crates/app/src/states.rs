//! What models keep of conversations beside the conversations themselves: how much, and when it has to go.
//!
//! Invariant: a deleted conversation leaves no state behind, neither in a worker, also one that was let go, nor on disk.

use lectern_core::ConversationId;
use lectern_local::CacheOptions;
use lectern_local::saved::{Stored, forget_conversation, forget_conversations, forget_everything, stored};
use serde::{Deserialize, Serialize};

use crate::home::Home;
use crate::models::Models;
use crate::settings::Settings;
use crate::view::{Problem, StatesView};

/// How much is kept of conversations that are not in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StatesEntry {
    /// Whether states are saved on disk, so that a conversation goes on at once after a restart.
    pub saved: bool,
    /// Megabytes on disk, all models together.
    pub disk_mb: u64,
    /// Megabytes of memory for conversations that had to leave the cache.
    pub memory_mb: u64,
}

impl Default for StatesEntry {
    fn default() -> Self {
        Self { saved: true, disk_mb: 2048, memory_mb: 256 }
    }
}

impl StatesEntry {
    /// Whether it is what it is without a word in the settings.
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    fn options(self, home: &Home) -> CacheOptions {
        CacheOptions {
            memory_bytes: self.memory_mb.saturating_mul(1 << 20),
            disk_bytes: self.disk_mb.saturating_mul(1 << 20),
            folder: self.saved.then(|| home.states()),
            ..CacheOptions::default()
        }
    }
}

/// What the settings say; settings that cannot be read keep nothing.
pub(crate) fn cache_options(home: &Home) -> CacheOptions {
    let entry = Settings::read(home).map(|settings| settings.states);
    entry.unwrap_or(StatesEntry { saved: false, ..StatesEntry::default() }).options(home)
}

impl Models {
    /// Forgets a conversation on disk at once, and in the workers with [`Models::forget_deleted`].
    pub fn forget(&self, conversation: &ConversationId) -> Result<(), Problem> {
        self.deleted().add(conversation.as_str());
        forget_conversation(&self.home().states(), conversation.as_str()).map_err(|error| not_deleted(&error))
    }

    /// Forgets what a worker left whose application ended before it could say what was deleted.
    pub fn forget_left_over<'a>(&self, deleted: impl IntoIterator<Item = &'a ConversationId>) {
        let deleted = deleted.into_iter().map(ConversationId::as_str);
        if let Err(error) = forget_conversations(&self.home().states(), deleted) {
            tracing::warn!(%error, "a state of a deleted conversation");
        }
    }

    /// A deleted conversation came back.
    pub fn keep_again(&self, conversation: &ConversationId) {
        self.deleted().remove(conversation.as_str());
    }

    /// Tells the workers what was deleted: that of the open model, and those of models that a turn still uses.
    pub async fn forget_deleted(&self) {
        for model in self.living().await {
            model.forget_deleted().await;
        }
    }

    /// How much is saved of conversations, all models together.
    pub fn saved(&self) -> Result<StatesView, Problem> {
        let entry = Settings::read(self.home())?.states;
        let Stored { bytes, conversations } = stored(&self.home().states());
        Ok(StatesView {
            bytes,
            conversations: u32::try_from(conversations).unwrap_or(u32::MAX),
            limit: entry.disk_mb.saturating_mul(1 << 20),
            saved: entry.saved,
        })
    }

    /// Forgets the states of all conversations.
    pub async fn forget_all(&self) -> Result<(), Problem> {
        for model in self.living().await {
            model.forget(None).await;
        }
        forget_everything(&self.home().states()).map_err(|error| not_deleted(&error))
    }
}

fn not_deleted(error: &std::io::Error) -> Problem {
    Problem::new("state_stays", format!("the saved state of a conversation can't be deleted: {error}"))
        .hint("Delete the folder `cache/kv` in Lectern's home.")
}
