//! The tables, and how an older file becomes a newer one.
//!
//! Invariant: a migration that was ever released never changes; the version of a file is SQLite's `user_version`.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, TransactionBehavior};

use super::StoreError;

/// How long one process waits for another one's write.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

const BUSY_PAUSE: Duration = Duration::from_millis(10);

/// Entry `n` brings a file from version `n` to `n + 1`.
const MIGRATIONS: &[&str] = &["
    CREATE TABLE conversations (
        id TEXT PRIMARY KEY,
        title TEXT NOT NULL DEFAULT '',
        created_at INTEGER NOT NULL,
        updated_at INTEGER NOT NULL,
        deleted_at INTEGER,
        -- The last message of the active branch.
        leaf TEXT
    ) STRICT;
    CREATE TABLE turns (
        id TEXT PRIMARY KEY,
        conversation TEXT NOT NULL REFERENCES conversations(id) ON DELETE CASCADE,
        started_at INTEGER NOT NULL,
        finished INTEGER NOT NULL DEFAULT 0,
        -- The open store that runs it; see instance.rs.
        instance TEXT NOT NULL
    ) STRICT;
    CREATE INDEX turns_by_conversation ON turns(conversation, started_at);
    CREATE INDEX turns_unfinished ON turns(finished) WHERE finished = 0;
    CREATE TABLE messages (
        id TEXT PRIMARY KEY,
        conversation TEXT NOT NULL REFERENCES conversations(id) ON DELETE CASCADE,
        parent TEXT REFERENCES messages(id) ON DELETE CASCADE,
        turn TEXT NOT NULL REFERENCES turns(id) ON DELETE CASCADE,
        at INTEGER NOT NULL,
        body TEXT NOT NULL
    ) STRICT;
    CREATE INDEX messages_by_conversation ON messages(conversation);
    CREATE INDEX messages_by_parent ON messages(parent);
    CREATE INDEX messages_by_turn ON messages(turn);
    CREATE TABLE events (
        turn TEXT NOT NULL REFERENCES turns(id) ON DELETE CASCADE,
        seq INTEGER NOT NULL,
        body TEXT NOT NULL,
        PRIMARY KEY (turn, seq)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE drafts (
        turn TEXT PRIMARY KEY REFERENCES turns(id) ON DELETE CASCADE,
        step INTEGER NOT NULL,
        -- The last seq that was given out when this was written; deltas have one but are not stored.
        seq INTEGER NOT NULL,
        body TEXT NOT NULL
    ) STRICT;
    -- Outlives the conversation: no foreign keys.
    CREATE TABLE audit (
        id INTEGER PRIMARY KEY,
        at INTEGER NOT NULL,
        conversation TEXT NOT NULL,
        turn TEXT NOT NULL,
        call TEXT NOT NULL,
        tool TEXT NOT NULL,
        server TEXT NOT NULL,
        arguments TEXT NOT NULL,
        arguments_sha256 TEXT NOT NULL,
        decision TEXT NOT NULL,
        reason TEXT NOT NULL
    ) STRICT;
    CREATE INDEX audit_by_conversation ON audit(conversation);
"];

/// Sets the connection up and brings the file to the latest version.
pub(super) fn prepare(connection: &mut Connection, path: &Path) -> Result<(), StoreError> {
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    // Full: what a turn stored survives a power cut too. Events are written in batches, so it costs little.
    connection.pragma_update(None, "synchronous", "FULL")?;
    use_write_ahead_log(connection)?;
    connection.set_prepared_statement_cache_capacity(64);
    migrate(connection, path)
}

/// SQLite does not wait by itself when two processes bring a new file to this mode at once.
fn use_write_ahead_log(connection: &Connection) -> Result<(), StoreError> {
    let mut waited = Duration::ZERO;
    loop {
        match connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(())) {
            Err(error)
                if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) && waited < BUSY_TIMEOUT =>
            {
                std::thread::sleep(BUSY_PAUSE);
                waited += BUSY_PAUSE;
            }
            done => return Ok(done?),
        }
    }
}

fn migrate(connection: &mut Connection, path: &Path) -> Result<(), StoreError> {
    // Immediate: of two processes that open an old file at once, the second one waits and finds it new.
    let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let found: u32 = tx.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let known = u32::try_from(MIGRATIONS.len()).unwrap_or(u32::MAX);
    if found > known {
        return Err(StoreError::Newer { path: path.to_owned(), found, known });
    }
    for migration in MIGRATIONS.iter().skip(found as usize) {
        tx.execute_batch(migration)?;
    }
    tx.pragma_update(None, "user_version", known)?;
    Ok(tx.commit()?)
}
