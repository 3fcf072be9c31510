//! What is remembered of a download beside its file, so that it goes on after a restart: `NAME.part.json`.
//!
//! Invariant: written whole or not at all, readable by the user alone (an address may have a secret in its query).

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use url::Url;

use crate::hub::{Offer, RemoteFile};

/// The version that this Lectern writes.
const VERSION: u32 = 1;
const TAIL: &str = ".part.json";

/// A download as it is kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) version: u32,
    /// What was asked for, without queries.
    pub(crate) target: String,
    pub(crate) host: String,
    /// Whether it is no model by itself.
    #[serde(default)]
    pub(crate) projector: bool,
    /// Whether a person stopped it; else it goes on by itself the next time.
    #[serde(default, skip_serializing_if = "is_not")]
    pub(crate) paused: bool,
    pub(crate) files: Vec<FileRecord>,
    /// When it was begun.
    pub(crate) at: jiff::Timestamp,
}

/// One file of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct FileRecord {
    pub(crate) name: String,
    pub(crate) url: Url,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) size: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sha256: Option<String>,
    /// What the server knows these bytes by; a part without it is not gone on with unless the checksum is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) mark: Option<String>,
}

impl Record {
    pub(crate) fn new(target: &str, host: &str, offer: &Offer) -> Self {
        let file = |file: &RemoteFile| FileRecord {
            name: file.name.clone(),
            url: file.url.clone(),
            size: file.size,
            sha256: file.sha256.clone(),
            mark: None,
        };
        Self {
            version: VERSION,
            target: target.to_owned(),
            host: host.to_owned(),
            projector: offer.projector,
            paused: false,
            files: offer.files.iter().map(file).collect(),
            at: jiff::Timestamp::now(),
        }
    }

    /// The name of the first file, which stands for all.
    pub(crate) fn name(&self) -> &str {
        self.files.first().map_or("", |file| &file.name)
    }

    /// Bytes of all files.
    pub(crate) fn total(&self) -> Option<u64> {
        self.files.iter().map(|file| file.size).sum()
    }

    /// Reads it; none when it is not there or not ours.
    pub(crate) fn read(path: &Path) -> Option<Self> {
        let record: Self = serde_json::from_slice(&std::fs::read(path).ok()?).ok()?;
        // Someone may have written into the file; its names are as little trusted as a server's.
        let safe = record.files.iter().all(|file| crate::name::safe_name(&file.name) == file.name);
        (record.version == VERSION && !record.files.is_empty() && safe).then_some(record)
    }

    pub(crate) fn write(&self, path: &Path) -> io::Result<()> {
        let folder = path.parent().unwrap_or(Path::new("."));
        // Made for the user alone, as tempfile does.
        let mut file = tempfile::Builder::new().prefix(".record").tempfile_in(folder)?;
        file.write_all(&serde_json::to_vec_pretty(self)?)?;
        file.as_file().sync_all()?;
        file.persist(path).map_err(|error| error.error).map(|_| ())
    }
}

fn is_not(wish: &bool) -> bool {
    !wish
}

/// The same for the same place.
pub(crate) fn id_of(path: &Path) -> String {
    let digest = Sha256::digest(path.as_os_str().as_encoded_bytes());
    digest.iter().take(6).map(|byte| format!("{byte:02x}")).collect()
}

/// Where the record of a file is.
pub(crate) fn record_path(file: &Path) -> PathBuf {
    beside(file, TAIL)
}

/// Where the bytes of a file are until it is whole.
pub(crate) fn part_path(file: &Path) -> PathBuf {
    beside(file, ".part")
}

/// What another process leaves to stop the one that downloads.
pub(crate) fn stop_path(file: &Path) -> PathBuf {
    beside(file, ".part.stop")
}

fn beside(file: &Path, tail: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(tail);
    name.into()
}

/// The records in a folder, with the file that each stands for.
pub(crate) fn records_in(folder: &Path) -> Vec<(PathBuf, Record)> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut found = Vec::new();
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if let Some(file) = name.strip_suffix(TAIL)
            && let Some(record) = Record::read(&path).filter(|record| record.name() == file)
        {
            found.push((folder.join(file), record));
        }
    }
    found
}
