//! States of conversations on disk, so that a restart does not evaluate them again.
//!
//! A file holds what llama.cpp computed for one conversation, its tokens, and which replies stand in them: as
//! private as the conversation itself. Its name tells the conversation and the model apart by digests, so that all
//! states of a conversation are found without opening one. Invariant: a file is whole or absent; whoever reads it
//! checks its digests before llama.cpp sees it.

mod deleted;
mod folder;
mod format;

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

pub use deleted::Deleted;
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
    forget_conversations(folder, [conversation])
}

/// The same for several, with one look at the folder.
pub fn forget_conversations<'a>(
    folder: &Path,
    conversations: impl IntoIterator<Item = &'a str>,
) -> std::io::Result<()> {
    let gone: BTreeSet<String> = conversations.into_iter().map(conversation_digest).collect();
    if gone.is_empty() {
        return Ok(());
    }
    folder::remove(folder, |name| name.split('-').next().is_some_and(|digest| gone.contains(digest)))
}

/// Deletes all saved states.
pub fn forget_everything(folder: &Path) -> std::io::Result<()> {
    folder::remove(folder, |_| true)
}

/// Deletes the saved states of a model's file, of all conversations. `digest` is [`file_digest`] of that file.
pub fn forget_file(folder: &Path, digest: &str) -> std::io::Result<()> {
    folder::remove(folder, |name| name.split('-').nth(1).is_some_and(|key| key.starts_with(digest)))
}

/// What a model's file is known by among the states: its size, the time of its last change and its first megabyte,
/// which holds the header; reading gigabytes would cost what a state saves. Moving the file does not change it.
pub fn file_digest(path: &Path) -> String {
    let mut digest = Sha256::new();
    let meta = std::fs::metadata(path).ok();
    let changed = meta.as_ref().and_then(|meta| meta.modified().ok());
    let changed = changed.and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok());
    digest.update(format!("{:?} {:?}", meta.map(|meta| meta.len()), changed.map(|time| time.as_nanos())));
    let mut start = Vec::new();
    if let Ok(file) = File::open(path) {
        let _ = file.take(1 << 20).read_to_end(&mut start);
    }
    digest.update(start);
    hex(&digest.finalize()[..8])
}

/// How much is saved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stored {
    /// Bytes of all states.
    pub bytes: u64,
    /// Conversations that have one.
    pub conversations: usize,
}

/// What is saved in a folder, which need not be there.
pub fn stored(folder: &Path) -> Stored {
    folder::stored(folder)
}

/// The conversation's part of a file name.
pub(crate) fn conversation_digest(conversation: &str) -> String {
    hex(&Sha256::digest(conversation.as_bytes())[..16])
}
