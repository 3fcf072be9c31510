//! The sample vault: embedded, copied into the home once, the user's from then on.
//!
//! Invariant: a file that is already there is never written, whoever made it.

use std::fs;
use std::io;
use std::path::Path;

use crate::durable;
use crate::home::Home;
use crate::view::Problem;

/// Path inside the vault and content of each note.
static NOTES: &[(&str, &[u8])] = &include!(concat!(env!("OUT_DIR"), "/sample_vault.rs"));

/// Raised when notes are added, so that homes of earlier versions get them.
const VERSION: &str = "1";

/// Copies the notes into the home if that has not happened yet.
pub fn install(home: &Home) -> Result<(), Problem> {
    let mark = home.sample_vault_mark();
    if fs::read_to_string(&mark).is_ok_and(|version| version.trim() == VERSION) {
        return Ok(());
    }
    let copied = copy(&home.sample_vault()).and_then(|()| durable::write(&mark, VERSION.as_bytes()));
    copied.map_err(|error| {
        Problem::new(
            "no_sample_vault",
            format!("copy the sample notes to {}: {error}", home.sample_vault().display()),
        )
        .hint("Check that the disk has room and that the folder can be written.")
    })
}

fn copy(vault: &Path) -> io::Result<()> {
    for (inside, bytes) in NOTES {
        let path = vault.join(inside);
        if path.symlink_metadata().is_ok() {
            continue;
        }
        if let Some(folder) = path.parent() {
            durable::create_private_folder(folder)?;
        }
        durable::write(&path, bytes)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_copied_once_and_never_over_the_users() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::open(Some(folder.path())).unwrap();
        let mine = home.sample_vault().join("Recipes/Rye sourdough.md");
        fs::create_dir_all(mine.parent().unwrap()).unwrap();
        fs::write(&mine, "mine").unwrap();
        install(&home).unwrap();
        assert_eq!(fs::read_to_string(&mine).unwrap(), "mine");
        let other = home.sample_vault().join("菜谱/酸辣汤.md");
        assert!(other.exists());
        fs::remove_file(&other).unwrap();
        install(&home).unwrap();
        assert!(!other.exists(), "a note that the user deleted came back");
    }
}
