//! llama.cpp's backends: for one processor linked in, or libraries of which the best for this machine is chosen.
//!
//! Invariant: libraries are loaded from the application's own places only, never from the working folder or from a
//! path that the environment names.

#[cfg(feature = "portable-cpu")]
use std::path::{Path, PathBuf};

/// Folders of the libraries, from the executable's own folder: as the packages lay them out, and beside it.
#[cfg(feature = "portable-cpu")]
const PLACES: [&str; 2] = ["../lib/lectern/backends", "lectern-backends"];

/// Loads the libraries, when this build has them. To be called before anything else of llama.cpp.
#[cfg(feature = "portable-cpu")]
pub(super) fn load() {
    use llama_cpp_2::llama_backend::{load_backends, load_backends_from_path};
    match place() {
        Some(place) if place.to_str().is_some() => load_backends_from_path(&place),
        // Where they were built, for an executable that was not installed.
        Some(_) | None => load_backends(),
    }
}

/// What is linked in needs no loading.
#[cfg(not(feature = "portable-cpu"))]
pub(super) fn load() {}

#[cfg(feature = "portable-cpu")]
fn place() -> Option<PathBuf> {
    let executable = std::env::current_exe().ok()?;
    let folder = std::fs::canonicalize(executable).ok()?.parent().map(Path::to_owned)?;
    PLACES.iter().map(|place| folder.join(place)).find(|place| place.is_dir())
}

/// The kind of processor that the chosen library is for, e.g. `zen4`; none when it is linked in.
pub(super) fn chosen() -> Option<String> {
    kind_in(&std::fs::read_to_string("/proc/self/maps").ok()?)
}

fn kind_in(maps: &str) -> Option<String> {
    let name = maps.lines().find_map(|line| line.rsplit('/').next()?.strip_prefix("libggml-cpu-"))?;
    Some(name.split('.').next()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::kind_in;

    #[test]
    fn the_kind_is_that_of_the_mapped_library() {
        let maps = "7f00-7f01 r-xp 00000000 fe:01 9 /usr/lib/lectern/libllama.so.0\n\
                    7f02-7f03 r-xp 00000000 fe:01 7 /usr/lib/lectern/backends/libggml-cpu-icelake.so\n";
        assert_eq!(kind_in(maps).as_deref(), Some("icelake"));
        assert_eq!(kind_in("7f00-7f01 r-xp 00000000 fe:01 9 /usr/bin/lectern\n"), None);
    }
}
