//! The starter model: a few megabytes, embedded, so that the first answer needs no download.
//!
//! Invariant: llama.cpp only gets to see a file whose bytes are the embedded ones.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use lectern_core::ModelInfo;
use sha2::{Digest, Sha256};

use crate::durable;
use crate::home::Home;
use crate::view::Problem;

/// The id of the starter in the model list.
pub const STARTER_ID: &str = "starter";

static WEIGHTS: &[u8] = include_bytes!("../../../models/starter/starter.gguf");

/// What the starter's file calls itself. Other weights of it, chosen as a file, are used in the same way.
pub const STARTER_NAME: &str = "Lectern Starter";

/// Whether a model is the starter, built in or not.
pub fn is_starter(info: &ModelInfo) -> bool {
    info.name == STARTER_NAME
}

/// Size of the starter in bytes.
pub fn size() -> u64 {
    WEIGHTS.len() as u64
}

/// Puts the starter into the home as a file and says where it is. A file of other content is replaced.
pub fn install(home: &Home) -> Result<PathBuf, Problem> {
    let path = home.models().join(format!("starter-{}.gguf", &checksum(WEIGHTS)[..12]));
    if fs::read(&path).is_ok_and(|bytes| bytes == WEIGHTS) {
        return Ok(path);
    }
    let written =
        durable::create_private_folder(&home.models()).and_then(|()| durable::write(&path, WEIGHTS));
    written.map_err(|error| {
        Problem::new("starter_not_written", format!("write the starter model to {}: {error}", path.display()))
            .hint("Check that the disk has room and that the folder can be written.")
    })?;
    remove_older(home, &path);
    Ok(path)
}

/// Starters of earlier versions are of no use any more. A process that still has one open keeps it.
fn remove_older(home: &Home, current: &std::path::Path) {
    let Ok(entries) = fs::read_dir(home.models()) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.starts_with("starter-") && name.ends_with(".gguf") && path != current {
            let _ = fs::remove_file(path);
        }
    }
}

fn checksum(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_copy_is_mended_and_an_older_one_goes() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::open(Some(folder.path())).unwrap();
        let path = install(&home).unwrap();
        fs::write(&path, &WEIGHTS[..1000]).unwrap();
        let older = home.models().join("starter-000000000000.gguf");
        fs::write(&older, "old").unwrap();
        assert_eq!(install(&home).unwrap(), path);
        assert_eq!(fs::read(&path).unwrap(), WEIGHTS);
        assert!(!older.exists());
    }
}
