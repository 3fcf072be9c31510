//! Where the bytes of a download go: a thread that writes and hashes, so that a slow disk slows the network down and
//! nothing else.
//!
//! Invariant: the hash is that of the bytes in the file, from its first on.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use sha2::{Digest, Sha256};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Chunks that may wait for the disk.
const WAITING: usize = 64;
const BLOCK: usize = 1 << 20;

/// What a file holds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Written {
    pub(crate) bytes: u64,
    hash: Sha256,
}

impl Written {
    /// In hexadecimal.
    pub(crate) fn sha256(&self) -> String {
        self.hash.clone().finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// An open file.
pub(crate) struct Sink {
    sender: mpsc::Sender<Bytes>,
    task: JoinHandle<io::Result<Written>>,
}

impl Sink {
    /// Goes on behind what is there; what is behind that is cut off.
    pub(crate) fn open(path: &Path, there: Written) -> Self {
        let (sender, chunks) = mpsc::channel(WAITING);
        let path = path.to_owned();
        Self { sender, task: tokio::task::spawn_blocking(move || write(&path, there, chunks)) }
    }

    /// False when the file can't be written; [`Sink::close`] says why.
    pub(crate) async fn put(&self, chunk: Bytes) -> bool {
        self.sender.send(chunk).await.is_ok()
    }

    /// Waits for all bytes to be in the file.
    pub(crate) async fn close(self) -> io::Result<Written> {
        drop(self.sender);
        self.task.await.unwrap_or_else(|error| Err(io::Error::other(error)))
    }
}

fn write(path: &Path, mut written: Written, mut chunks: mpsc::Receiver<Bytes>) -> io::Result<Written> {
    let mut file = open_private(path)?;
    file.set_len(written.bytes)?;
    file.seek(SeekFrom::Start(written.bytes))?;
    while let Some(chunk) = chunks.blocking_recv() {
        file.write_all(&chunk)?;
        written.hash.update(&chunk);
        written.bytes += chunk.len() as u64;
    }
    Ok(written)
}

fn open_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Reads what is in a file; none when it was stopped.
pub(crate) async fn read_written(path: PathBuf, stop: CancellationToken) -> io::Result<Option<Written>> {
    let read = tokio::task::spawn_blocking(move || {
        let mut file = File::open(&path)?;
        let (mut written, mut block) = (Written::default(), vec![0; BLOCK]);
        loop {
            if stop.is_cancelled() {
                return Ok(None);
            }
            match file.read(&mut block)? {
                0 => return Ok(Some(written)),
                count => {
                    written.hash.update(&block[..count]);
                    written.bytes += count as u64;
                }
            }
        }
    });
    read.await.unwrap_or_else(|error| Err(io::Error::other(error)))
}

/// The SHA-256 of a file, in hexadecimal.
pub fn sha256_of_file(path: &Path) -> io::Result<String> {
    let (mut file, mut hash) = (File::open(path)?, Sha256::new());
    io::copy(&mut file, &mut hash)?;
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Brings a whole file to its place and makes that last. Never replaces another file.
pub(crate) fn put_in_place(part: &Path, place: &Path) -> io::Result<()> {
    let file = OpenOptions::new().write(true).open(part)?;
    file.sync_all()?;
    drop(file);
    // It was readable for the user alone while it grew; a model is no secret.
    #[cfg(unix)]
    std::fs::set_permissions(part, std::os::unix::fs::PermissionsExt::from_mode(0o644))?;
    // A link fails where a file stands already; a rename would replace it.
    match std::fs::hard_link(part, place) {
        Ok(()) => std::fs::remove_file(part)?,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(error),
        // Not every file system has links.
        Err(_) if !place.exists() => std::fs::rename(part, place)?,
        Err(error) => return Err(error),
    }
    if let Some(Ok(folder)) = place.parent().map(File::open) {
        // Not every file system can; the file is whole either way.
        let _ = folder.sync_all();
    }
    Ok(())
}
