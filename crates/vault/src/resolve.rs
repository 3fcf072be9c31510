//! Finds the note or folder that somebody means: exact path, another spelling, a bare name, a title, a link.
//! Invariant: what comes back was seen in the vault; with two candidates nobody guesses.

use crate::index::Index;
use crate::path::{NotePath, PathFault, URI_PREFIX, split_link, without_extension};
use crate::text::fold;
use crate::vault::{FileError, Vault};

const MOST_NEAR: usize = 3;
/// Names less alike than this are no help.
const LEAST_ALIKE: f64 = 0.55;

/// A note that was asked for, and the heading if the link named one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meant {
    /// Where it is.
    pub path: NotePath,
    /// The heading after `#` in a wiki link.
    pub heading: Option<String>,
}

/// Why no note or folder could be found.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// What was given is no path inside the vault.
    #[error("the path `{path}` {fault}")]
    Path {
        /// What was asked for.
        path: String,
        /// What is wrong with it.
        fault: PathFault,
    },
    /// There is none of that name.
    #[error("there is no {kind} `{asked}`{}", near_names(near))]
    Missing {
        /// Note or folder.
        kind: &'static str,
        /// What was asked for.
        asked: String,
        /// Names that are similar.
        near: Vec<String>,
    },
    /// There are several.
    #[error("`{asked}` could be {}; give the whole path", quoted(paths, " or "))]
    Ambiguous {
        /// What was asked for.
        asked: String,
        /// Which ones.
        paths: Vec<String>,
    },
    /// It is there, but cannot be opened as a note.
    #[error(transparent)]
    File(#[from] FileError),
}

fn near_names(near: &[String]) -> String {
    if near.is_empty() { String::new() } else { format!("; similar names: {}", quoted(near, ", ")) }
}

fn quoted(names: &[String], between: &str) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(between)
}

/// Finds a note.
///
/// # Errors
/// When there is none, or more than one, or the path leads outside.
pub fn note(vault: &Vault, index: &Index, asked: &str) -> Result<Meant, ResolveError> {
    let (target, heading) = split_link(asked);
    let heading = heading.map(str::to_owned);
    let parsed =
        if target.starts_with(URI_PREFIX) { NotePath::from_uri(target) } else { NotePath::parse(target) };
    let wanted = parsed.map_err(|fault| ResolveError::Path { path: asked.to_owned(), fault })?;
    if wanted.is_markdown() {
        match vault.stat(&wanted) {
            Ok(entry) => return Ok(Meant { path: entry.path, heading }),
            Err(FileError::Missing(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let path = spelled_otherwise(vault, index, &wanted, asked)?;
    Ok(Meant { path, heading })
}

fn spelled_otherwise(
    vault: &Vault,
    index: &Index,
    wanted: &NotePath,
    asked: &str,
) -> Result<NotePath, ResolveError> {
    let all = vault.paths("");
    let key = wanted.key();
    let key = without_extension(&key);
    let inner = format!("/{key}");
    let whole = |path: &NotePath| without_extension(&path.key()) == key;
    let end = |path: &NotePath| without_extension(&path.key()).ends_with(&inner);
    let steps: [&dyn Fn(&NotePath) -> bool; 3] =
        [&|path| without_extension(path.as_str()) == without_extension(wanted.as_str()), &whole, &end];
    for step in steps {
        match all.iter().filter(|path| step(path)).collect::<Vec<_>>()[..] {
            [] => {}
            [only] => return Ok(only.clone()),
            ref several => return Err(ambiguous(asked, several.iter().copied())),
        }
    }
    match &index.by_title(without_extension(wanted.as_str())).unwrap_or_default()[..] {
        [] if vault.stat(wanted).is_ok() => {
            Err(ResolveError::Path { path: asked.to_owned(), fault: PathFault::NotMarkdown })
        }
        [] => Err(ResolveError::Missing {
            kind: "note",
            asked: asked.to_owned(),
            near: near(key, all.iter().map(NotePath::as_str)),
        }),
        [only] => Ok(only.clone()),
        several => Err(ambiguous(asked, several.iter())),
    }
}

fn ambiguous<'a>(asked: &str, paths: impl Iterator<Item = &'a NotePath>) -> ResolveError {
    let paths = paths.take(5).map(NotePath::to_string).collect();
    ResolveError::Ambiguous { asked: asked.to_owned(), paths }
}

/// Finds a folder; an empty text, `.` and `/` mean the whole vault.
///
/// # Errors
/// When there is none, or more than one in other spellings, or the path leads outside.
pub fn folder(vault: &Vault, asked: &str) -> Result<String, ResolveError> {
    let trimmed = asked.trim().trim_end_matches(['/', '\\']);
    if matches!(trimmed, "" | "." | "*" | "./") {
        return Ok(String::new());
    }
    let wanted =
        NotePath::parse(trimmed).map_err(|fault| ResolveError::Path { path: asked.to_owned(), fault })?;
    if vault.has_folder(wanted.as_str()) {
        return Ok(wanted.to_string());
    }
    let all = folders(vault);
    let key = wanted.key();
    let inner = format!("/{key}");
    let steps: [&dyn Fn(&str) -> bool; 2] =
        [&|folder| fold(folder) == key, &|folder| fold(folder).ends_with(&inner)];
    for step in steps {
        match all.iter().filter(|folder| step(folder)).collect::<Vec<_>>()[..] {
            [] => {}
            [only] => return Ok(only.clone()),
            ref several => {
                let paths = several.iter().take(5).map(|folder| (*folder).clone()).collect();
                return Err(ResolveError::Ambiguous { asked: asked.to_owned(), paths });
            }
        }
    }
    let near = near(&key, all.iter().map(String::as_str));
    Err(ResolveError::Missing { kind: "folder", asked: asked.to_owned(), near })
}

/// Every folder that holds a note, itself or deeper.
fn folders(vault: &Vault) -> Vec<String> {
    let mut folders = Vec::new();
    for path in vault.paths("") {
        let mut folder = path.folder();
        while !folder.is_empty() {
            folders.push(folder.to_owned());
            folder = folder.rsplit_once('/').map_or("", |(above, _)| above);
        }
    }
    folders.sort();
    folders.dedup();
    folders
}

fn near<'a>(key: &str, all: impl Iterator<Item = &'a str>) -> Vec<String> {
    let name = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
    let wanted = name(key);
    let alike = |path: &str| {
        let key = fold(path);
        let name = name(without_extension(&key));
        let holds = wanted.chars().count() > 2 && (name.contains(&wanted) || wanted.contains(&name));
        strsim::normalized_damerau_levenshtein(&name, &wanted).max(if holds { 0.8 } else { 0.0 })
    };
    let mut scored: Vec<(f64, &str)> =
        all.map(|path| (alike(path), path)).filter(|(s, _)| *s >= LEAST_ALIKE).collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    scored.into_iter().take(MOST_NEAR).map(|(_, path)| path.to_owned()).collect()
}
