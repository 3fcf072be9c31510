//! States of conversations on disk, so that a restart does not evaluate them again.
//!
//! A file holds what llama.cpp computed for one conversation, its tokens, and which replies stand in them: as
//! private as the conversation itself. Its name tells the conversation and the model apart by digests, so that all
//! states of a conversation are found without opening one. Invariant: a file is whole or absent; whoever reads it
//! checks its digests before llama.cpp sees it.

mod folder;
mod format;

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

pub(crate) use folder::{Folder, hex, sweep_process};
pub(crate) use format::{FileError, Header, checkpoint_bytes, read_header, seal, verify};

/// What is kept of conversations beside the cache itself, and where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CacheOptions {
    /// Bytes of memory for conversations that had to leave the cache.
    pub memory_bytes: u64,
    /// Bytes on disk; the oldest states give way. Counted over all models that share the folder.
    pub disk_bytes: u64,
    /// Where states are saved; unset: nowhere.
    pub folder: Option<PathBuf>,
    /// How long the model rests before the state is saved. Large states wait longer: a second for each 32 MB.
    pub rest: Duration,
}

impl Default for CacheOptions {
    fn default() -> Self {
        Self { memory_bytes: 256 << 20, disk_bytes: 2 << 30, folder: None, rest: Duration::from_secs(2) }
    }
}

/// Deletes the saved states of a conversation, of all models. What a running model still knows of it is forgotten
/// with [`crate::LocalModel::forget`].
pub fn forget_conversation(folder: &Path, conversation: &str) -> std::io::Result<()> {
    let start = format!("{}-", conversation_digest(conversation));
    folder::remove(folder, |name| name.starts_with(&start))
}

/// Deletes all saved states.
pub fn forget_everything(folder: &Path) -> std::io::Result<()> {
    folder::remove(folder, |_| true)
}

/// The conversation's part of a file name.
pub(crate) fn conversation_digest(conversation: &str) -> String {
    hex(&Sha256::digest(conversation.as_bytes())[..16])
}
