//! Which folders of notes are served, and by which server.
//!
//! Invariant: a vault keeps its server's id for as long as it is in the settings; conversations name tools by it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use lectern_core::ServerId;

use crate::home::Home;
use crate::settings::{Settings, VaultEntry};
use crate::view::{Problem, VaultView};

/// The id of the first vault's server. The starter was trained with it.
const FIRST: &str = "notes";

/// A folder that is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vault {
    /// The folder.
    pub path: PathBuf,
    /// Its server.
    pub server: ServerId,
    /// Whether it is the sample.
    pub sample: bool,
}

/// A folder's address: `file:///home/me/My%20notes`.
pub fn file_uri(path: &Path) -> String {
    let text = path.to_string_lossy().replace('\\', "/");
    let mut uri = if text.starts_with('/') { "file://".to_owned() } else { "file:///".to_owned() };
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/:".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            uri.push_str(&format!("%{byte:02X}"));
        }
    }
    uri
}

impl Vault {
    /// As the shells show it.
    pub fn view(&self) -> VaultView {
        VaultView { path: self.path.display().to_string(), server: self.server.clone(), sample: self.sample }
    }
}

/// The vaults of the settings: the sample first, then the user's own.
pub fn of_settings(home: &Home, settings: &Settings) -> Vec<Vault> {
    let own = settings.vaults.iter().map(|entry| Vault {
        path: entry.path.clone(),
        server: entry.server.clone(),
        sample: false,
    });
    let sample = settings.sample_vault.then(|| Vault {
        path: home.sample_vault(),
        server: sample_id(settings),
        sample: true,
    });
    sample.into_iter().chain(own).collect()
}

/// The vaults that were named for this run only. `taken` are the ids of other servers.
pub fn of_folders(folders: &[PathBuf], mut taken: BTreeSet<String>) -> Result<Vec<Vault>, Problem> {
    let mut vaults: Vec<Vault> = Vec::new();
    for folder in folders {
        let path = folder_of_notes(folder)?;
        if vaults.iter().any(|vault| vault.path == path) {
            continue;
        }
        let server = free_id(&path, &taken);
        taken.insert(server.0.clone());
        vaults.push(Vault { path, server, sample: false });
    }
    Ok(vaults)
}

/// Adds a vault to the settings, or finds it there.
pub fn add(home: &Home, settings: &mut Settings, path: &Path) -> Vault {
    if path == home.sample_vault() {
        settings.sample_vault = true;
        return Vault { path: path.to_owned(), server: sample_id(settings), sample: true };
    }
    if let Some(entry) = settings.vaults.iter().find(|entry| entry.path == path) {
        return Vault { path: entry.path.clone(), server: entry.server.clone(), sample: false };
    }
    let mut taken: BTreeSet<String> = settings.servers.keys().cloned().collect();
    taken.extend(settings.vaults.iter().map(|entry| entry.server.0.clone()));
    if settings.sample_vault {
        taken.insert(sample_id(settings).0);
    }
    let server = free_id(path, &taken);
    let entry = VaultEntry { path: path.to_owned(), server: server.clone(), other: Default::default() };
    settings.vaults.push(entry);
    Vault { path: path.to_owned(), server, sample: false }
}

/// Takes a vault out of the settings; its notes stay.
pub fn remove(home: &Home, settings: &mut Settings, path: &Path) -> bool {
    if path == home.sample_vault() {
        return std::mem::replace(&mut settings.sample_vault, false);
    }
    let before = settings.vaults.len();
    settings.vaults.retain(|entry| entry.path != path);
    settings.vaults.len() < before
}

/// The folder with all its links followed, if it is one.
pub fn folder_of_notes(path: &Path) -> Result<PathBuf, Problem> {
    let problem = |reason: String| {
        Problem::new("bad_vault", format!("{}: {reason}", path.display()))
            .hint("Choose an existing folder of Markdown files.")
    };
    let real = std::fs::canonicalize(path).map_err(|error| problem(reason(&error)))?;
    if !real.is_dir() {
        return Err(problem("not a folder".to_owned()));
    }
    Ok(real)
}

/// An error of the file system without its number.
pub(crate) fn reason(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "no such file or folder".to_owned(),
        std::io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string(),
    }
}

/// The user's own vaults and servers may have taken `notes` while the sample was away.
fn sample_id(settings: &Settings) -> ServerId {
    let taken = |id: &str| {
        settings.servers.contains_key(id) || settings.vaults.iter().any(|entry| entry.server.as_str() == id)
    };
    ServerId::from(if taken(FIRST) { "sample-notes" } else { FIRST })
}

/// `notes`, else the folder's name, else `notes2`, `notes3` and so on.
fn free_id(path: &Path, taken: &BTreeSet<String>) -> ServerId {
    let name = slug(&path.file_name().unwrap_or_default().to_string_lossy());
    let stem = if name.is_empty() { FIRST } else { &name };
    let numbered = (2..).map(|n| format!("{stem}{n}"));
    let mut candidates = [FIRST.to_owned(), stem.to_owned()].into_iter().chain(numbered);
    ServerId(candidates.find(|id| !taken.contains(id)).unwrap_or_default())
}

/// Lower-case ASCII letters, digits and single dashes; at most 24 of them, since tool names begin with it.
pub(crate) fn slug(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        if c.is_ascii_alphanumeric() {
            out.push(c.to_ascii_lowercase());
        } else if !out.is_empty() && !out.ends_with('-') {
            out.push('-');
        }
    }
    out.truncate(24);
    out.trim_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::home::temporary as home;

    #[test]
    fn each_vault_has_its_own_id_and_keeps_it() {
        let (_folder, home) = home();
        let mut settings = Settings::default();
        let ids: Vec<_> = ["/a/My Notes", "/b/My Notes", "/c/笔记", "/d/笔记", "/a/My Notes"]
            .iter()
            .map(|path| add(&home, &mut settings, Path::new(path)).server.0)
            .collect();
        assert_eq!(ids, ["my-notes", "my-notes2", "notes2", "notes3", "my-notes"]);
        assert!(remove(&home, &mut settings, &home.sample_vault()));
        assert_eq!(add(&home, &mut settings, Path::new("/e/Work")).server.0, "notes");
        add(&home, &mut settings, &home.sample_vault());
        let all = of_settings(&home, &settings);
        let distinct: BTreeSet<_> = all.iter().map(|vault| vault.server.clone()).collect();
        assert_eq!(distinct.len(), all.len());
        assert_eq!(all[1].server.0, "my-notes");
    }

    #[test]
    fn a_missing_folder_is_named() {
        let problem = of_folders(&["/no/such/folder".into()], BTreeSet::new()).unwrap_err();
        assert_eq!(problem.message, "/no/such/folder: no such file or folder");
    }
}
