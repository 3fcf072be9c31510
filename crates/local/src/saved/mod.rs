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
use std::io::{Read, Seek, SeekFrom};
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

/// Samples of a file behind its beginning, and bytes of each: what they cost is the same for every size.
const SAMPLES: u64 = 64;
const SAMPLE: u64 = 4 << 10;
/// Bytes of a file's beginning.
const BEGINNING: u64 = 1 << 20;

/// What a model's file is known by among the states: its size, the time of its last change, its first megabyte, which
/// holds the header, and samples of all its weights: another file of the same size may have the same time. Reading
/// gigabytes would cost what a state saves. Moving the file does not change it.
pub fn file_digest(path: &Path) -> String {
    let mut digest = Sha256::new();
    let meta = std::fs::metadata(path).ok();
    let changed = meta.as_ref().and_then(|meta| meta.modified().ok());
    let changed = changed.and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok());
    digest.update(format!("{:?} {:?}", meta.map(|meta| meta.len()), changed.map(|time| time.as_nanos())));
    if let Ok(mut file) = File::open(path) {
        let length = file.metadata().map_or(0, |meta| meta.len());
        // What can't be read counts as nothing; such a file is not loaded either.
        for (at, bytes) in samples(length) {
            let mut sample = Vec::new();
            if file.seek(SeekFrom::Start(at)).is_ok() {
                let _ = (&mut file).take(bytes).read_to_end(&mut sample);
            }
            digest.update(sample);
        }
    }
    hex(&digest.finalize()[..8])
}

/// The places of a file that are looked at, and how many bytes there; the last ones reach to its end.
fn samples(length: u64) -> impl Iterator<Item = (u64, u64)> {
    let rest = length.saturating_sub(BEGINNING + SAMPLE);
    let one =
        move |number: u64| (BEGINNING + (rest as f64 * number as f64 / (SAMPLES - 1) as f64) as u64, SAMPLE);
    let behind = if length > BEGINNING { SAMPLES } else { 0 };
    std::iter::once((0, BEGINNING)).chain((0..behind).map(one))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_file_of_the_same_size_and_time_is_another_model() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.gguf");
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        let write = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            File::options().append(true).open(&path).unwrap().set_modified(time).unwrap();
            file_digest(&path)
        };
        for length in [100_usize, (1 << 20) + 10, 9 << 20] {
            let (one, mut other) = (vec![7; length], vec![7; length]);
            let digest = write(&one);
            assert_eq!(write(&one), digest);
            // Other weights behind the same header: all of them, or the last ones alone.
            other[length / 2..].fill(8);
            assert_ne!(write(&other), digest, "{length}");
            other.fill(7);
            other[length - 1] = 8;
            assert_ne!(write(&other), digest, "{length}");
        }
    }

    #[test]
    fn the_samples_stay_within_the_file_and_reach_its_end() {
        for length in [0, 1, BEGINNING, BEGINNING + 1, BEGINNING + SAMPLE, 9 << 20, 40 << 30] {
            let all: Vec<(u64, u64)> = samples(length).collect();
            assert!(all.len() as u64 <= 1 + SAMPLES);
            let end = all.iter().map(|(at, bytes)| at + bytes).max().unwrap();
            assert!(end >= length, "{length}: {end}");
        }
    }
}
