//! Files that were deleted and can come back for a day.
//!
//! They stay on their file system, in a folder beside the models, so that deleting and restoring are renames.
//! Invariant: a token names a folder of ours and nothing else; nothing outside of the trash is ever purged.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How long something can come back.
pub const KEPT: Duration = Duration::from_secs(24 * 60 * 60);
const NOTE: &str = "removed.json";

/// What was removed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Removed {
    /// Brings it back.
    pub token: String,
    /// Where its files were; empty when none were deleted.
    pub files: Vec<PathBuf>,
    /// When.
    pub at: Timestamp,
    /// What else the one who removed it wants to know later.
    pub note: Value,
}

/// Why something did not come back.
#[derive(Debug, thiserror::Error)]
pub enum TrashError {
    /// There is no such thing, or it is purged.
    #[error("nothing that was removed has the token `{0}`")]
    Unknown(String),
    /// Another file is there now.
    #[error("{} is there again", .0.display())]
    Taken(PathBuf),
    /// A file could not be moved.
    #[error("move {}", .0.display())]
    Move(PathBuf, #[source] io::Error),
}

/// The folder of what was removed.
#[derive(Clone, Debug)]
pub struct Trash(PathBuf);

impl Trash {
    /// In this folder, which need not be there.
    pub fn new(folder: PathBuf) -> Self {
        Self(folder)
    }

    /// Takes files away. Either all are gone afterwards or all are where they were.
    pub fn put(&self, files: &[PathBuf], note: Value) -> Result<Removed, TrashError> {
        let at = Timestamp::now();
        let folder = self.fresh(at)?;
        let token = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let removed = Removed { token, files: files.to_vec(), at, note };
        let path = folder.join(NOTE);
        let text = serde_json::to_vec_pretty(&removed).unwrap_or_default();
        fs::write(&path, text).map_err(|error| TrashError::Move(path, error))?;
        for (number, file) in files.iter().enumerate() {
            if let Err(error) = fs::rename(file, folder.join(number.to_string())) {
                for (number, file) in files.iter().enumerate().take(number) {
                    let _ = fs::rename(folder.join(number.to_string()), file);
                }
                let _ = fs::remove_dir_all(&folder);
                return Err(TrashError::Move(file.clone(), error));
            }
        }
        Ok(removed)
    }

    /// Brings everything of a token back to its place.
    pub fn restore(&self, token: &str) -> Result<Removed, TrashError> {
        let (folder, removed) = self.find(token)?;
        if let Some(taken) = removed.files.iter().find(|file| file.symlink_metadata().is_ok()) {
            return Err(TrashError::Taken(taken.clone()));
        }
        for (number, file) in removed.files.iter().enumerate() {
            let from = folder.join(number.to_string());
            let moved =
                file.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::rename(&from, file));
            moved.map_err(|error| TrashError::Move(file.clone(), error))?;
        }
        let _ = fs::remove_dir_all(folder);
        Ok(removed)
    }

    /// What can come back, the newest first.
    pub fn list(&self) -> Vec<Removed> {
        let entries = fs::read_dir(&self.0).into_iter().flatten().flatten();
        let tokens = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut all: Vec<Removed> =
            tokens.filter_map(|token| self.find(&token).ok()).map(|(_, removed)| removed).collect();
        all.sort_by_key(|removed| std::cmp::Reverse(removed.at));
        all
    }

    /// Deletes for good what has been here for a day, and says what that was. A clock that was set back keeps things
    /// longer, never shorter.
    pub fn purge(&self, now: Timestamp) -> Vec<Removed> {
        let kept = SignedDuration::try_from(KEPT).unwrap_or(SignedDuration::ZERO);
        let due = |removed: &Removed| now.duration_since(removed.at) >= kept;
        let gone = |removed: &Removed| fs::remove_dir_all(self.0.join(&removed.token)).is_ok();
        // What can't be deleted now is due the next time, too.
        self.list().into_iter().filter(due).filter(gone).collect()
    }

    fn find(&self, token: &str) -> Result<(PathBuf, Removed), TrashError> {
        let unknown = || TrashError::Unknown(token.chars().take(80).collect());
        let ours =
            !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        if !ours {
            return Err(unknown());
        }
        let folder = self.0.join(token);
        let text = fs::read(folder.join(NOTE)).map_err(|_| unknown())?;
        let removed: Removed = serde_json::from_slice(&text).map_err(|_| unknown())?;
        if removed.token == token { Ok((folder, removed)) } else { Err(unknown()) }
    }

    /// A folder that nobody else has.
    fn fresh(&self, at: Timestamp) -> Result<PathBuf, TrashError> {
        fs::create_dir_all(&self.0).map_err(|error| TrashError::Move(self.0.clone(), error))?;
        for number in 0..1000 {
            let folder = self.0.join(format!("{}-{number}", at.as_millisecond()));
            match fs::create_dir(&folder) {
                Ok(()) => return Ok(folder),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(TrashError::Move(folder, error)),
            }
        }
        Err(TrashError::Move(self.0.clone(), io::ErrorKind::AlreadyExists.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_removed_comes_back_and_is_purged_after_a_day() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("m.gguf");
        fs::write(&file, "model").unwrap();
        let trash = Trash::new(folder.path().join(".trash"));
        let removed = trash.put(std::slice::from_ref(&file), serde_json::json!({"id": "m"})).unwrap();
        assert!(!file.exists());
        fs::write(&file, "another").unwrap();
        assert!(matches!(trash.restore(&removed.token), Err(TrashError::Taken(_))));
        fs::remove_file(&file).unwrap();
        assert_eq!(trash.restore(&removed.token).unwrap().note["id"], "m");
        assert_eq!(fs::read(&file).unwrap(), b"model");
        let removed = trash.put(std::slice::from_ref(&file), Value::Null).unwrap();
        assert_eq!(trash.purge(removed.at), []);
        assert_eq!(trash.purge(removed.at - SignedDuration::from_hours(48)), [], "a clock that was set back");
        assert_eq!(trash.purge(removed.at + SignedDuration::from_hours(24)), std::slice::from_ref(&removed));
        assert!(matches!(trash.restore(&removed.token), Err(TrashError::Unknown(_))));
    }

    #[test]
    fn a_token_is_no_way_out_of_the_trash() {
        let folder = tempfile::tempdir().unwrap();
        let trash = Trash::new(folder.path().join(".trash"));
        for token in ["", "..", "../x", "a/b", "nothing"] {
            assert!(matches!(trash.restore(token), Err(TrashError::Unknown(_))), "{token}");
        }
    }

    #[test]
    fn when_one_file_can_not_go_none_goes() {
        let folder = tempfile::tempdir().unwrap();
        let (there, gone) = (folder.path().join("a.gguf"), folder.path().join("b.gguf"));
        fs::write(&there, "a").unwrap();
        let trash = Trash::new(folder.path().join(".trash"));
        assert!(trash.put(&[there.clone(), gone], Value::Null).is_err());
        assert!(there.exists() && trash.list().is_empty());
    }
}
