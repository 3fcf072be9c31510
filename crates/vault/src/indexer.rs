//! Keeps the index in step with the files: reads everything once, then what changes.
//! Invariant: one thread of its own; whoever searches never waits for a note to be read, only for a short write.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::{broadcast, watch};

use crate::index::{Index, IndexError, Prepared, stamp};
use crate::path::NotePath;
use crate::vault::{Entry, FileError, INDEXED_OF_LARGE_FILE, LARGE_FILE, Vault};

/// So many notes are written to the index at once.
const BATCH: usize = 64;
/// Changes are collected until none came for so long, or for `LONGEST_QUIET` in all.
const QUIET: Duration = Duration::from_millis(150);
const LONGEST_QUIET: Duration = Duration::from_secs(2);
/// More changed files than this are found by looking at all of them.
const MOST_SINGLE_CHANGES: usize = 200;
/// A search asks for a new look at all files when the last one is older: some file systems report no changes.
const STALE: Duration = Duration::from_secs(30);
/// Without a watcher the files are looked at this often.
const POLL: Duration = Duration::from_secs(10);

/// How far the first reading is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// Notes read.
    pub done: usize,
    /// Notes to read, once they are counted.
    pub total: usize,
    /// Whether every note that was there at the start can be found.
    pub complete: bool,
}

/// What changed among the notes since they were first read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// Notes whose text changed.
    pub updated: Vec<NotePath>,
    /// Whether notes came or went.
    pub listing: bool,
}

/// The running indexer. Dropping it stops the thread.
#[derive(Debug)]
pub struct Indexer {
    wake: mpsc::Sender<Wake>,
    stop: Arc<AtomicBool>,
    progress: watch::Receiver<Progress>,
    changes: broadcast::Sender<Changes>,
}

#[derive(Debug)]
enum Wake {
    File(PathBuf),
    Everything,
    Searched,
    Stop,
}

impl Indexer {
    /// Starts to read and to watch.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start(vault: Arc<Vault>, index: Arc<Index>) -> std::io::Result<Self> {
        let (wake, woken) = mpsc::channel();
        let (report, progress) = watch::channel(Progress::default());
        let (changes, _) = broadcast::channel(64);
        let stop = Arc::new(AtomicBool::new(false));
        let work = Work { vault, index, report, changes: changes.clone(), stop: stop.clone() };
        let watcher_wake = wake.clone();
        thread::Builder::new().name("indexer".into()).spawn(move || work.run(&woken, watcher_wake))?;
        Ok(Self { wake, stop, progress, changes })
    }

    /// How far the first reading is, now and later.
    pub fn progress(&self) -> watch::Receiver<Progress> {
        self.progress.clone()
    }

    /// What will change from now on.
    pub fn changes(&self) -> broadcast::Receiver<Changes> {
        self.changes.subscribe()
    }

    /// Tells that somebody searched, so that missed changes are looked for.
    pub fn searched(&self) {
        let _ = self.wake.send(Wake::Searched);
    }

    /// Tells that a note was written here; others hear of it too.
    pub fn announce(&self, changes: Changes) {
        let _ = self.changes.send(changes);
    }
}

impl Drop for Indexer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.wake.send(Wake::Stop);
    }
}

/// Reads a note and writes it to the index, or takes it out when it is gone.
///
/// # Errors
/// When the index cannot be written.
pub fn refresh(vault: &Vault, index: &Index, path: &NotePath) -> Result<(), IndexError> {
    match vault.stat(path).ok().and_then(|entry| prepare(vault, entry)) {
        Some(prepared) => index.put(&[prepared]),
        None => index.remove(std::slice::from_ref(path)),
    }
}

fn prepare(vault: &Vault, entry: Entry) -> Option<Prepared> {
    let bound = if entry.size > LARGE_FILE { INDEXED_OF_LARGE_FILE } else { LARGE_FILE };
    match vault.read(&entry.path, bound) {
        Ok(text) => Some(Prepared::new(entry, &text)),
        Err(FileError::Missing(_)) => None,
        // What is no text, or may not be read, is still found by its name.
        Err(error) => {
            tracing::debug!(%error, "indexed by name only");
            Some(Prepared::new(entry, ""))
        }
    }
}

struct Work {
    vault: Arc<Vault>,
    index: Arc<Index>,
    report: watch::Sender<Progress>,
    changes: broadcast::Sender<Changes>,
    stop: Arc<AtomicBool>,
}

impl Work {
    fn run(&self, woken: &mpsc::Receiver<Wake>, wake: mpsc::Sender<Wake>) {
        // The watcher starts first, so that nothing changes unseen while everything is read.
        let watcher = watch_folder(self.vault.folder(), wake);
        let begin = Instant::now();
        self.scan(true);
        let notes = self.report.borrow().total;
        tracing::info!(notes, seconds = begin.elapsed().as_secs_f32(), "indexed");
        let mut scanned = Instant::now();
        while let Some(change) = self.next(woken, watcher.is_some(), &mut scanned) {
            match change {
                Batch::Files(paths) => self.update(&paths),
                Batch::Everything => {
                    self.scan(false);
                    scanned = Instant::now();
                }
            }
        }
    }

    /// Waits for changes and collects those that come together; `None` is the end.
    fn next(&self, woken: &mpsc::Receiver<Wake>, watched: bool, scanned: &mut Instant) -> Option<Batch> {
        let mut paths = BTreeSet::new();
        let mut everything = false;
        let mut first: Option<Instant> = None;
        loop {
            let patience = if first.is_some() {
                QUIET
            } else if watched {
                Duration::from_secs(3_600)
            } else {
                POLL
            };
            let wake = woken.recv_timeout(patience);
            if self.stop.load(Ordering::Relaxed) {
                return None;
            }
            match wake {
                Ok(Wake::File(path)) => match self.note_of(&path) {
                    Some(FileChange::Note(path)) => drop(paths.insert(path)),
                    Some(FileChange::Folder) => everything = true,
                    None => continue,
                },
                Ok(Wake::Everything) => everything = true,
                Ok(Wake::Searched) if scanned.elapsed() > STALE => everything = true,
                Ok(Wake::Searched) => continue,
                Ok(Wake::Stop) | Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) if first.is_none() => return Some(Batch::Everything),
                Err(RecvTimeoutError::Timeout) => break,
            }
            if first.get_or_insert_with(Instant::now).elapsed() > LONGEST_QUIET {
                break;
            }
        }
        let all = everything || paths.len() > MOST_SINGLE_CHANGES;
        Some(if all { Batch::Everything } else { Batch::Files(paths) })
    }

    /// What a path on the disk means for the index; hidden and other files mean nothing.
    fn note_of(&self, path: &Path) -> Option<FileChange> {
        let inside = path.strip_prefix(self.vault.folder()).ok()?.to_str()?;
        let path = NotePath::parse(inside).ok()?;
        if path.is_markdown() {
            return Some(FileChange::Note(path));
        }
        // A name with an ending is a file; a folder may have come, gone or been renamed with all its notes.
        let folder = !path.name().contains('.') || self.vault.has_folder(path.as_str());
        folder.then_some(FileChange::Folder)
    }

    fn update(&self, paths: &BTreeSet<NotePath>) {
        let Some(known) = self.known() else { return };
        let mut changes = Changes::default();
        for path in paths {
            let now = self.vault.stat(path).ok();
            let before = known.get(path);
            if now.as_ref().map(|entry| (entry.size, stamp(entry.modified))) == before.copied() {
                continue;
            }
            changes.listing |= now.is_some() != before.is_some();
            if let Err(error) = refresh(&self.vault, &self.index, path) {
                tracing::warn!(%error, %path, "update the index");
            }
            changes.updated.push(path.clone());
        }
        self.announce(changes);
    }

    fn known(&self) -> Option<std::collections::HashMap<NotePath, (u64, i64)>> {
        self.index.known().map_err(|error| tracing::error!(%error, "read the index")).ok()
    }

    fn announce(&self, changes: Changes) {
        if !changes.updated.is_empty() || changes.listing {
            // Nobody may be listening.
            let _ = self.changes.send(changes);
        }
    }

    /// Compares every file with the index and reads those that differ, the newest first.
    fn scan(&self, first: bool) {
        let Some(mut known) = self.known() else { return };
        let mut changed: Vec<Entry> = Vec::new();
        let mut fresh = false;
        for entry in self.vault.walk("") {
            let before = known.remove(&entry.path);
            if before != Some((entry.size, stamp(entry.modified))) {
                fresh |= before.is_none();
                changed.push(entry);
            }
        }
        let gone: Vec<NotePath> = known.into_keys().collect();
        changed.sort_by_key(|entry| std::cmp::Reverse(entry.modified));
        let total = changed.len();
        let updated: Vec<NotePath> = if first {
            Vec::new()
        } else {
            changed.iter().map(|entry| entry.path.clone()).chain(gone.clone()).collect()
        };
        let listing = !first && (fresh || !gone.is_empty());
        if let Err(error) = self.index.remove(&gone) {
            tracing::warn!(%error, "update the index");
        }
        self.read_all(changed, first);
        if first && !self.stop.load(Ordering::Relaxed) {
            self.report.send_replace(Progress { done: total, total, complete: true });
        }
        self.announce(Changes { updated, listing });
    }

    fn read_all(&self, changed: Vec<Entry>, first: bool) {
        let total = changed.len();
        let mut changed = changed.into_iter();
        let mut done = 0;
        loop {
            if first {
                self.report.send_replace(Progress { done, total, complete: false });
            }
            let batch: Vec<Entry> = changed.by_ref().take(BATCH).collect();
            if batch.is_empty() || self.stop.load(Ordering::Relaxed) {
                return;
            }
            done += batch.len();
            let prepared: Vec<Prepared> =
                batch.into_iter().filter_map(|entry| prepare(&self.vault, entry)).collect();
            if let Err(error) = self.index.put(&prepared) {
                tracing::warn!(%error, "write the index");
            }
        }
    }
}

enum Batch {
    Files(BTreeSet<NotePath>),
    Everything,
}

enum FileChange {
    Note(NotePath),
    Folder,
}

fn watch_folder(folder: &Path, wake: mpsc::Sender<Wake>) -> Option<RecommendedWatcher> {
    let seen = move |event: notify::Result<notify::Event>| match event {
        Ok(event) if matches!(event.kind, EventKind::Access(_)) => {}
        Ok(event) if event.need_rescan() => drop(wake.send(Wake::Everything)),
        Ok(event) => event.paths.into_iter().for_each(|path| drop(wake.send(Wake::File(path)))),
        Err(_) => drop(wake.send(Wake::Everything)),
    };
    let started = notify::recommended_watcher(seen).and_then(|mut watcher| {
        watcher.watch(folder, RecursiveMode::Recursive)?;
        Ok(watcher)
    });
    started
        .map_err(|error| tracing::warn!(%error, "no watcher, so the files are looked at from time to time"))
        .ok()
}
