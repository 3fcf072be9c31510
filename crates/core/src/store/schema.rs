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
", "
    ALTER TABLE audit RENAME TO audit_before;
    DROP INDEX audit_by_conversation;
    -- What was decided, and what came of it. Each is a row of its own, because no row is ever changed.
    CREATE TABLE audit (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        at INTEGER NOT NULL,
        -- call, result, approval, permission, server
        kind TEXT NOT NULL,
        who TEXT NOT NULL,
        server TEXT NOT NULL,
        tool TEXT,
        conversation TEXT,
        turn TEXT,
        call TEXT,
        decision TEXT,
        reason TEXT NOT NULL DEFAULT '',
        arguments TEXT,
        arguments_sha256 TEXT,
        outcome TEXT,
        result_sha256 TEXT,
        result_bytes INTEGER,
        duration_ms INTEGER
    ) STRICT;
    INSERT INTO audit (at, kind, who, server, tool, conversation, turn, call, decision, reason, arguments,
        arguments_sha256)
        SELECT at, 'call', '', server, tool, conversation, turn, call, decision, reason, arguments, arguments_sha256
        FROM audit_before ORDER BY id;
    DROP TABLE audit_before;
    CREATE INDEX audit_by_conversation ON audit(conversation);
    CREATE INDEX audit_by_call ON audit(turn, call);
    CREATE INDEX audit_by_time ON audit(at);
    -- Up to which id old rows may go.
    CREATE TABLE audit_rotated (at INTEGER NOT NULL, up_to INTEGER NOT NULL) STRICT;
    CREATE TRIGGER audit_stays BEFORE UPDATE ON audit BEGIN
        SELECT RAISE(ABORT, 'the audit log is only added to');
    END;
    CREATE TRIGGER audit_keeps BEFORE DELETE ON audit
        WHEN OLD.id > (SELECT coalesce(max(up_to), 0) FROM audit_rotated) BEGIN
        SELECT RAISE(ABORT, 'the audit log is only added to');
    END;
    -- REPLACE would delete without asking the trigger above.
    CREATE TRIGGER audit_adds BEFORE INSERT ON audit WHEN EXISTS (SELECT 1 FROM audit WHERE id = NEW.id) BEGIN
        SELECT RAISE(ABORT, 'the audit log is only added to');
    END;
    CREATE TABLE approved_servers (
        server TEXT PRIMARY KEY,
        digest TEXT NOT NULL,
        -- What was approved, for people; secrets are masked.
        shown TEXT NOT NULL,
        at INTEGER NOT NULL,
        -- Whether its tools were listed since.
        listed INTEGER NOT NULL DEFAULT 0
    ) STRICT;
    CREATE TABLE known_tools (
        server TEXT NOT NULL REFERENCES approved_servers(server) ON DELETE CASCADE,
        tool TEXT NOT NULL,
        digest TEXT NOT NULL,
        -- The definition as JSON, to show what changed.
        definition TEXT NOT NULL,
        -- 0: it came later and nobody has looked at it yet.
        seen INTEGER NOT NULL,
        PRIMARY KEY (server, tool)
    ) STRICT, WITHOUT ROWID;
", "
    -- Protocol messages that are too long for an event; the event names them.
    CREATE TABLE long_messages (
        id TEXT PRIMARY KEY,
        turn TEXT NOT NULL REFERENCES turns(id) ON DELETE CASCADE,
        body TEXT NOT NULL
    ) STRICT;
    CREATE INDEX long_messages_by_turn ON long_messages(turn);
", "
    -- What stands for the oldest messages where the model reads them.
    CREATE TABLE summaries (
        up_to TEXT PRIMARY KEY REFERENCES messages(id) ON DELETE CASCADE,
        conversation TEXT NOT NULL REFERENCES conversations(id) ON DELETE CASCADE,
        messages INTEGER NOT NULL,
        body TEXT NOT NULL,
        at INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX summaries_by_conversation ON summaries(conversation);
    -- How many characters of a result the model gets.
    CREATE TABLE cut_results (
        conversation TEXT NOT NULL REFERENCES conversations(id) ON DELETE CASCADE,
        call TEXT NOT NULL,
        characters INTEGER NOT NULL,
        PRIMARY KEY (conversation, call)
    ) STRICT, WITHOUT ROWID;
    -- A JSON object; its keys are the shells' business.
    CREATE TABLE conversation_settings (
        conversation TEXT PRIMARY KEY REFERENCES conversations(id) ON DELETE CASCADE,
        body TEXT NOT NULL
    ) STRICT;
", "
    -- Images of messages: a message and its event name the same one by its digest.
    CREATE TABLE images (
        conversation TEXT NOT NULL REFERENCES conversations(id) ON DELETE CASCADE,
        sha256 TEXT NOT NULL,
        bytes BLOB NOT NULL,
        UNIQUE (conversation, sha256)
    ) STRICT;
", "
    -- The request of the local HTTP API that it belongs to.
    ALTER TABLE audit ADD COLUMN request TEXT;
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
