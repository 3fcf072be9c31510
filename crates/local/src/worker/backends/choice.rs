//! Which of the libraries are to be loaded.
//!
//! Invariant: pure but for the scores, which the caller asks for.

use std::path::{Path, PathBuf};

/// What the names of llama.cpp's libraries begin and end with.
const PREFIX: &str = if cfg!(windows) { "ggml-" } else { "libggml-" };
const SUFFIX: &str = if cfg!(windows) { ".dll" } else { ".so" };

/// The libraries of a folder.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Choice {
    /// All that are not for the processor.
    pub(super) others: Vec<PathBuf>,
    /// The best for the processor, and its kind of code.
    pub(super) processor: Option<(String, PathBuf)>,
}

/// Chooses: for the processor the one with the highest score that is not to be avoided. When none is left, the best of
/// all, whose death says what is the matter.
pub(super) fn choose(files: Vec<PathBuf>, avoid: &[&str], score: impl Fn(&Path) -> i32) -> Choice {
    let mut choice = Choice::default();
    let mut best = (false, 0);
    for path in files {
        let Some(name) = library_name(&path).map(str::to_owned) else { continue };
        let Some(kind) = name.strip_prefix("cpu") else {
            choice.others.push(path);
            continue;
        };
        // A library for no kind in particular has no score, and is for where nothing else fits.
        let (kind, score) = match kind.strip_prefix('-') {
            Some(kind) => (kind, score(&path)),
            None => ("any", 1),
        };
        let rank = (!avoid.contains(&kind), score);
        if score > 0 && rank > best {
            best = rank;
            choice.processor = Some((kind.to_owned(), path));
        }
    }
    choice
}

fn library_name(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()?.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 8] = [
        "blas",
        "cpu-haswell",
        "cpu-icelake",
        "cpu-sapphirerapids",
        "cpu-x64",
        "cpu-zen4",
        "vulkan",
        "cpu-armv8.2_1",
    ];

    /// A folder of libraries as a package has them, of which this processor says that it can run four.
    fn chosen(avoid: &[&str]) -> (Choice, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        for name in NAMES {
            std::fs::write(folder.path().join(format!("{PREFIX}{name}{SUFFIX}")), "").unwrap();
        }
        std::fs::write(folder.path().join("notes.txt"), "").unwrap();
        let choice = choose(super::super::files_in(folder.path()), avoid, |path| {
            match library_name(path).and_then(|name| name.strip_prefix("cpu-")).unwrap() {
                "sapphirerapids" => 900,
                "icelake" => 600,
                "haswell" => 60,
                "x64" => 1,
                _ => 0,
            }
        });
        (choice, folder)
    }

    fn kind(avoid: &[&str]) -> String {
        chosen(avoid).0.processor.unwrap().0
    }

    #[test]
    fn the_best_is_chosen_that_is_not_to_be_avoided() {
        assert_eq!(kind(&[]), "sapphirerapids");
        assert_eq!(kind(&["sapphirerapids"]), "icelake");
        assert_eq!(kind(&["sapphirerapids", "icelake"]), "haswell");
        assert_eq!(kind(&["haswell", "no such kind", ""]), "sapphirerapids");
    }

    #[test]
    fn when_all_are_to_be_avoided_it_is_as_if_none_were() {
        assert_eq!(kind(&["haswell", "icelake", "sapphirerapids", "x64"]), "sapphirerapids");
    }

    #[test]
    fn others_are_loaded_whatever_is_avoided() {
        for avoid in [&[][..], &["sapphirerapids", "vulkan", "blas"]] {
            let (choice, folder) = chosen(avoid);
            let at = |name| folder.path().join(format!("{PREFIX}{name}{SUFFIX}"));
            assert_eq!(choice.others, [at("blas"), at("vulkan")]);
        }
    }

    #[test]
    fn a_library_for_any_processor_comes_last() {
        let files = || ["cpu", "cpu-zen4"].map(|name| format!("{PREFIX}{name}{SUFFIX}").into()).to_vec();
        let kind = |avoid, score| choose(files(), avoid, |_| score).processor.map(|(kind, _)| kind);
        assert_eq!(kind(&[], 60).as_deref(), Some("zen4"));
        assert_eq!(kind(&["zen4"], 60).as_deref(), Some("any"));
        assert_eq!(kind(&[], 0).as_deref(), Some("any"));
    }
}
