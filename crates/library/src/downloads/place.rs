//! Where a download goes, and what is there already.
//!
//! Invariant: a file that is somebody else's is left alone.

use std::path::{Path, PathBuf};

use super::LOCKS;
use crate::fault::Fault;
use crate::record::{FileRecord, Record, record_path};
use crate::sink::sha256_of_file;

/// The old record with what is known now: a file that is listed differently now is another one.
pub(super) fn continued(old: Record, new: Record) -> Record {
    let files = old.files.iter().zip(&new.files).map(|(old, new)| {
        let same = old.name == new.name
            && (new.sha256.is_none() || old.sha256 == new.sha256)
            && (new.sha256.is_some() || old.url == new.url);
        // An address may be signed anew each time.
        if same { FileRecord { url: new.url.clone(), ..old.clone() } } else { new.clone() }
    });
    Record { files: files.collect(), at: old.at, ..new }
}

/// Where a download goes, and whether it is there already. Another file of its name is left alone: then it goes into a
/// folder named after its source.
pub(super) fn place_for(folder: &Path, record: &Record) -> Result<(PathBuf, bool), Fault> {
    let source: String =
        record.target.trim_start_matches("https://").trim_start_matches("http://").replace('/', "_");
    let beside = folder.join(crate::name::safe_name(&source).trim_end_matches(".gguf"));
    let mut last = Err(std::io::ErrorKind::AlreadyExists.into());
    for place in [folder.to_owned(), beside] {
        let file = place.join(record.name());
        let ours = Record::read(&record_path(&file)).is_some_and(|old| old.target == record.target);
        match is_there(&place, record) {
            Ok(true) => return Ok((file, true)),
            Ok(false) if ours => return Ok((file, false)),
            Ok(false) => {
                let taken = record.files.iter().any(|file| place.join(&file.name).symlink_metadata().is_ok());
                if !taken && !record_path(&file).exists() {
                    return Ok((file, false));
                }
            }
            Err(error) => last = Err(error),
        }
    }
    last.map_err(|error| Fault::file(folder.join(record.name()), error))
}

/// Whether all files are there, the very same as far as can be told.
fn is_there(folder: &Path, record: &Record) -> std::io::Result<bool> {
    for file in &record.files {
        let path = folder.join(&file.name);
        let Ok(meta) = std::fs::metadata(&path) else { return Ok(false) };
        if !meta.is_file() || file.size.is_some_and(|size| size != meta.len()) {
            return Ok(false);
        }
        match &file.sha256 {
            Some(sha256) if *sha256 != sha256_of_file(&path)? => return Ok(false),
            Some(_) => {}
            None if file.size.is_none() => return Ok(false),
            None => {}
        }
    }
    Ok(true)
}

pub(super) fn make_folder(folder: &Path) -> Result<(), Fault> {
    std::fs::create_dir_all(folder).map_err(|error| Fault::file(folder, error))
}

/// The folders in the folder for models, for downloads whose name was taken.
pub(super) fn below(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders.map(|entry| entry.path()).filter(|path| !path.ends_with(LOCKS)).collect()
}
