-- A file as the first version made it, with one decision.
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
INSERT INTO audit (at, conversation, turn, call, tool, server, arguments, arguments_sha256, decision, reason)
    VALUES (1795212000000, 'c', 't', 'a', 'notes__read_note', 'notes', '{"path":"A.md"}', 'x', 'allowed', 'read-only');
PRAGMA user_version = 1;
