//! llama.cpp's backends: for one processor linked in, or libraries of which the best for this machine is chosen.
//!
//! Invariant: libraries are loaded from the application's own places only, never from the working folder or from a
//! path that the environment names. What the application says is to be avoided are names of kinds.

#[cfg(any(feature = "portable-cpu", test))]
mod choice;

use std::sync::OnceLock;

use super::output::Output;

/// Kinds of code for the processor that are not to be loaded, with commas between them.
pub(crate) const AVOID_VARIABLE: &str = "LECTERN_WORKER_AVOID";

/// Folders of the libraries, from the executable's own folder: as the packages lay them out, and beside it.
#[cfg(feature = "portable-cpu")]
const PLACES: [&str; 2] = ["../lib/lectern/backends", "lectern-backends"];

static CHOSEN: OnceLock<String> = OnceLock::new();

/// Loads the libraries, when this build has them, and says before which kind of code it is going to be. To be called
/// before anything else of llama.cpp.
#[cfg(feature = "portable-cpu")]
pub(super) fn load(output: &Output) {
    use crate::native::{load_library, recent_log, score_of};
    use crate::protocol::Event;

    let Some(place) = place() else { return };
    let avoid = std::env::var(AVOID_VARIABLE).unwrap_or_default();
    let avoid: Vec<&str> = avoid.split(',').collect();
    let choice = choice::choose(files_in(&place), &avoid, score_of);
    for other in &choice.others {
        load_library(other);
    }
    // That a driver is not there has nothing to do with what may go wrong later.
    drop(recent_log());
    let Some((kind, library)) = choice.processor else { return };
    // Before it is loaded: an initialiser may be what the processor cannot run.
    output.send(&Event::Code { kind: kind.clone() });
    load_library(&library);
    let _ = CHOSEN.set(kind);
}

/// What is linked in needs no loading.
#[cfg(not(feature = "portable-cpu"))]
pub(super) fn load(_: &Output) {}

#[cfg(feature = "portable-cpu")]
fn place() -> Option<std::path::PathBuf> {
    let executable = std::fs::canonicalize(std::env::current_exe().ok()?).ok()?;
    let folder = executable.parent()?;
    let places = PLACES.iter().map(|place| folder.join(place));
    // Where they were built, for an executable that was not installed.
    places.chain(llama_cpp_sys_2::BACKENDS_DIR.map(Into::into)).find(|place| place.is_dir())
}

/// By name, so that the order of devices stays.
#[cfg(any(feature = "portable-cpu", test))]
fn files_in(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<_> = entries.map(|entry| entry.path()).filter(|path| path.is_file()).collect();
    files.sort();
    files
}

/// The kind of processor that the chosen library is for, e.g. `zen4`; none when it is linked in.
pub(super) fn chosen() -> Option<&'static str> {
    CHOSEN.get().map(String::as_str)
}
