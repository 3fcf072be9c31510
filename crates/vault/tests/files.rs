//! The files of a vault: nothing outside is reached, nothing is overwritten, every spelling is understood.
//! Invariant: each test makes its own folder; secrets lie beside it, and no answer may hold them.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;
use std::time::Duration;

use lectern_vault::notes::{Notes, NotesError, Part};
use lectern_vault::path::NotePath;
use lectern_vault::vault::Vault;
use tempfile::TempDir;

mod support;
use support::write;

const SECRET: &str = "the secret is 4711";

/// A vault `notes` with a secret beside it.
fn vault() -> (TempDir, Notes) {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "secret.md", SECRET);
    write(
        folder.path(),
        "notes/Recipes/Rye bread.md",
        "# Rye bread\n\nFlour.\n\n## Steps\n\n1. Mix\n2. Bake\n\n## Notes\n\nGood.\n",
    );
    write(folder.path(), "notes/Journal/Été à Brest.md", "# Été à Brest\n\nPluie.\n");
    write(folder.path(), "notes/a/b/c/d/e/Deep.md", "deep down\n");
    write(folder.path(), "notes/.obsidian/plugins.md", SECRET);
    write(folder.path(), "notes/.hidden.md", SECRET);
    write(folder.path(), "notes/picture.png", SECRET);
    let notes = open(&folder);
    (folder, notes)
}

fn open(folder: &TempDir) -> Notes {
    let notes = Notes::open(&folder.path().join("notes")).unwrap();
    while !notes.progress().borrow().complete {
        std::thread::sleep(Duration::from_millis(5));
    }
    notes
}

fn read(notes: &Notes, path: &str) -> Result<String, NotesError> {
    notes.read(path, &Part { budget: 8_000, ..Part::default() }).map(|extract| extract.text)
}

fn paths(notes: &Notes) -> Vec<String> {
    notes.list("").unwrap().iter().map(NotePath::to_string).collect()
}

#[test]
fn only_visible_markdown_is_listed_at_every_depth() {
    let (_folder, notes) = vault();
    assert_eq!(paths(&notes), ["Journal/Été à Brest.md", "Recipes/Rye bread.md", "a/b/c/d/e/Deep.md"]);
}

#[test]
fn nothing_outside_is_read_or_written() {
    let (folder, notes) = vault();
    let outside = folder.path().join("secret.md");
    let absolute = outside.to_str().unwrap();
    for path in [
        "../secret.md",
        "Recipes/../../secret.md",
        "..\\secret.md",
        absolute,
        "/secret.md",
        "~/secret.md",
        "note:///../secret.md",
        "note:///%2e%2e/secret.md",
        "note:///%2e%2e%2fsecret.md",
        "[[../secret]]",
        ".obsidian/plugins.md",
        ".hidden.md",
        "secret.md\0",
        "picture.png",
        "file:///etc/passwd",
        "Recipes",
    ] {
        let error = read(&notes, path).expect_err(path);
        assert!(!error.to_string().contains("4711"), "{path}: {error}");
        assert!(notes.append(path, "more").is_err(), "{path}");
    }
    let elsewhere = std::env::temp_dir().join("lectern-new.md").display().to_string();
    for path in ["../new.md", &elsewhere, "a/../../new.md", ".obsidian/new.md", "..", "x\0y"] {
        assert!(notes.create(path, "text").is_err(), "{path}");
    }
    assert_eq!(fs::read_to_string(&outside).unwrap(), SECRET);
    assert!(!folder.path().join("new.md").exists());
}

#[cfg(unix)]
#[test]
fn links_that_lead_outside_are_no_notes() {
    use std::os::unix::fs::symlink;
    let (folder, _) = vault();
    let inside = folder.path().join("notes");
    symlink(folder.path().join("secret.md"), inside.join("absolute.md")).unwrap();
    symlink("../secret.md", inside.join("relative.md")).unwrap();
    symlink(folder.path(), inside.join("above")).unwrap();
    symlink("..", inside.join("Recipes/up")).unwrap();
    symlink("Rye bread.md", inside.join("Recipes/Alias.md")).unwrap();
    symlink("nowhere.md", inside.join("dangling.md")).unwrap();
    let notes = open(&folder);
    for path in ["absolute.md", "relative.md", "above/secret.md", "Recipes/up/../secret.md", "dangling.md"] {
        let error = read(&notes, path).expect_err(path);
        assert!(!error.to_string().contains("4711"), "{path}: {error}");
        assert!(notes.append(path, "more").is_err(), "{path}");
    }
    assert!(notes.create("above/new.md", "text").is_err());
    assert!(!folder.path().join("new.md").exists());
    assert!(notes.search("secret 4711", "", 5).unwrap().is_empty());
    // A link that stays inside is a note like any other, and stays a link when it is added to.
    assert!(read(&notes, "Recipes/Alias.md").unwrap().contains("Flour."));
    notes.append("Recipes/Alias.md", "Through the link.").unwrap();
    assert!(inside.join("Recipes/Alias.md").is_symlink());
    assert!(read(&notes, "Recipes/Rye bread.md").unwrap().ends_with("Through the link.\n"));
    assert!(paths(&notes).contains(&"Recipes/Alias.md".to_owned()));
}

#[cfg(unix)]
#[test]
fn a_link_that_is_swapped_in_later_is_refused_too() {
    let (folder, notes) = vault();
    let inside = folder.path().join("notes");
    fs::remove_dir_all(inside.join("Recipes")).unwrap();
    fs::create_dir(folder.path().join("elsewhere")).unwrap();
    write(folder.path(), "elsewhere/Rye bread.md", SECRET);
    std::os::unix::fs::symlink(folder.path().join("elsewhere"), inside.join("Recipes")).unwrap();
    assert!(read(&notes, "Recipes/Rye bread.md").is_err());
    assert!(notes.create("Recipes/New.md", "x").is_err());
    assert_eq!(fs::read_dir(folder.path().join("elsewhere")).unwrap().count(), 1);
}

#[cfg(unix)]
#[test]
fn a_pipe_or_a_folder_with_the_name_of_a_note_blocks_nothing() {
    let (folder, _) = vault();
    let pipe = folder.path().join("notes/pipe.md");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    fs::create_dir(folder.path().join("notes/folder.md")).unwrap();
    let notes = open(&folder);
    assert!(read(&notes, "pipe.md").is_err() && read(&notes, "folder.md").is_err());
    assert!(!paths(&notes).iter().any(|path| path.starts_with("pipe") || path.starts_with("folder")));
}

#[test]
fn more_folders_than_files_may_be_open_are_all_walked() {
    let folder = tempfile::tempdir().unwrap();
    (0..1_200).for_each(|n| write(folder.path(), &format!("notes/{n}/Note.md"), "text"));
    assert_eq!(paths(&open(&folder)).len(), 1_200);
}

#[test]
fn every_spelling_of_a_note_is_understood() {
    let (_folder, notes) = vault();
    for asked in [
        "Recipes/Rye bread.md",
        "Recipes/Rye bread",
        "recipes/rye BREAD.MD",
        "./Recipes//Rye bread.md",
        "Recipes\\Rye bread.md",
        "Rye bread",
        "rye bread.md",
        "[[Rye bread]]",
        "[[Recipes/Rye bread|the loaf]]",
        "note:///Recipes/Rye%20bread.md",
        "  Rye bread  ",
    ] {
        assert!(
            read(&notes, asked).unwrap_or_else(|error| panic!("{asked}: {error}")).contains("Flour."),
            "{asked}"
        );
    }
    for asked in ["Journal/E\u{301}te\u{301} a\u{300} Brest.md", "ete a brest", "JOURNAL/ÉTÉ À BREST"] {
        assert!(
            read(&notes, asked).unwrap_or_else(|error| panic!("{asked}: {error}")).contains("Pluie."),
            "{asked}"
        );
    }
}

#[test]
fn a_bare_name_that_two_notes_have_is_not_guessed() {
    let (folder, _) = vault();
    write(folder.path(), "notes/Old/Rye bread.md", "old");
    let notes = open(&folder);
    let error = read(&notes, "rye bread").unwrap_err().to_string();
    assert!(error.contains("`Old/Rye bread.md` or `Recipes/Rye bread.md`"), "{error}");
    assert_eq!(read(&notes, "Old/rye bread").unwrap(), "old");
}

#[test]
fn a_missing_note_names_those_that_are_alike() {
    let (_folder, notes) = vault();
    let error = read(&notes, "Recipes/Rye bred.md").unwrap_err().to_string();
    assert!(error.contains("`Recipes/Rye bred.md`") && error.contains("`Recipes/Rye bread.md`"), "{error}");
}

#[test]
fn sections_and_lines_are_read_alone() {
    let (_folder, notes) = vault();
    let part = |heading: Option<&str>, offset, limit| Part {
        heading: heading.map(str::to_owned),
        offset,
        limit,
        budget: 8_000,
    };
    let section = notes.read("Rye bread", &part(Some("steps"), None, None)).unwrap();
    assert_eq!((section.text.as_str(), section.lines), ("## Steps\n\n1. Mix\n2. Bake\n", Some((5, 8))));
    assert_eq!(section.trail, ["Rye bread", "Steps"]);
    assert_eq!(notes.read("[[Rye bread#Steps]]", &part(None, None, None)).unwrap().text, section.text);
    let lines = notes.read("Rye bread", &part(None, Some(7), Some(1))).unwrap();
    assert_eq!((lines.text.as_str(), lines.lines, lines.next), ("1. Mix\n", Some((7, 7)), Some(8)));
    let missing = notes.read("Rye bread", &part(Some("Costs"), None, None)).unwrap_err().to_string();
    assert!(missing.contains("`Costs`") && missing.contains("`Steps`"), "{missing}");
    assert!(notes.read("Rye bread", &part(None, Some(99), None)).is_err());
}

#[test]
fn a_long_note_can_be_read_to_its_end_in_parts() {
    let (folder, notes) = vault();
    let text: String = (0..2_000).map(|n| format!("line {n} of a long note\n")).collect();
    write(folder.path(), "notes/Long.md", &text);
    let mut whole = String::new();
    let mut offset = None;
    loop {
        let part = notes.read("Long.md", &Part { offset, budget: 8_000, ..Part::default() }).unwrap();
        assert!(part.text.chars().count() <= 8_000);
        whole.push_str(&part.text);
        offset = part.next;
        if offset.is_none() {
            break;
        }
    }
    assert_eq!(whole, text);
}

#[test]
fn new_notes_are_made_with_their_folders_and_never_over_others() {
    let (folder, notes) = vault();
    let inside = folder.path().join("notes");
    let (path, _) = notes.create("Lists/2024/Shopping", "oats").unwrap();
    assert_eq!(path.as_str(), "Lists/2024/Shopping.md");
    assert_eq!(fs::read_to_string(inside.join("Lists/2024/Shopping.md")).unwrap(), "oats\n");
    for again in
        ["Lists/2024/Shopping.md", "Lists/2024/Shopping", "lists/2024/SHOPPING.md", "recipes/rye bread.md"]
    {
        let error = notes.create(again, "other").unwrap_err().to_string();
        assert!(error.contains("already"), "{again}: {error}");
    }
    assert_eq!(fs::read_to_string(inside.join("Lists/2024/Shopping.md")).unwrap(), "oats\n");
    // A folder in another spelling is the folder that is there.
    assert_eq!(notes.create("recipes/Soup.md", "x").unwrap().0.as_str(), "Recipes/Soup.md");
    for path in ["x.pdf", "con.md", "a<b.md", "dot./x", &"x".repeat(250), &format!("{}/x", "y".repeat(300))] {
        assert!(notes.create(path, "x").is_err(), "{path}");
    }
    let left = |folder: &Path| {
        fs::read_dir(folder)
            .unwrap()
            .flatten()
            .filter(|e| e.file_name().to_string_lossy().contains(".tmp"))
            .count()
    };
    assert_eq!(left(&inside.join("Lists/2024")) + left(&inside.join("Recipes")), 0);
}

#[test]
fn what_is_written_is_found_at_once() {
    let (_folder, notes) = vault();
    notes.create("Garden/Plan.md", "# Plan\n\nThree quince trees along the wall.").unwrap();
    assert_eq!(notes.search("quince", "", 3).unwrap()[0].path.as_str(), "Garden/Plan.md");
    let (path, lines) = notes.append("garden/plan", "A pond of forty litres.").unwrap();
    assert_eq!((path.as_str(), lines), ("Garden/Plan.md", (5, 5)));
    let hit = &notes.search("How large is the pond?", "", 3).unwrap()[0];
    assert_eq!((hit.passage.as_str(), hit.lines), ("A pond of forty litres.", (5, 5)));
}

#[test]
fn appends_at_the_same_time_all_stay() {
    let (folder, notes) = vault();
    std::thread::scope(|scope| {
        for writer in 0..8 {
            let notes = &notes;
            scope.spawn(move || {
                (0..5)
                    .for_each(|n| drop(notes.append("Deep", &format!("from {writer}, number {n}")).unwrap()))
            });
        }
    });
    let text = fs::read_to_string(folder.path().join("notes/a/b/c/d/e/Deep.md")).unwrap();
    assert!(text.starts_with("deep down\n\n"));
    assert_eq!(text.matches("from ").count(), 40);
}

#[cfg(unix)]
#[test]
fn appending_keeps_the_permissions_of_the_file() {
    use std::os::unix::fs::PermissionsExt;
    let (folder, notes) = vault();
    let file = folder.path().join("notes/Recipes/Rye bread.md");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    notes.append("Rye bread", "More.").unwrap();
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
}

#[test]
fn files_that_are_no_plain_text_are_handled() {
    let (folder, _) = vault();
    let inside = folder.path().join("notes");
    fs::write(inside.join("latin.md"), b"# Caf\xe9\n\nUn caf\xe9 serr\xe9 au comptoir.\n").unwrap();
    fs::write(inside.join("binary.md"), b"\x89PNG\0\0\0").unwrap();
    fs::write(inside.join("empty.md"), b"").unwrap();
    fs::write(inside.join("bom.md"), "\u{feff}# Marked\n\nText behind the mark.\n").unwrap();
    let huge = format!(
        "# Huge\n\nneedle at the start\n\n{}needle2 at the end\n",
        "filler words in a row\n\n".repeat(300_000)
    );
    fs::write(inside.join("huge.md"), &huge).unwrap();
    let notes = open(&folder);
    assert!(read(&notes, "latin.md").unwrap().contains("comptoir"));
    assert!(notes.append("latin.md", "x").unwrap_err().to_string().contains("UTF-8"));
    assert!(read(&notes, "binary.md").unwrap_err().to_string().contains("binary"));
    assert_eq!(read(&notes, "empty.md").unwrap(), "");
    assert!(read(&notes, "bom.md").unwrap().starts_with("# Marked"));
    assert!(paths(&notes).contains(&"huge.md".to_owned()));
    assert_eq!(notes.search("needle", "", 1).unwrap()[0].path.as_str(), "huge.md");
    let end = Part { offset: Some(600_005), budget: 8_000, ..Part::default() };
    assert!(notes.read("huge.md", &end).unwrap().text.contains("needle2"));
}

#[test]
fn a_folder_limits_list_and_search() {
    let (_folder, notes) = vault();
    let listed = |folder: &str| notes.list(folder).map(|all| all.len());
    assert_eq!(listed("Recipes").unwrap(), 1);
    assert_eq!(listed("recipes/").unwrap(), 1);
    assert_eq!(listed("/").unwrap(), 3);
    assert_eq!(listed("c/d").unwrap(), 1);
    assert!(listed("..").is_err() && listed("/etc").is_err() && listed(".obsidian").is_err());
    let missing = listed("Recipe").unwrap_err().to_string();
    assert!(missing.contains("`Recipes`"), "{missing}");
    assert!(notes.search("flour", "Journal", 3).unwrap().is_empty());
    assert_eq!(notes.search("flour", "Recipes", 3).unwrap().len(), 1);
}

#[test]
fn a_folder_that_is_not_there_cannot_be_opened() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "file", "x");
    assert!(Vault::open(&folder.path().join("missing")).is_err());
    assert!(Vault::open(&folder.path().join("file")).is_err());
}

proptest::proptest! {
    #[test]
    fn no_path_reaches_the_secret(asked in "[./\\\\~a-c%:\u{0}e2 ]{0,24}(secret(\\.md)?)?") {
        thread_local! {
            static VAULT: (TempDir, Vault) = {
                let folder = tempfile::tempdir().unwrap();
                write(folder.path(), "secret.md", SECRET);
                write(folder.path(), "notes/a/b.md", "harmless");
                let vault = Vault::open(&folder.path().join("notes")).unwrap();
                (folder, vault)
            };
        }
        VAULT.with(|(folder, vault)| {
            for path in [NotePath::parse(&asked), NotePath::from_uri(&format!("note:///{asked}"))].into_iter().flatten() {
                if let Ok(text) = vault.read(&path, u64::MAX) {
                    assert_eq!(text, "harmless");
                }
                let _ = vault.create(&path, "harmless");
            }
            let beside: Vec<_> = fs::read_dir(folder.path()).unwrap().flatten().map(|e| e.file_name()).collect();
            assert_eq!(beside.len(), 2, "{beside:?}");
        });
    }
}
