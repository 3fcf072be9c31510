//! A vault with its index: what the tools and resources work on.
//! Invariant: blocking and without MCP; the server runs these calls away from its own thread.

use std::path::Path;
use std::sync::Arc;

use tokio::sync::{broadcast, watch};

use crate::index::{Index, IndexError, stamp};
use crate::indexer::{Changes, Indexer, Progress, refresh};
use crate::note::Note;
use crate::path::{NotePath, PathFault};
use crate::resolve::{self, ResolveError};
use crate::search::{Hit, search};
use crate::vault::{FileError, OpenError, Vault};

/// A vault that can be searched.
#[derive(Debug)]
pub struct Notes {
    vault: Arc<Vault>,
    index: Arc<Index>,
    indexer: Indexer,
}

/// The notes cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The folder cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The index cannot be made.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// No thread for the indexer.
    #[error("start the indexer")]
    Thread(#[source] std::io::Error),
}

/// A call on the notes failed; the message is for whoever called.
#[derive(Debug, thiserror::Error)]
pub enum NotesError {
    /// No such note or folder, or not inside.
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    /// The file refused.
    #[error(transparent)]
    File(#[from] FileError),
    /// The index is broken.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// The note has no such heading.
    #[error("`{path}` has no heading `{heading}`{}", headings(known))]
    Heading {
        /// The note.
        path: NotePath,
        /// What was asked for.
        heading: String,
        /// The headings that it has.
        known: Vec<String>,
    },
    /// There are not so many lines.
    #[error("`{path}` has {lines} lines, so nothing starts at line {offset}")]
    Offset {
        /// The note.
        path: NotePath,
        /// How many lines it has.
        lines: usize,
        /// What was asked for.
        offset: usize,
    },
    /// Nothing was given to write.
    #[error("there is nothing to write to `{0}`: the content is empty")]
    Empty(NotePath),
}

fn headings(known: &[String]) -> String {
    let names: Vec<String> = known.iter().take(12).map(|heading| format!("`{heading}`")).collect();
    if names.is_empty() { "; it has none".into() } else { format!("; it has {}", names.join(", ")) }
}

/// Part of a note, as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extract {
    /// Where the note is.
    pub path: NotePath,
    /// Its title.
    pub title: String,
    /// The heading that was asked for, and those above it.
    pub trail: Vec<String>,
    /// The lines, untouched.
    pub text: String,
    /// First and last line, from 1; an empty note has none.
    pub lines: Option<(usize, usize)>,
    /// How many lines the note has.
    pub total: usize,
    /// The line to read on from, when the text was cut.
    pub next: Option<usize>,
}

/// Which part of a note to read.
#[derive(Debug, Clone, Default)]
pub struct Part {
    /// Only the section under this heading.
    pub heading: Option<String>,
    /// The first line, from 1, of the note or the section.
    pub offset: Option<usize>,
    /// At most so many lines.
    pub limit: Option<usize>,
    /// At most so many characters.
    pub budget: usize,
}

impl Notes {
    /// Opens a folder and starts to index it in the background.
    ///
    /// # Errors
    /// When it is no readable folder.
    pub fn open(folder: &Path) -> Result<Self, StartError> {
        let vault = Arc::new(Vault::open(folder)?);
        let index = Arc::new(Index::new()?);
        let indexer = Indexer::start(vault.clone(), index.clone()).map_err(StartError::Thread)?;
        Ok(Self { vault, index, indexer })
    }

    /// How far the first reading is.
    pub fn progress(&self) -> watch::Receiver<Progress> {
        self.indexer.progress()
    }

    /// What changes from now on.
    pub fn changes(&self) -> broadcast::Receiver<Changes> {
        self.indexer.changes()
    }

    /// Every note of a folder, sorted by path.
    ///
    /// # Errors
    /// When there is no such folder.
    pub fn list(&self, folder: &str) -> Result<Vec<NotePath>, NotesError> {
        Ok(self.vault.paths(&resolve::folder(&self.vault, folder)?))
    }

    /// How long a note is, in bytes; 0 when it has just gone.
    pub fn size(&self, path: &NotePath) -> u64 {
        self.vault.stat(path).map_or(0, |entry| entry.size)
    }

    /// The title of a note, as far as it was read; else its name.
    pub fn title(&self, path: &NotePath) -> String {
        self.index.title(path).ok().flatten().unwrap_or_else(|| path.stem().to_owned())
    }

    /// The passages that answer a question.
    ///
    /// # Errors
    /// When there is no such folder, or the index is broken.
    pub fn search(&self, question: &str, folder: &str, limit: usize) -> Result<Vec<Hit>, NotesError> {
        let folder = resolve::folder(&self.vault, folder)?;
        self.indexer.searched();
        let hits = search(&self.index, question, &folder, limit)?;
        let mut stale = false;
        for hit in &hits {
            stale |= self.refresh_if_changed(&hit.path)?;
        }
        // A hit must be what its note says now, even if the watcher is late.
        Ok(if stale { search(&self.index, question, &folder, limit)? } else { hits })
    }

    fn refresh_if_changed(&self, path: &NotePath) -> Result<bool, IndexError> {
        let now = self.vault.stat(path).ok().map(|entry| (entry.size, stamp(entry.modified)));
        let changed = now != self.index.stamp_of(path)?;
        if changed {
            refresh(&self.vault, &self.index, path)?;
        }
        Ok(changed)
    }

    /// Reads a note, or part of it.
    ///
    /// # Errors
    /// When there is no such note or heading, or it is no text.
    pub fn read(&self, asked: &str, part: &Part) -> Result<Extract, NotesError> {
        let meant = resolve::note(&self.vault, &self.index, asked)?;
        let text = self.vault.read(&meant.path, u64::MAX)?;
        let heading = part.heading.as_deref().filter(|heading| !heading.trim().is_empty());
        extract(meant.path, &text, heading.or(meant.heading.as_deref()), part)
    }

    /// Writes a new note.
    ///
    /// # Errors
    /// When one exists, or the path cannot be used.
    pub fn create(&self, asked: &str, content: &str) -> Result<(NotePath, usize), NotesError> {
        let fault = |fault: PathFault| ResolveError::Path { path: asked.to_owned(), fault };
        let (target, _) = crate::path::split_link(asked);
        let path = if target.starts_with(crate::path::URI_PREFIX) {
            NotePath::from_uri(target)
        } else {
            NotePath::parse(target)
        };
        let path = path.map_err(fault)?;
        let mut content = content.to_owned();
        if !content.is_empty() && !content.ends_with('\n') {
            content.push('\n');
        }
        let path = self.vault.create(&path, &content)?;
        self.written(&path, true);
        Ok((path, content.lines().count()))
    }

    /// Adds to the end of a note. Returns where it is and the first and last line that were added.
    ///
    /// # Errors
    /// When there is no such note, or nothing to add.
    pub fn append(&self, asked: &str, content: &str) -> Result<(NotePath, (usize, usize)), NotesError> {
        let path = resolve::note(&self.vault, &self.index, asked)?.path;
        let content = content.trim_matches(['\n', '\r']);
        if content.trim().is_empty() {
            return Err(NotesError::Empty(path));
        }
        let first = self.vault.append(&path, content)?;
        self.written(&path, false);
        Ok((path, (first, first + content.lines().count() - 1)))
    }

    /// What was written here is found at once, without waiting for the watcher.
    fn written(&self, path: &NotePath, listing: bool) {
        if let Err(error) = refresh(&self.vault, &self.index, path) {
            tracing::warn!(%error, %path, "index what was written");
        }
        self.indexer.announce(Changes { updated: vec![path.clone()], listing });
    }
}

fn extract(path: NotePath, text: &str, heading: Option<&str>, part: &Part) -> Result<Extract, NotesError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let note = Note::parse(text, path.stem());
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut range = 1..lines.len() + 1;
    let mut trail = Vec::new();
    if let Some(wanted) = heading {
        let known = || note.headings.iter().map(|heading| heading.text.clone()).collect();
        let missing =
            || NotesError::Heading { path: path.clone(), heading: wanted.to_owned(), known: known() };
        range = note.section(wanted).ok_or_else(missing)?;
        while range.len() > 1 && lines[range.end - 2].trim().is_empty() {
            range.end -= 1;
        }
        trail = note.trail_at(range.start);
    }
    let offset = part.offset.unwrap_or(range.start).max(1);
    if offset > 1 && offset >= range.end {
        return Err(NotesError::Offset { path, lines: lines.len(), offset });
    }
    // An offset counts the lines of the note, also inside a section, so that a reader can go on where it stopped.
    range.start = range.start.max(offset);
    let wanted_end =
        part.limit.map_or(range.end, |limit| range.end.min(range.start.saturating_add(limit.max(1))));
    let (text, end) = within_budget(&lines, range.start..wanted_end, part.budget);
    let next = (end < range.end).then_some(end);
    let shown = (end > range.start).then(|| (range.start, end - 1));
    Ok(Extract { path, title: note.title, trail, text, lines: shown, total: lines.len(), next })
}

/// As many whole lines as fit, at least one, which is cut if it alone is too long; and the line after the last.
fn within_budget(lines: &[&str], range: std::ops::Range<usize>, budget: usize) -> (String, usize) {
    let mut text = String::new();
    let mut used = 0;
    for at in range.clone() {
        let line = lines[at - 1];
        let length = line.chars().count();
        if used + length > budget {
            if at > range.start {
                return (text, at);
            }
            text.extend(line.chars().take(budget));
            return (text, at + 1);
        }
        text.push_str(line);
        used += length;
    }
    (text, range.end)
}
