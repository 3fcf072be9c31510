//! Opens, lists and writes the files of a vault.
//! Invariant: every access goes through one directory handle that never resolves outside the vault, by `..`,
//! by an absolute name or by a link. Nothing is ever overwritten but by `append`, which keeps what was there.

use std::collections::HashSet;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::SystemTime;

use cap_std::ambient_authority;
use cap_std::fs::{Dir, DirEntry, File, FileType, Metadata, OpenOptions};

use crate::content::{appended, decode};
use crate::path::{NotePath, PathFault};

/// Deeper folders are not walked; a loop of mounts would otherwise never end.
const DEEPEST_FOLDER: usize = 64;
/// Larger files are indexed and read only up to a bound.
pub const LARGE_FILE: u64 = 5 * 1024 * 1024;
/// How much of a large file is indexed.
pub const INDEXED_OF_LARGE_FILE: u64 = 1024 * 1024;
/// No file is read beyond this.
const LONGEST_READ: u64 = 64 * 1024 * 1024;

/// A folder of notes.
#[derive(Debug)]
pub struct Vault {
    root: Dir,
    folder: PathBuf,
    // Writers take turns, so that two appends to one note both stay.
    writing: Mutex<()>,
}

/// A note as the walk saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Where it is.
    pub path: NotePath,
    /// Its length in bytes.
    pub size: u64,
    /// When it was last written.
    pub modified: Option<SystemTime>,
}

/// Why a folder cannot be served.
#[derive(Debug, thiserror::Error)]
#[error("open the folder of notes {}", folder.display())]
pub struct OpenError {
    folder: PathBuf,
    source: io::Error,
}

/// Why a note could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// There is no such file.
    #[error("there is no note `{0}`")]
    Missing(NotePath),
    /// There is one already.
    #[error("there is already a note `{0}`, and notes are never overwritten; use append_note to add to it")]
    Exists(NotePath),
    /// It leads outside, through a link, or is a folder, a pipe or a device.
    #[error("`{0}` is not a note inside the folder of notes")]
    NotANote(NotePath),
    /// It holds data that is no text.
    #[error("`{0}` is a binary file, not a note")]
    Binary(NotePath),
    /// It is in an encoding that can be read but not safely added to.
    #[error("`{0}` is not in UTF-8, so nothing can be added to it safely")]
    Encoding(NotePath),
    /// Somebody else changed it at the same moment.
    #[error("`{0}` was changed by another program at the same moment; try again")]
    Changed(NotePath),
    /// The name cannot be used for a new note.
    #[error("the path `{path}` {fault}")]
    Path {
        /// What was asked for.
        path: String,
        /// What is wrong with it.
        fault: PathFault,
    },
    /// The system refused.
    #[error("could not open or write `{path}`: {source}")]
    Io {
        /// The note.
        path: NotePath,
        /// What the system said.
        source: io::Error,
    },
}

impl Vault {
    /// Opens a folder. Everything afterwards is relative to this very folder, even if it is renamed.
    ///
    /// # Errors
    /// When the folder does not exist, is no folder or cannot be read.
    pub fn open(folder: &Path) -> Result<Self, OpenError> {
        let fault = |source| OpenError { folder: folder.to_owned(), source };
        let canonical = folder.canonicalize().map_err(fault)?;
        let root = Dir::open_ambient_dir(&canonical, ambient_authority()).map_err(fault)?;
        root.entries().map_err(fault)?;
        Ok(Self { root, folder: canonical, writing: Mutex::new(()) })
    }

    /// The folder on the disk, for a watcher and for messages.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Every note below `under` (an empty text means the whole vault), sorted by path.
    ///
    /// Hidden files and folders and linked folders are left out; so is what cannot be read.
    pub fn paths(&self, under: &str) -> Vec<NotePath> {
        let mut found = Vec::new();
        self.each(under, |path, _| found.push(path));
        found.sort();
        found
    }

    /// The same with size and time, which costs a question to the system for each note.
    pub fn walk(&self, under: &str) -> Vec<Entry> {
        let mut found = Vec::new();
        self.each(under, |path, item| {
            if let Some(data) = item.metadata().ok().filter(|data| !data.is_symlink()) {
                found.push(entry(path, &data));
            } else if let Ok(linked) = self.stat(&path) {
                found.push(linked);
            }
        });
        found.sort_by(|a, b| a.path.cmp(&b.path));
        found
    }

    fn each(&self, under: &str, mut visit: impl FnMut(NotePath, &DirEntry)) {
        let mut seen = HashSet::new();
        // Names and not open folders, of which a system allows only so many.
        let mut folders = vec![(under.to_owned(), 0)];
        while let Some((folder, depth)) = folders.pop() {
            let opened = if folder.is_empty() { self.root.try_clone() } else { self.root.open_dir(&folder) };
            let Ok(dir) = opened else { continue };
            if depth > DEEPEST_FOLDER || !dir.dir_metadata().is_ok_and(|data| seen.insert(identity(&data))) {
                continue;
            }
            let Ok(items) = dir.entries() else { continue };
            for item in items.flatten() {
                let Some((path, kind)) = visible(&folder, &item) else { continue };
                if kind.is_dir() {
                    folders.push((path.to_string(), depth + 1));
                } else if path.is_markdown()
                    && (kind.is_file() || (kind.is_symlink() && self.stat(&path).is_ok()))
                {
                    visit(path, &item);
                }
            }
        }
    }

    /// Whether `folder` is a folder of the vault.
    pub fn has_folder(&self, folder: &str) -> bool {
        self.root.is_dir(folder)
    }

    /// What the system says about a note now.
    ///
    /// # Errors
    /// When it does not exist, leads outside or is no regular file.
    pub fn stat(&self, path: &NotePath) -> Result<Entry, FileError> {
        let data = self.root.metadata(path.as_str()).map_err(|source| io_error(path, source))?;
        if !data.is_file() {
            return Err(FileError::NotANote(path.clone()));
        }
        Ok(entry(path.clone(), &data))
    }

    /// The text of a note, at most `limit` bytes of it. Text that is not UTF-8 is read as far as possible.
    ///
    /// # Errors
    /// When it cannot be opened inside the vault, or is binary.
    pub fn read(&self, path: &NotePath, limit: u64) -> Result<String, FileError> {
        let bytes = self.read_bytes(path, limit)?;
        decode(&bytes).ok_or_else(|| FileError::Binary(path.clone()))
    }

    fn read_bytes(&self, path: &NotePath, limit: u64) -> Result<Vec<u8>, FileError> {
        let file = self.open_file(path)?;
        let mut bytes = Vec::new();
        file.take(limit.min(LONGEST_READ))
            .read_to_end(&mut bytes)
            .map_err(|source| io_error(path, source))?;
        Ok(bytes)
    }

    /// Opens a regular file. A pipe would block the open, so it never waits, and what was opened is asked again.
    fn open_file(&self, path: &NotePath) -> Result<File, FileError> {
        self.stat(path)?;
        let mut options = OpenOptions::new();
        options.read(true);
        #[cfg(unix)]
        {
            use cap_std::fs::OpenOptionsExt;
            options.custom_flags(NONBLOCK);
        }
        let file = self.root.open_with(path.as_str(), &options).map_err(|source| io_error(path, source))?;
        let data = file.metadata().map_err(|source| io_error(path, source))?;
        if data.is_file() { Ok(file) } else { Err(FileError::NotANote(path.clone())) }
    }

    /// Writes a new note and the folders that it needs. Returns where it is: `.md` is added, and folders that
    /// exist in another spelling are used.
    ///
    /// # Errors
    /// When a note of that name exists, in any spelling of its case, or the name cannot be used.
    pub fn create(&self, asked: &NotePath, content: &str) -> Result<NotePath, FileError> {
        let path = asked
            .clone()
            .for_new_note()
            .map_err(|fault| FileError::Path { path: asked.to_string(), fault })?;
        let _turn = self.turn();
        let path = self.spelled_as_on_disk(&path);
        if let Some(existing) = self.same_name(&path) {
            return Err(FileError::Exists(existing));
        }
        let fault = |source| io_error(&path, source);
        if !path.folder().is_empty() {
            self.root.create_dir_all(path.folder()).map_err(fault)?;
        }
        let temporary = temporary_name(&path);
        let written = self.write_new(&temporary, content.as_bytes(), None);
        // A link fails where the name is taken, so this is the step that never overwrites.
        let linked = written.and_then(|()| self.root.hard_link(&temporary, &self.root, path.as_str()));
        let _ = self.root.remove_file(&temporary);
        match linked {
            Ok(()) => Ok(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(FileError::Exists(path)),
            // Some file systems know no hard links.
            Err(_) => match self.write_new(path.as_str(), content.as_bytes(), None) {
                Ok(()) => Ok(path),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(FileError::Exists(path)),
                Err(source) => Err(io_error(&path, source)),
            },
        }
    }

    /// Adds text at the end of a note, after an empty line. Returns the first line it was written to, from 1.
    ///
    /// # Errors
    /// When there is no such note, or it is no UTF-8 text, or another program writes at the same time.
    pub fn append(&self, path: &NotePath, content: &str) -> Result<usize, FileError> {
        let _turn = self.turn();
        let before = self.stat(path)?;
        let old = self.read_bytes(path, LONGEST_READ)?;
        if old.len() as u64 != before.size {
            return Err(FileError::Changed(path.clone()));
        }
        let old = String::from_utf8(old).map_err(|_| FileError::Encoding(path.clone()))?;
        let (text, line) = appended(&old, content);
        // A linked note stays a link: its target is written.
        let target = self.root.canonicalize(path.as_str()).map_err(|source| io_error(path, source))?;
        let target = target.to_string_lossy().replace('\\', "/");
        let temporary = temporary_name(&NotePath::found(target.clone()));
        let permissions = self.root.metadata(&target).map_err(|source| io_error(path, source))?.permissions();
        let written = self.write_new(&temporary, text.as_bytes(), Some(permissions));
        let unchanged = self.stat(path).is_ok_and(|now| now == before);
        let done = match written {
            Ok(()) if unchanged => self.root.rename(&temporary, &self.root, &target),
            Ok(()) => {
                let _ = self.root.remove_file(&temporary);
                return Err(FileError::Changed(path.clone()));
            }
            Err(error) => Err(error),
        };
        done.map_err(|source| {
            let _ = self.root.remove_file(&temporary);
            io_error(path, source)
        })?;
        Ok(line)
    }

    fn turn(&self) -> std::sync::MutexGuard<'_, ()> {
        self.writing.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn write_new(&self, path: &str, bytes: &[u8], mode: Option<cap_std::fs::Permissions>) -> io::Result<()> {
        let mut file = self.root.open_with(path, OpenOptions::new().write(true).create_new(true))?;
        if let Some(mode) = mode {
            file.set_permissions(mode)?;
        }
        file.write_all(bytes)?;
        file.sync_all()
    }

    /// Replaces each folder by the one that exists in another case or composition, if there is one.
    fn spelled_as_on_disk(&self, path: &NotePath) -> NotePath {
        let mut spelled = String::new();
        for part in path.folder().split('/').filter(|part| !part.is_empty()) {
            let here = if spelled.is_empty() { "." } else { spelled.as_str() };
            let name = self.name_in(here, part).unwrap_or_else(|| part.to_owned());
            spelled = if spelled.is_empty() { name } else { format!("{spelled}/{name}") };
        }
        let name = path.name();
        NotePath::found(if spelled.is_empty() { name.to_owned() } else { format!("{spelled}/{name}") })
    }

    fn same_name(&self, path: &NotePath) -> Option<NotePath> {
        let folder = path.folder();
        let name = self.name_in(if folder.is_empty() { "." } else { folder }, path.name())?;
        Some(NotePath::found(if folder.is_empty() { name } else { format!("{folder}/{name}") }))
    }

    /// The name in `folder` that is `wanted` in any case and composition; the same spelling wins.
    fn name_in(&self, folder: &str, wanted: &str) -> Option<String> {
        let key = crate::text::lower(wanted);
        let names: Vec<String> = self
            .root
            .read_dir(folder)
            .ok()?
            .flatten()
            .filter_map(|e| e.file_name().into_string().ok())
            .collect();
        names
            .iter()
            .find(|name| *name == wanted)
            .or_else(|| names.iter().find(|n| crate::text::lower(n) == key))
            .cloned()
    }
}

#[cfg(all(unix, any(target_os = "linux", target_os = "android")))]
const NONBLOCK: i32 = 0o4000;
#[cfg(all(unix, not(any(target_os = "linux", target_os = "android"))))]
const NONBLOCK: i32 = 0x4;

/// The path and kind of what is in a folder, unless it is hidden.
fn visible(folder: &str, item: &DirEntry) -> Option<(NotePath, FileType)> {
    // A name that is not Unicode cannot be asked for over JSON.
    let name = item.file_name().into_string().ok()?;
    if name.starts_with('.') || name.chars().any(char::is_control) {
        return None;
    }
    let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
    Some((NotePath::found(path), item.file_type().ok()?))
}

fn entry(path: NotePath, data: &Metadata) -> Entry {
    Entry { path, size: data.len(), modified: data.modified().ok().map(cap_std::time::SystemTime::into_std) }
}

#[cfg(unix)]
fn identity(data: &Metadata) -> (u64, u64) {
    use cap_std::fs::MetadataExt;
    (data.dev(), data.ino())
}

#[cfg(not(unix))]
fn identity(_: &Metadata) -> u64 {
    // Linked folders are not walked, so without an identity only the depth bounds the walk.
    static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
}

fn io_error(path: &NotePath, source: io::Error) -> FileError {
    match source.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => FileError::Missing(path.clone()),
        // This is how an escape through a link is refused.
        io::ErrorKind::PermissionDenied if source.raw_os_error().is_none() => {
            FileError::NotANote(path.clone())
        }
        io::ErrorKind::IsADirectory => FileError::NotANote(path.clone()),
        io::ErrorKind::AlreadyExists => FileError::Exists(path.clone()),
        _ => FileError::Io { path: path.clone(), source },
    }
}

fn temporary_name(path: &NotePath) -> String {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let name = format!(".lectern-{}-{}.tmp", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    if path.folder().is_empty() { name } else { format!("{}/{name}", path.folder()) }
}
