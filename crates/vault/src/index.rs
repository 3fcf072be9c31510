//! The full-text index: which passages hold which words, in SQLite's FTS5.
//! Invariant: what users and models write reaches SQL only as a bound value, and FTS5 only as quoted tokens.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, OptionalExtension, Transaction, params};

use crate::language::Language;
use crate::note::{Note, Passage, PassageKind};
use crate::path::NotePath;
use crate::text::{fold, guess_language, tokens};
use crate::vault::Entry;

/// Separates the headings of a trail in its column.
const TRAIL: &str = "\u{1f}";

/// An index of one vault, in memory.
#[derive(Debug)]
pub struct Index {
    // A std mutex: nothing awaits while it is held, and the indexer holds it only to write what it prepared.
    connection: Mutex<Connection>,
}

/// The index could not be read or written.
#[derive(Debug, thiserror::Error)]
#[error("use the full-text index")]
pub struct IndexError(#[from] rusqlite::Error);

/// A note made ready for the index, without holding it.
#[derive(Debug)]
pub struct Prepared {
    entry: Entry,
    title: String,
    language: Option<Language>,
    passages: Vec<(Passage, Columns)>,
}

#[derive(Debug)]
struct Columns {
    title: String,
    heading: String,
    body: String,
}

/// A passage as it is stored.
#[derive(Debug, Clone)]
pub struct Stored {
    /// The note it is in.
    pub note: i64,
    /// Where the note is.
    pub path: NotePath,
    /// The note's title.
    pub title: String,
    /// The note's language, for its stems.
    pub language: Option<Language>,
    /// The passage itself.
    pub passage: Passage,
}

impl Prepared {
    /// Splits a note into passages and their tokens.
    pub fn new(entry: Entry, text: &str) -> Self {
        let note = Note::parse(text, entry.path.stem());
        let language = guess_language(text);
        let about = format!("{} {} {}", note.title, entry.path, note.tags.join(" "));
        let title = column(&about, language);
        let columns = |passage: &Passage| Columns {
            title: title.clone(),
            heading: column(&passage.trail.join(" / "), language),
            body: column(&passage.text, language),
        };
        let mut passages: Vec<_> =
            note.passages.into_iter().map(|p| (columns(&p), p)).map(|(c, p)| (p, c)).collect();
        if passages.is_empty() {
            // Even an empty note is found by its name.
            let passage = Passage {
                kind: PassageKind::Heading,
                trail: Vec::new(),
                lines: (1, note.lines.max(1)),
                text: String::new(),
            };
            passages.push((passage, Columns { title, heading: String::new(), body: String::new() }));
        }
        Self { entry, title: note.title, language, passages }
    }
}

fn column(text: &str, language: Option<Language>) -> String {
    let mut column = String::with_capacity(text.len() * 2);
    for token in tokens(text, language) {
        column.push_str(&token.text);
        column.push(' ');
    }
    column
}

impl Index {
    /// An empty index.
    ///
    /// # Errors
    /// When SQLite cannot make its tables.
    pub fn new() -> Result<Self, IndexError> {
        let connection = Connection::open_in_memory()?;
        // The tokens are made here; FTS5's `ascii` splits them at spaces and leaves every other script alone.
        // Without the positions (`detail = column`) BM25 of a contentless table is 0 for everything.
        connection.execute_batch(
            "PRAGMA synchronous = OFF; PRAGMA temp_store = MEMORY;
             CREATE TABLE notes (id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, title TEXT NOT NULL,
                 key TEXT NOT NULL, size INTEGER NOT NULL, modified INTEGER NOT NULL, language INTEGER);
             CREATE INDEX notes_key ON notes (key);
             CREATE TABLE passages (id INTEGER PRIMARY KEY, note INTEGER NOT NULL, kind INTEGER NOT NULL,
                 trail TEXT NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL, text TEXT NOT NULL);
             CREATE INDEX passages_note ON passages (note);
             CREATE VIRTUAL TABLE words USING fts5 (title, heading, body, content = '', contentless_delete = 1,
                 tokenize = 'ascii');
             CREATE VIRTUAL TABLE vocabulary USING fts5vocab (words, row);",
        )?;
        Ok(Self { connection: Mutex::new(connection) })
    }

    fn lock(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts notes into the index in the place of what it knew of them.
    ///
    /// # Errors
    /// When SQLite fails; then nothing of it is in the index.
    pub fn put(&self, notes: &[Prepared]) -> Result<(), IndexError> {
        let mut connection = self.lock();
        let work = connection.transaction()?;
        for note in notes {
            delete(&work, &note.entry.path)?;
            insert(&work, note)?;
        }
        Ok(work.commit()?)
    }

    /// Takes notes out of the index.
    ///
    /// # Errors
    /// When SQLite fails; then all of them are still in it.
    pub fn remove(&self, paths: &[NotePath]) -> Result<(), IndexError> {
        let mut connection = self.lock();
        let work = connection.transaction()?;
        for path in paths {
            delete(&work, path)?;
        }
        Ok(work.commit()?)
    }

    /// Size and time of each note in the index, to see what changed.
    ///
    /// # Errors
    /// When SQLite fails.
    pub fn known(&self) -> Result<HashMap<NotePath, (u64, i64)>, IndexError> {
        let connection = self.lock();
        let mut rows = connection.prepare_cached("SELECT path, size, modified FROM notes")?;
        let known =
            rows.query_map([], |row| Ok((NotePath::found(row.get(0)?), (row.get(1)?, row.get(2)?))))?;
        Ok(known.collect::<Result<_, _>>()?)
    }

    /// The notes whose title reads like `title`; case and accents are forgiven.
    ///
    /// # Errors
    /// When SQLite fails.
    pub fn by_title(&self, title: &str) -> Result<Vec<NotePath>, IndexError> {
        let connection = self.lock();
        let mut rows =
            connection.prepare_cached("SELECT path FROM notes WHERE key = ?1 ORDER BY path LIMIT 20")?;
        let paths = rows.query_map([fold(title.trim())], |row| Ok(NotePath::found(row.get(0)?)))?;
        Ok(paths.collect::<Result<_, _>>()?)
    }

    /// The title of a note, if it is in the index.
    ///
    /// # Errors
    /// When SQLite fails.
    pub fn title(&self, path: &NotePath) -> Result<Option<String>, IndexError> {
        let connection = self.lock();
        let mut rows = connection.prepare_cached("SELECT title FROM notes WHERE path = ?1")?;
        Ok(rows.query_row([path.as_str()], |row| row.get(0)).optional()?)
    }

    /// Size and time of a note when it was indexed.
    pub(crate) fn stamp_of(&self, path: &NotePath) -> Result<Option<(u64, i64)>, IndexError> {
        let connection = self.lock();
        let mut rows = connection.prepare_cached("SELECT size, modified FROM notes WHERE path = ?1")?;
        Ok(rows.query_row([path.as_str()], |row| Ok((row.get(0)?, row.get(1)?))).optional()?)
    }

    /// How many passages there are.
    pub(crate) fn passages(&self) -> Result<u64, IndexError> {
        Ok(self.lock().query_row("SELECT count(*) FROM passages", [], |row| row.get(0))?)
    }

    /// In how many passages a token stands.
    pub(crate) fn frequency(&self, token: &str) -> Result<u64, IndexError> {
        let connection = self.lock();
        let mut rows = connection.prepare_cached("SELECT doc FROM vocabulary WHERE term = ?1")?;
        Ok(rows.query_row([token], |row| row.get(0)).optional()?.unwrap_or(0))
    }

    /// The tokens that begin with `start`, the most frequent first.
    pub(crate) fn vocabulary(&self, start: &str, limit: usize) -> Result<Vec<String>, IndexError> {
        let connection = self.lock();
        let mut rows = connection
            .prepare_cached("SELECT term FROM vocabulary WHERE term >= ?1 AND term < ?1 || char(1114111) ORDER BY doc DESC LIMIT ?2")?;
        let terms = rows.query_map(params![start, limit], |row| row.get(0))?;
        Ok(terms.collect::<Result<_, _>>()?)
    }

    /// The passages in which any of the tokens stands, the best by BM25 first.
    pub(crate) fn candidates<'a>(
        &self,
        tokens: impl Iterator<Item = &'a str>,
        folder: &str,
        limit: usize,
    ) -> Result<Vec<Stored>, IndexError> {
        let mut quoted: Vec<String> = tokens.map(|token| format!("\"{}\"", token.replace('"', ""))).collect();
        quoted.sort();
        quoted.dedup();
        if quoted.is_empty() {
            return Ok(Vec::new());
        }
        let inside = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        let connection = self.lock();
        let mut rows = connection.prepare_cached(
            "SELECT n.id, n.path, n.title, n.language, p.kind, p.trail, p.first, p.last, p.text
             FROM words JOIN passages p ON p.id = words.rowid JOIN notes n ON n.id = p.note
             WHERE words MATCH ?1 AND substr(n.path, 1, length(?2)) = ?2
             ORDER BY bm25(words, 1.5, 1.5, 1.0) LIMIT ?3",
        )?;
        let found = rows.query_map(params![quoted.join(" OR "), inside, limit], stored)?;
        Ok(found.collect::<Result<_, _>>()?)
    }
}

fn stored(row: &rusqlite::Row<'_>) -> rusqlite::Result<Stored> {
    let trail: String = row.get(5)?;
    let kind = match row.get::<_, u8>(4)? {
        0 => PassageKind::Body,
        1 => PassageKind::FrontMatter,
        _ => PassageKind::Heading,
    };
    let passage = Passage {
        kind,
        trail: trail.split(TRAIL).filter(|heading| !heading.is_empty()).map(str::to_owned).collect(),
        lines: (row.get(6)?, row.get(7)?),
        text: row.get(8)?,
    };
    let language = row.get::<_, Option<usize>>(3)?.and_then(|at| Language::ALL.get(at).copied());
    Ok(Stored {
        note: row.get(0)?,
        path: NotePath::found(row.get(1)?),
        title: row.get(2)?,
        language,
        passage,
    })
}

fn delete(work: &Transaction<'_>, path: &NotePath) -> rusqlite::Result<()> {
    let Some(note) = work
        .prepare_cached("SELECT id FROM notes WHERE path = ?1")?
        .query_row([path.as_str()], |row| row.get::<_, i64>(0))
        .optional()?
    else {
        return Ok(());
    };
    work.prepare_cached("DELETE FROM words WHERE rowid IN (SELECT id FROM passages WHERE note = ?1)")?
        .execute([note])?;
    work.prepare_cached("DELETE FROM passages WHERE note = ?1")?.execute([note])?;
    work.prepare_cached("DELETE FROM notes WHERE id = ?1")?.execute([note])?;
    Ok(())
}

fn insert(work: &Transaction<'_>, note: &Prepared) -> rusqlite::Result<()> {
    work.prepare_cached(
        "INSERT INTO notes (path, title, key, size, modified, language) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?
    .execute(params![
        note.entry.path.as_str(),
        note.title,
        fold(&note.title),
        note.entry.size,
        stamp(note.entry.modified),
        note.language.map(|language| language as usize),
    ])?;
    let id = work.last_insert_rowid();
    for (passage, columns) in &note.passages {
        let kind: u8 = match passage.kind {
            PassageKind::Body => 0,
            PassageKind::FrontMatter => 1,
            PassageKind::Heading => 2,
        };
        work.prepare_cached(
            "INSERT INTO passages (note, kind, trail, first, last, text) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .execute(params![
            id,
            kind,
            passage.trail.join(TRAIL),
            passage.lines.0,
            passage.lines.1,
            passage.text
        ])?;
        work.prepare_cached("INSERT INTO words (rowid, title, heading, body) VALUES (?1, ?2, ?3, ?4)")?
            .execute(params![work.last_insert_rowid(), columns.title, columns.heading, columns.body])?;
    }
    Ok(())
}

/// A time as a number that is equal exactly when the time is.
pub(crate) fn stamp(time: Option<SystemTime>) -> i64 {
    time.and_then(|time| time.duration_since(UNIX_EPOCH).ok()).map_or(0, |since| since.as_nanos() as i64)
}
