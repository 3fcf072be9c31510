//! What models keep of conversations beside the conversations themselves: how much, and when it has to go.
//!
//! Invariant: a deleted conversation leaves no state behind, neither in the worker of the open model nor on disk.

use lectern_core::ConversationId;
use lectern_local::CacheOptions;
use lectern_local::saved::{Stored, forget_conversation, forget_everything, stored};
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
    /// Forgets a conversation on disk at once, and in the worker with [`Models::forget_deleted`].
    pub fn forget(&self, conversation: &ConversationId) -> Result<(), Problem> {
        self.deleted().push(conversation.clone());
        forget_conversation(&self.home().states(), conversation.as_str()).map_err(|error| not_deleted(&error))
    }

    /// Tells the worker of the open model what was deleted.
    pub async fn forget_deleted(&self) {
        let open = self.open_model().await;
        let deleted: Vec<ConversationId> = std::mem::take(&mut *self.deleted());
        if let Some(open) = open {
            for conversation in &deleted {
                open.forget(Some(conversation)).await;
            }
        }
        // A state may have been written while the conversation was being deleted.
        for conversation in deleted {
            if let Err(error) = forget_conversation(&self.home().states(), conversation.as_str()) {
                tracing::warn!(%error, "a state of a deleted conversation");
            }
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
        if let Some(open) = self.open_model().await {
            open.forget(None).await;
        }
        forget_everything(&self.home().states()).map_err(|error| not_deleted(&error))
    }
}

fn not_deleted(error: &std::io::Error) -> Problem {
    Problem::new("state_stays", format!("the saved state of a conversation can't be deleted: {error}"))
        .hint("Delete the folder `cache/kv` in Lectern's home.")
}
