//! Bundles on their way into the home.
//!
//! Invariant: a bundle's folder holds the whole of one version or is not there; it goes when no server of the settings
//! mentions it any more.

use std::fs;
use std::path::{Path, PathBuf};

use lectern_mcp::ImportedServers;
use lectern_mcp::bundle::{Bundle, BundleError};
use sha2::{Digest, Sha256};

use crate::durable;
use crate::engine::changed_since_shown;
use crate::home::Home;
use crate::problem::chain;
use crate::settings::Settings;
use crate::vaults::slug;
use crate::view::Problem;

/// A bundle, and the folder that it will have.
pub(super) struct Bundled {
    bundle: Bundle,
    folder: PathBuf,
}

impl Bundled {
    /// Reads a bundle; nothing is unpacked.
    pub(super) fn open(home: &Home, path: &Path) -> Result<(Self, ImportedServers), Problem> {
        let problem = |error: BundleError| of_bundle(path, &error);
        let bundle = Bundle::open(path).map_err(problem)?;
        let folder = home.bundles().join(folder_name(bundle.name()));
        let own = etcetera::home_dir().map_err(|error| Problem::new("no_home", error.to_string()))?;
        let read = bundle.server(&folder, &own).map_err(problem)?;
        Ok((Self { bundle, folder }, read))
    }

    /// Unpacks it, in place of another version, unless it turns out to be another one than it was: `same` is asked when
    /// all of it was read.
    pub(super) fn unpack(&self, path: &Path, same: impl FnOnce() -> bool) -> Result<(), Problem> {
        let failed = |error: std::io::Error| of_bundle(path, &error.into());
        let beside = |end: &str| {
            let mut name = self.folder.file_name().unwrap_or_default().to_owned();
            name.push(end);
            self.folder.with_file_name(name)
        };
        let (new, old) = (beside(".new"), beside(".old"));
        for folder in [&new, &old] {
            remove(folder).map_err(failed)?;
        }
        durable::create_private_folder(&new).map_err(failed)?;
        if let Err(error) = self.bundle.unpack(&new) {
            // What was unpacked until then is of no use; the reason is what counts.
            let _ = remove(&new);
            return Err(of_bundle(path, &error));
        }
        if !same() {
            let _ = remove(&new);
            return Err(changed_since_shown());
        }
        if self.folder.exists() {
            fs::rename(&self.folder, &old).map_err(failed)?;
        }
        fs::rename(&new, &self.folder).map_err(failed)?;
        // A file of it may still be in use on Windows; the next version tries again.
        let _ = remove(&old);
        Ok(())
    }
}

/// Deletes the folders of bundles that no server runs any more.
pub(super) fn forget_unused(home: &Home, settings: &Settings) {
    let Ok(folders) = fs::read_dir(home.bundles()) else { return };
    let servers = serde_json::Value::Object(settings.servers.clone());
    for folder in folders.flatten().map(|entry| entry.path()) {
        if !mentions(&servers, &folder.display().to_string()) {
            let _ = remove(&folder);
        }
    }
}

fn mentions(value: &serde_json::Value, path: &str) -> bool {
    use serde_json::Value;
    match value {
        Value::String(text) => text.contains(path),
        Value::Array(items) => items.iter().any(|item| mentions(item, path)),
        Value::Object(fields) => fields.values().any(|field| mentions(field, path)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

fn remove(folder: &Path) -> std::io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// The bundle's name as a folder's; two names never share one.
fn folder_name(name: &str) -> String {
    let short = slug(name);
    if short == name {
        return short;
    }
    let hash: String =
        Sha256::digest(name.as_bytes()).iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    if short.is_empty() { hash } else { format!("{short}-{hash}") }
}

fn of_bundle(path: &Path, error: &BundleError) -> Problem {
    Problem::new("bad_import", format!("{}: {}", path.display(), chain(error)))
}
