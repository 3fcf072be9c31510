//! The folder of saved states: names, temporary files, what gives way.
//!
//! Invariant: only files whose names have the shape of a state's are touched.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::{Stored, conversation_digest};

const ENDING: &str = ".kv";
const TEMPORARY: &str = ".part";
/// A temporary file as old as this is nobody's.
const ABANDONED_AFTER: std::time::Duration = std::time::Duration::from_secs(3600);

/// A folder of states.
#[derive(Clone, Debug)]
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// Makes the folder, for the user alone, and removes what dead processes left.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(path)?;
        let folder = Self(path.to_owned());
        folder.sweep();
        Ok(folder)
    }

    /// The path of a file.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The name of a conversation's state; `number` tells its branches apart.
    pub(crate) fn name(conversation: &str, key: &str, number: u64) -> String {
        format!("{}-{key}-{number:016x}{ENDING}", conversation_digest(conversation))
    }

    /// Makes an empty temporary file that only the user can read.
    pub(crate) fn temporary(&self, name: &str) -> io::Result<PathBuf> {
        let path = self.0.join(format!(".{name}.{}{TEMPORARY}", std::process::id()));
        let mut options = fs::OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.open(&path)?;
        Ok(path)
    }

    /// Puts a finished temporary file into its place, and makes that last.
    pub(crate) fn publish(&self, temporary: &Path, name: &str) -> io::Result<()> {
        fs::rename(temporary, self.path(name))?;
        // Not every file system can; the file is whole either way.
        if let Ok(folder) = fs::File::open(&self.0) {
            let _ = folder.sync_all();
        }
        Ok(())
    }

    /// The names of the states of a model, by its key.
    pub(crate) fn names(&self, key: &str) -> Vec<String> {
        let middle = format!("-{key}-");
        self.states().into_iter().map(|state| state.name).filter(|name| name.contains(&middle)).collect()
    }

    /// Deletes the oldest states until the rest fits; gives the names of those that went.
    pub(crate) fn fit(&self, bytes: u64) -> Vec<String> {
        let mut states = self.states();
        states.sort_by_key(|state| state.changed);
        let mut total: u64 = states.iter().map(|state| state.bytes).sum();
        let mut gone = Vec::new();
        for state in states {
            if total <= bytes {
                break;
            }
            if fs::remove_file(self.path(&state.name)).is_ok() {
                total -= state.bytes;
                gone.push(state.name);
            }
        }
        gone
    }

    /// Marks a state as used now.
    pub(crate) fn touch(&self, name: &str) {
        if let Ok(file) = fs::File::options().append(true).open(self.path(name)) {
            let _ = file.set_modified(SystemTime::now());
        }
    }

    /// Deletes a state.
    pub(crate) fn delete(&self, name: &str) {
        let _ = fs::remove_file(self.path(name));
    }

    fn states(&self) -> Vec<State> {
        let Ok(entries) = fs::read_dir(&self.0) else { return Vec::new() };
        let state = |entry: fs::DirEntry| {
            let name = entry.file_name().into_string().ok().filter(|name| is_state(name))?;
            let meta = entry.metadata().ok().filter(fs::Metadata::is_file)?;
            Some(State { name, bytes: meta.len(), changed: meta.modified().ok() })
        };
        entries.filter_map(Result::ok).filter_map(state).collect()
    }

    /// Removes temporary files whose process is gone.
    fn sweep(&self) {
        let Ok(entries) = fs::read_dir(&self.0) else { return };
        for entry in entries.filter_map(Result::ok) {
            let name = entry.file_name();
            let Some(process) = name.to_str().and_then(process_of) else { continue };
            let old = entry.metadata().and_then(|meta| meta.modified()).ok();
            let old = old.and_then(|time| time.elapsed().ok()).is_some_and(|age| age > ABANDONED_AFTER);
            let gone = cfg!(target_os = "linux") && !Path::new(&format!("/proc/{process}")).exists();
            if old || gone {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

struct State {
    name: String,
    bytes: u64,
    changed: Option<SystemTime>,
}

/// How much is in a folder of states.
pub(super) fn stored(folder: &Path) -> Stored {
    let states = Folder(folder.to_owned()).states();
    let bytes = states.iter().map(|state| state.bytes).sum();
    let of = |state: &State| state.name.split('-').next().map(str::to_owned);
    let conversations: BTreeSet<_> = states.iter().filter_map(of).collect();
    Stored { bytes, conversations: conversations.len() }
}

/// Removes the temporary files of a process that has ended.
pub(crate) fn sweep_process(folder: &Path, process: u32) {
    let _ = remove_if(folder, |name| process_of(name) == Some(process));
}

/// Removes states with such names, and temporary files.
pub(super) fn remove(folder: &Path, wanted: impl Fn(&str) -> bool) -> io::Result<()> {
    remove_if(folder, |name| {
        let state = name.strip_prefix('.').unwrap_or(name);
        (is_state(name) || process_of(name).is_some()) && wanted(state)
    })
}

fn remove_if(folder: &Path, wanted: impl Fn(&str) -> bool) -> io::Result<()> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    for entry in entries.filter_map(Result::ok) {
        if entry.file_name().to_str().is_some_and(&wanted) {
            match fs::remove_file(entry.path()) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                Ok(()) | Err(_) => {}
            }
        }
    }
    Ok(())
}

fn is_state(name: &str) -> bool {
    let Some(stem) = name.strip_suffix(ENDING) else { return false };
    let parts: Vec<&str> = stem.split('-').collect();
    let hex = |part: &&str, length| part.len() == length && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    matches!(&parts[..], [conversation, key, number]
        if hex(conversation, 32) && hex(key, 32) && hex(number, 16))
}

/// The process that writes a temporary file.
fn process_of(name: &str) -> Option<u32> {
    let (state, process) = name.strip_prefix('.')?.strip_suffix(TEMPORARY)?.rsplit_once('.')?;
    if is_state(state) { process.parse().ok() } else { None }
}

/// Bytes as text.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{forget_conversation, forget_everything};
    use super::*;

    const KEY: &str = "0123456789abcdef0123456789abcdef";

    fn make(folder: &Folder, conversation: &str, number: u64) -> String {
        let name = Folder::name(conversation, KEY, number);
        let temporary = folder.temporary(&name).unwrap();
        fs::write(&temporary, [0; 100]).unwrap();
        folder.publish(&temporary, &name).unwrap();
        name
    }

    #[test]
    fn a_deleted_conversation_leaves_nothing_and_others_stay() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::open(&place.path().join("kv")).unwrap();
        make(&folder, "a", 1);
        make(&folder, "a", 2);
        let kept = make(&folder, "b", 1);
        fs::write(folder.path("note.md"), "not a state").unwrap();
        forget_conversation(&folder.0, "a").unwrap();
        assert_eq!(folder.names(KEY), [kept]);
        forget_everything(&folder.0).unwrap();
        assert!(folder.names(KEY).is_empty());
        assert!(folder.path("note.md").exists());
        forget_everything(&place.path().join("missing")).unwrap();
    }

    #[test]
    fn a_deleted_model_leaves_nothing_and_others_stay() {
        let place = tempfile::tempdir().unwrap();
        let model = place.path().join("m.gguf");
        fs::write(&model, "a model").unwrap();
        let digest = super::super::file_digest(&model);
        let folder = Folder::open(&place.path().join("kv")).unwrap();
        let of = |conversation: &str, rest: &str| {
            let name = Folder::name(conversation, &format!("{digest}{rest}"), 1);
            fs::rename(folder.path(&make(&folder, conversation, 9)), folder.path(&name)).unwrap();
        };
        of("a", "0123456789abcdef");
        of("b", "fedcba9876543210");
        let kept = make(&folder, "a", 1);
        assert_eq!(stored(&folder.0), Stored { bytes: 300, conversations: 2 });
        let moved = place.path().join("moved");
        fs::rename(&model, &moved).unwrap();
        super::super::forget_file(&folder.0, &super::super::file_digest(&moved)).unwrap();
        assert_eq!(folder.states().len(), 1);
        assert_eq!(folder.names(KEY), [kept]);
        assert_eq!(stored(&place.path().join("missing")), Stored::default());
    }

    #[test]
    fn the_oldest_gives_way() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::open(place.path()).unwrap();
        let (old, new) = (make(&folder, "a", 1), make(&folder, "b", 1));
        let an_hour = std::time::Duration::from_secs(3600);
        let file = fs::File::options().append(true).open(folder.path(&old)).unwrap();
        file.set_modified(SystemTime::now() - an_hour).unwrap();
        assert_eq!(folder.fit(150), [old]);
        assert_eq!(folder.names(KEY), [new]);
    }

    #[cfg(unix)]
    #[test]
    fn only_the_user_reads_them() {
        use std::os::unix::fs::PermissionsExt;

        let place = tempfile::tempdir().unwrap();
        let folder = Folder::open(&place.path().join("kv")).unwrap();
        let name = make(&folder, "a", 1);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&folder.0), mode(&folder.path(&name))), (0o700, 0o600));
    }

    #[test]
    fn a_dead_process_leaves_no_temporary_file() {
        let place = tempfile::tempdir().unwrap();
        let name = Folder::name("a", KEY, 1);
        let left = place.path().join(format!(".{name}.4000000{TEMPORARY}"));
        fs::write(&left, "half").unwrap();
        sweep_process(place.path(), 3_999_999);
        assert!(left.exists());
        sweep_process(place.path(), 4_000_000);
        assert!(!left.exists());
    }
}
