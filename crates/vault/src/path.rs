//! Names of notes: paths relative to the vault, checked before anything is opened.
//! Invariant: a `NotePath` has no empty, `.`, `..`, hidden or absolute part and no NUL, so joining it to a
//! folder never leaves the folder by name. (Links are the business of `vault`, which opens without following
//! them outside.)

use std::fmt;

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};
use unicode_normalization::UnicodeNormalization;

use crate::text::fold;

/// The scheme and empty authority of a note's address.
pub const URI_PREFIX: &str = "note:///";
/// Longest name of a file or folder on the usual file systems, in bytes.
const LONGEST_NAME: usize = 255;
const LONGEST_PATH: usize = 4_000;
/// Everything outside these is percent-encoded in a URI; `/` separates.
const ENCODED: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'[')
    .add(b'\\')
    .add(b']')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}')
    .add(b'&')
    .add(b'\'')
    .add(b'+');

/// A path relative to the vault, with `/` between its parts.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NotePath(String);

/// Why a text is no path inside the vault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PathFault {
    /// Nothing was given.
    #[error("is empty")]
    Empty,
    /// It starts at the root of the disk.
    #[error("is absolute; give it relative to the folder of notes, like `Recipes/Bread.md`")]
    Absolute,
    /// It has a `..` part.
    #[error("leads out of the folder of notes")]
    Outside,
    /// It has a NUL or another control character.
    #[error("has a control character in it")]
    Control,
    /// A part starts with a dot.
    #[error("is hidden; folders and files whose name starts with a dot are no notes")]
    Hidden,
    /// A part is longer than file systems allow.
    #[error("is too long")]
    TooLong,
    /// A part is a name that some systems reserve, or has a sign that they refuse.
    #[error("has a name that not every system can store")]
    Unportable,
    /// It ends like something that is not Markdown.
    #[error("is not a Markdown note; notes end in .md")]
    NotMarkdown,
}

impl NotePath {
    /// Checks a path as somebody wrote it. `./` and doubled slashes are dropped, backslashes are separators.
    ///
    /// # Errors
    /// When the path could lead outside the vault or names something that is no note.
    pub fn parse(asked: &str) -> Result<Self, PathFault> {
        Self::check(asked.trim())
    }

    fn check(asked: &str) -> Result<Self, PathFault> {
        if asked.chars().any(char::is_control) {
            return Err(PathFault::Control);
        }
        let drive = asked.as_bytes().get(1) == Some(&b':') && asked.as_bytes()[0].is_ascii_alphabetic();
        if asked.starts_with(['/', '\\', '~']) || drive {
            return Err(PathFault::Absolute);
        }
        let mut parts = Vec::new();
        for part in asked.split(['/', '\\']) {
            match part.trim() {
                "" | "." => {}
                ".." => return Err(PathFault::Outside),
                hidden if hidden.starts_with('.') => return Err(PathFault::Hidden),
                long if long.len() > LONGEST_NAME => return Err(PathFault::TooLong),
                _ => parts.push(part),
            }
        }
        let path = parts.join("/");
        match path.len() {
            0 => Err(PathFault::Empty),
            length if length > LONGEST_PATH => Err(PathFault::TooLong),
            _ => Ok(Self(path)),
        }
    }

    /// Takes a name that a walk through the vault found. Hidden names must have been left out by the walk.
    pub(crate) fn found(path: String) -> Self {
        Self(path)
    }

    /// The path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The last part.
    pub fn name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or(&self.0)
    }

    /// The last part without `.md`.
    pub fn stem(&self) -> &str {
        without_extension(self.name())
    }

    /// The folder, or an empty text for the vault itself.
    pub fn folder(&self) -> &str {
        self.0.rsplit_once('/').map_or("", |(folder, _)| folder)
    }

    /// Whether the name is one of a Markdown note.
    pub fn is_markdown(&self) -> bool {
        is_markdown(self.name())
    }

    /// The same path with `.md` at its end, for a note that is to be created.
    ///
    /// # Errors
    /// When the name ends like another kind of file or could not be stored on every system.
    pub fn for_new_note(mut self) -> Result<Self, PathFault> {
        if !self.is_markdown() {
            if has_foreign_extension(self.name()) {
                return Err(PathFault::NotMarkdown);
            }
            self.0.push_str(".md");
        }
        if self.name().len() > LONGEST_NAME - 8 {
            return Err(PathFault::TooLong);
        }
        if self.0.split('/').any(is_unportable) {
            return Err(PathFault::Unportable);
        }
        Ok(Self(self.0.nfc().collect()))
    }

    /// What two spellings of the same path have in common: case, accents and composition are forgiven.
    pub fn key(&self) -> String {
        fold(&self.0.split('/').map(str::trim).collect::<Vec<_>>().join("/"))
    }

    /// The address of the note.
    pub fn uri(&self) -> String {
        format!("{URI_PREFIX}{}", utf8_percent_encode(&self.0, ENCODED))
    }

    /// The path in an address.
    ///
    /// # Errors
    /// When it is no `note:` address, or one that leads outside.
    pub fn from_uri(uri: &str) -> Result<Self, PathFault> {
        let encoded = uri.strip_prefix(URI_PREFIX).ok_or(PathFault::Empty)?;
        let decoded = percent_decode_str(encoded).decode_utf8().map_err(|_| PathFault::Control)?;
        Self::check(&decoded)
    }
}

impl fmt::Display for NotePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether a file name is one of a Markdown note.
pub fn is_markdown(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(stem, extension)| {
        !stem.is_empty()
            && (extension.eq_ignore_ascii_case("md") || extension.eq_ignore_ascii_case("markdown"))
    })
}

/// A file name without its Markdown extension; other dots belong to the name.
pub fn without_extension(name: &str) -> &str {
    if is_markdown(name) { name.rsplit_once('.').map_or(name, |(stem, _)| stem) } else { name }
}

/// The path, and the heading if there is one, that `[[a link]]`, an address or a plain path means.
pub fn split_link(asked: &str) -> (&str, Option<&str>) {
    let asked = asked.trim();
    let asked = asked.strip_prefix("![[").or_else(|| asked.strip_prefix("[[")).unwrap_or(asked);
    let Some(inner) = asked.strip_suffix("]]") else { return (asked, None) };
    let target = inner.split('|').next().unwrap_or(inner);
    match target.split_once('#') {
        Some((path, heading)) => (path.trim(), Some(heading.trim())),
        None => (target.trim(), None),
    }
}

/// An extension is short and has a letter: `Report.pdf` has one, `v1.2` and `St. John` have none.
fn has_foreign_extension(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(stem, extension)| {
        !stem.is_empty()
            && (1..=4).contains(&extension.len())
            && extension.bytes().all(|b| b.is_ascii_alphanumeric())
            && extension.bytes().any(|b| b.is_ascii_alphabetic())
    })
}

fn is_unportable(part: &str) -> bool {
    let device = part.split('.').next().unwrap_or(part).trim_end().to_ascii_uppercase();
    let numbered = |name: &str| {
        device.strip_prefix(name).is_some_and(|n| n.len() == 1 && n.bytes().all(|b| b.is_ascii_digit()))
    };
    matches!(device.as_str(), "CON" | "PRN" | "AUX" | "NUL")
        || numbered("COM")
        || numbered("LPT")
        || part.ends_with(['.', ' '])
        || part.contains(['<', '>', ':', '"', '|', '?', '*'])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn plain_paths_are_kept_and_tidied() {
        let tidy = |asked| NotePath::parse(asked).map(|path| path.0);
        assert_eq!(tidy(" ./a//b.md "), Ok("a/b.md".into()));
        assert_eq!(tidy("a\\b.md"), Ok("a/b.md".into()));
        assert_eq!(tidy("旅行/云南之行.md"), Ok("旅行/云南之行.md".into()));
    }

    #[test]
    fn paths_that_lead_outside_are_refused() {
        for (asked, fault) in [
            ("", PathFault::Empty),
            ("./", PathFault::Empty),
            ("../x.md", PathFault::Outside),
            ("a/../../x.md", PathFault::Outside),
            ("a\\..\\x.md", PathFault::Outside),
            ("/etc/passwd", PathFault::Absolute),
            ("\\\\server\\x", PathFault::Absolute),
            ("C:\\x.md", PathFault::Absolute),
            ("~/x.md", PathFault::Absolute),
            ("a\0.md", PathFault::Control),
            (".git/config", PathFault::Hidden),
            ("a/.obsidian/x.md", PathFault::Hidden),
        ] {
            assert_eq!(NotePath::parse(asked), Err(fault), "{asked:?}");
        }
        assert_eq!(NotePath::parse(&"x".repeat(300)), Err(PathFault::TooLong));
    }

    #[test]
    fn new_notes_get_an_extension_and_a_portable_name() {
        let new = |asked: &str| NotePath::parse(asked).and_then(NotePath::for_new_note).map(|path| path.0);
        assert_eq!(new("Lists/Shopping"), Ok("Lists/Shopping.md".into()));
        assert_eq!(new("v1.2 plan"), Ok("v1.2 plan.md".into()));
        assert_eq!(new("a.MD"), Ok("a.MD".into()));
        assert_eq!(new("a.pdf"), Err(PathFault::NotMarkdown));
        assert_eq!(new("CON"), Err(PathFault::Unportable));
        assert_eq!(new("a/what?"), Err(PathFault::Unportable));
        assert_eq!(new("trailing./x"), Err(PathFault::Unportable));
    }

    #[test]
    fn links_name_a_note_and_a_heading() {
        assert_eq!(split_link("[[Heat pump#Noise|the hum]]"), ("Heat pump", Some("Noise")));
        assert_eq!(split_link("a/b#c.md"), ("a/b#c.md", None));
    }

    proptest! {
        #[test]
        fn a_parsed_path_never_leaves_the_folder(asked in "\\PC{0,40}|([./\\\\a~:\u{0}]{0,12})") {
            if let Ok(path) = NotePath::parse(&asked) {
                let parts: Vec<_> = std::path::Path::new(path.as_str()).components().collect();
                prop_assert!(!parts.is_empty());
                prop_assert!(parts.iter().all(|p| matches!(p, std::path::Component::Normal(_))));
                prop_assert!(!path.as_str().split('/').any(|part| part.starts_with('.') || part.is_empty()));
            }
        }

        #[test]
        fn addresses_come_back(asked in "\\PC{1,30}") {
            if let Ok(path) = NotePath::parse(&asked) {
                prop_assert!(path.uri().is_ascii());
                prop_assert_eq!(NotePath::from_uri(&path.uri()), Ok(path));
            }
        }
    }
}
