//! The folders of sessions.
//!
//! Invariant: everything is done through a handle of the folder that holds them all, so that nothing outside of it is
//! reached, whatever stands in the way (links included); what stands under a session's name is a folder or refused.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use lectern_app::durable::create_private_folder;

/// What the name of each folder begins with.
const PREFIX: &str = "sess_";

/// The folder that holds the folders. Clones are the same.
#[derive(Clone)]
pub struct Places(Arc<PathBuf>);

impl Places {
    /// Below this folder, which is made when it is needed.
    pub fn new(folder: PathBuf) -> Self {
        Self(Arc::new(folder))
    }

    /// Where a session's folder is.
    pub fn path(&self, digest: &str) -> PathBuf {
        self.0.join(name(digest))
    }

    /// Makes a session's folder, for the user alone.
    pub fn make(&self, digest: &str) -> io::Result<()> {
        create_private_folder(&self.0)?;
        let (all, name) = (self.open()?, name(digest));
        match all.create_dir(&name) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            Ok(()) | Err(_) => {}
        }
        is_folder(&all, &name)
    }

    /// Removes a session's folder. A link in its place is removed, and not what it leads to.
    pub fn remove(&self, digest: &str) -> io::Result<()> {
        let all = match self.open() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            all => all?,
        };
        let name = name(digest);
        let removed = match all.symlink_metadata(&name) {
            Ok(meta) if meta.is_dir() => all.remove_dir_all(&name),
            Ok(_) => all.remove_file(&name),
            Err(error) => Err(error),
        };
        match removed {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }

    /// The digests of all folders that are there.
    pub fn all(&self) -> Vec<String> {
        let Ok(entries) = self.open().and_then(|all| all.entries()) else { return Vec::new() };
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        names.filter_map(|name| name.strip_prefix(PREFIX).map(str::to_owned)).collect()
    }

    /// Whether there are more bytes or more entries than these below a session's folder. Links are not followed.
    pub fn is_beyond(&self, digest: &str, bytes: u64, entries: u64) -> bool {
        let (mut size, mut count) = (0_u64, 0_u64);
        let top = self.open().and_then(|all| {
            is_folder(&all, &name(digest))?;
            all.open_dir(name(digest))
        });
        let mut open: Vec<Dir> = top.into_iter().collect();
        while let Some(folder) = open.pop() {
            for entry in folder.entries().into_iter().flatten().flatten() {
                count += 1;
                let Ok(meta) = entry.metadata() else { continue };
                if meta.is_dir() {
                    open.extend(entry.open_dir());
                } else {
                    size = size.saturating_add(meta.len());
                }
                if size > bytes || count > entries {
                    return true;
                }
            }
        }
        false
    }

    fn open(&self) -> io::Result<Dir> {
        Dir::open_ambient_dir(Path::new(&*self.0), ambient_authority())
    }
}

fn name(digest: &str) -> String {
    format!("{PREFIX}{digest}")
}

fn is_folder(all: &Dir, name: &str) -> io::Result<()> {
    if all.symlink_metadata(name)?.is_dir() {
        return Ok(());
    }
    Err(io::Error::other("something else stands in place of a session's folder"))
}
