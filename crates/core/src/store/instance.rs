//! Tells whether the process that began a turn still lives, by a file that it holds locked.
//!
//! Invariant: a turn of a living process is never taken for interrupted, whatever the process ids and clocks say.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

/// This open store, as other processes see it.
pub(super) struct Instance {
    id: String,
    folder: Option<PathBuf>,
    // Held locked for as long as the store is open; the system lets go when the process dies.
    lock: Option<File>,
}

impl Instance {
    /// For a store that no one else can open.
    pub fn alone() -> Self {
        Self { id: fresh_id(), folder: None, lock: None }
    }

    /// Locks a file of our own beside the database. Where locks don't work, other processes take our running turns
    /// for interrupted; nothing worse.
    pub fn register(database: &Path) -> Self {
        let mut folder = database.as_os_str().to_owned();
        folder.push("-open");
        let folder = PathBuf::from(folder);
        let id = fresh_id();
        let lock = lock_file(&folder, &id)
            .inspect_err(|error| tracing::warn!(%error, "no lock beside the conversations"))
            .ok();
        let instance = Self { id, folder: Some(folder), lock };
        instance.sweep();
        instance
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    /// Whether the store that has this id is still open somewhere.
    pub fn lives(&self, id: &str) -> bool {
        if id == self.id {
            return true;
        }
        let Some(path) = self.folder.as_ref().map(|folder| folder.join(id)) else { return false };
        match File::open(path).map(|file| file.try_lock()) {
            Ok(Err(TryLockError::WouldBlock)) => true,
            Ok(Ok(()) | Err(TryLockError::Error(_))) | Err(_) => false,
        }
    }

    /// Removes the files of the dead.
    fn sweep(&self) {
        let entries = self.folder.as_ref().and_then(|folder| fs::read_dir(folder).ok());
        for entry in entries.into_iter().flatten().flatten() {
            let name = entry.file_name();
            if let Some(id) = name.to_str()
                && !self.lives(id)
            {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        if let (Some(folder), Some(_)) = (&self.folder, &self.lock) {
            let _ = fs::remove_file(folder.join(&self.id));
        }
    }
}

fn lock_file(folder: &Path, id: &str) -> std::io::Result<File> {
    fs::create_dir_all(folder)?;
    let path = folder.join(id);
    // Another process may sweep the file away between its making and its locking.
    for _ in 0..10 {
        let file = File::create(&path)?;
        file.lock()?;
        if path.exists() {
            return Ok(file);
        }
    }
    Err(std::io::Error::other("the lock file vanishes"))
}

fn fresh_id() -> String {
    uuid::Uuid::new_v4().to_string()
}
