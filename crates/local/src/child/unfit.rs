//! Kinds of code for processors that this one says it can run and cannot: machines below machines report instructions
//! that then are illegal.
//!
//! Invariant: names of kinds only, never a path. What is kept in a file holds for one processor and one version.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

/// The kinds that no worker is to run any more. Clones are the same list.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unfit(Arc<Mutex<List>>);

// A std mutex: nothing awaits while it is held.
#[derive(Debug, Default)]
struct List {
    kinds: BTreeSet<String>,
    file: Option<PathBuf>,
}

/// What the file holds.
#[derive(Serialize, Deserialize)]
struct Kept {
    machine: String,
    kinds: BTreeSet<String>,
}

impl Unfit {
    /// What was kept in this file, and the place for what is found out.
    pub(crate) fn kept_in(file: PathBuf) -> Self {
        let kinds = read(&file).unwrap_or_default();
        Self(Arc::new(Mutex::new(List { kinds, file: Some(file) })))
    }

    /// The kinds.
    pub(crate) fn kinds(&self) -> BTreeSet<String> {
        self.list().kinds.clone()
    }

    /// The processor cannot run this one.
    pub(crate) fn add(&self, kind: &str) {
        let mut list = self.list();
        if list.kinds.insert(kind.to_owned())
            && let Some(file) = &list.file
            && let Err(error) = write(file, &list.kinds)
        {
            tracing::warn!(%error, kind, "what the processor cannot run is not remembered");
        }
    }

    fn list(&self) -> MutexGuard<'_, List> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a process ended with an instruction that the processor does not have.
pub(super) fn is_illegal_instruction(status: ExitStatus) -> bool {
    #[cfg(unix)]
    let illegal = std::os::unix::process::ExitStatusExt::signal(&status) == Some(libc::SIGILL);
    #[cfg(not(unix))]
    let illegal = status.code().map(i32::cast_unsigned) == Some(0xC000_001D);
    illegal
}

fn read(file: &Path) -> Option<BTreeSet<String>> {
    let kept: Kept = serde_json::from_slice(&std::fs::read(file).ok()?).ok()?;
    (kept.machine == machine()).then_some(kept.kinds)
}

fn write(file: &Path, kinds: &BTreeSet<String>) -> std::io::Result<()> {
    let kept = Kept { machine: machine(), kinds: kinds.clone() };
    // One that is cut is not read, and found out anew.
    std::fs::write(file, serde_json::to_vec(&kept)?)
}

/// The processor, as far as the system names it, and this version, whose libraries may be other ones.
fn machine() -> String {
    let processors = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = processors.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    format!("{} {}", name.map_or("", |(_, name)| name), env!("CARGO_PKG_VERSION"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn what_one_finds_out_all_know_also_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("unfit.json");
        let unfit = Unfit::kept_in(file.clone());
        unfit.clone().add("zen4");
        unfit.add("haswell");
        assert_eq!(unfit.kinds(), kinds(&["haswell", "zen4"]));
        assert_eq!(Unfit::kept_in(file).kinds(), kinds(&["haswell", "zen4"]));
    }

    #[test]
    fn another_machine_or_version_and_a_damaged_file_start_anew() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("unfit.json");
        Unfit::kept_in(file.clone()).add("zen4");
        let whole = std::fs::read_to_string(&file).unwrap();
        let other = whole.replace(env!("CARGO_PKG_VERSION"), "0.0.0-other");
        for text in [other.as_str(), &whole[..whole.len() / 2], ""] {
            std::fs::write(&file, text).unwrap();
            assert_eq!(Unfit::kept_in(file.clone()).kinds(), kinds(&[]), "{text}");
        }
    }
}
