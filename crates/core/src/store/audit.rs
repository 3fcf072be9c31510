//! The audit log: each decision about a call, written before the call runs, and what came of it; approvals, changes of
//! permissions and servers.
//!
//! Invariant: rows are only added; SQLite itself refuses anything else. They outlive the conversation, until newer
//! ones push them out. What is long is cut, and hashed whole.
//!
//! Why in the database and not in a file of its own: the decision must be on disk before a call runs, in the same
//! order as the conversation's own writes, also when two processes work at once; and `--server`, `--since` are a query.
//! Who can write the file can still forge it: the log tells the user what happened, it is no proof against the user.

use rusqlite::{OptionalExtension, Row, ToSql, TransactionBehavior, params};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{Store, StoreError, TurnKey, from_millis, to_json};
use crate::Timestamp;
use crate::clock;
use crate::ids::{ConversationId, ServerId, ToolCallId, ToolName, TurnId};
use crate::message::{Content, JsonObject, ToolCall, ToolOutcome, ToolResult};

/// Rows that are kept; older ones go, a tenth at a time.
pub const AUDIT_KEPT: u32 = 50_000;

/// Bytes of arguments that a row keeps, as JSON.
pub const AUDIT_ARGUMENTS: usize = 4_096;

/// Rows between two looks at the size.
const ROTATE_EVERY: i64 = 1_000;

/// Who acts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Actor {
    /// The person at the window.
    Window,
    /// The person, or the script, at the command line.
    #[default]
    Cli,
    /// A client of the local HTTP API.
    Api {
        /// The name of its key.
        key: String,
        /// The request, as the log has it.
        request: Option<String>,
    },
}

/// What a row is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuditKind {
    /// A call of a tool.
    Call,
    /// A server or a tool was approved, or was found changed.
    Approval,
    /// A rule was set or taken back.
    Permission,
    /// A server was added, changed or removed.
    Server,
}

/// What was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuditDecision {
    /// The call runs.
    Allowed,
    /// The user or a rule said no.
    Denied,
    /// The user stopped before it was decided.
    Cancelled,
    /// It could not run at all: no such tool, or wrong arguments.
    Refused,
}

/// One entry, with what came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct AuditEntry {
    /// Counts up; gaps are possible.
    pub id: i64,
    /// When it was decided.
    pub at: Timestamp,
    /// What it is about.
    pub kind: AuditKind,
    /// Who acted: `window`, `cli`, `api:NAME`; empty in entries of the first version.
    pub who: String,
    /// The request of the local HTTP API that it belongs to.
    pub request: Option<String>,
    /// The server; empty when the call named no known tool.
    pub server: ServerId,
    /// The tool's public name.
    pub tool: Option<ToolName>,
    /// Where.
    pub conversation: Option<ConversationId>,
    /// In which turn.
    pub turn: Option<TurnId>,
    /// The call.
    pub call: Option<ToolCallId>,
    /// What was decided; none for anything but calls.
    pub decision: Option<AuditDecision>,
    /// Why: `read-only`, `user: …`, `rule: …`, `answered from memory`; or what was approved, set, added.
    pub reason: String,
    /// The arguments, secrets masked. Long ones are an object with `cut`, `bytes` and `start`.
    pub arguments: Option<Value>,
    /// SHA-256 of the arguments as the call had them, as JSON, in hex.
    pub arguments_sha256: Option<String>,
    /// What came of the call; none while it runs, or when Lectern ended under it.
    pub outcome: Option<AuditOutcome>,
}

/// What came of a call that was allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditOutcome {
    /// How it ended.
    pub outcome: ToolOutcome,
    /// SHA-256 of the result's content and structured content, as JSON, in hex.
    pub result_sha256: String,
    /// Bytes of the same.
    pub result_bytes: u64,
    /// Milliseconds.
    pub duration_ms: u64,
}

/// Which entries are wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditQuery {
    /// Of this conversation.
    pub conversation: Option<ConversationId>,
    /// About this server.
    pub server: Option<ServerId>,
    /// About this tool, by its public name.
    pub tool: Option<ToolName>,
    /// Decided then or later.
    pub since: Option<Timestamp>,
    /// With a greater id.
    pub after: Option<i64>,
    /// The latest ones at most; all when none.
    pub limit: Option<u32>,
}

/// A decision about a call, to be written.
pub(crate) struct Decided<'a> {
    pub key: &'a TurnKey,
    pub who: &'a Actor,
    pub call: &'a ToolCall,
    /// The arguments to keep.
    pub masked: JsonObject,
    /// Empty when the call names no known tool.
    pub server: &'a str,
    pub decision: AuditDecision,
    pub reason: &'a str,
}

impl std::fmt::Display for Actor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Window => f.write_str("window"),
            Self::Cli => f.write_str("cli"),
            Self::Api { key, .. } => write!(f, "api:{key}"),
        }
    }
}

impl Actor {
    /// The request of the local HTTP API, when it is one.
    fn request(&self) -> Option<&str> {
        match self {
            Self::Window | Self::Cli => None,
            Self::Api { request, .. } => request.as_deref(),
        }
    }
}

impl AuditKind {
    /// As it is stored and printed.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Approval => "approval",
            Self::Permission => "permission",
            Self::Server => "server",
        }
    }

    fn read(text: &str) -> Self {
        match text {
            "approval" => Self::Approval,
            "permission" => Self::Permission,
            "server" => Self::Server,
            _ => Self::Call,
        }
    }
}

impl AuditDecision {
    /// As it is stored and printed.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Denied => "denied",
            Self::Cancelled => "cancelled",
            Self::Refused => "refused",
        }
    }

    fn read(text: &str) -> Self {
        match text {
            "allowed" => Self::Allowed,
            "cancelled" => Self::Cancelled,
            "refused" => Self::Refused,
            _ => Self::Denied,
        }
    }
}

impl Store {
    /// Writes down what was decided about a call.
    pub(crate) fn append_decision(&self, decided: &Decided<'_>) -> Result<(), StoreError> {
        let arguments = to_json("arguments", &decided.call.arguments)?;
        let kept = bounded(to_json("arguments", &decided.masked)?);
        self.append(
            "INSERT INTO audit (at, kind, who, server, tool, conversation, turn, call, decision, reason, arguments,
             arguments_sha256, request) VALUES (?1, 'call', ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
            params![
                clock::now().as_millisecond(),
                decided.who.to_string(),
                decided.server,
                decided.call.tool.as_str(),
                decided.key.conversation.as_str(),
                decided.key.turn.as_str(),
                decided.call.id.as_str(),
                decided.decision.as_str(),
                decided.reason,
                kept,
                sha256(arguments.as_bytes()),
                decided.who.request(),
            ],
        )
        .map(drop)
    }

    /// Writes down that a call was answered with what an earlier one returned, and that nothing ran. False, and nothing is
    /// written, when the log no longer has that one.
    pub fn append_again(&self, who: &Actor, turn: &TurnId, call: &ToolCallId) -> Result<bool, StoreError> {
        let (now, again) = (clock::now().as_millisecond(), TurnId::fresh());
        // The result first: a decision without one is a call that runs.
        let found = self.append(
            "INSERT INTO audit (at, kind, who, server, tool, conversation, turn, call, outcome, result_sha256,
             result_bytes, duration_ms) SELECT ?1, kind, who, server, tool, conversation, ?2, call, outcome,
             result_sha256, result_bytes, 0 FROM audit WHERE turn = ?3 AND call = ?4 AND kind = 'result' LIMIT 1",
            params![now, again.as_str(), turn.as_str(), call.as_str()],
        )?;
        if found == 0 {
            return Ok(false);
        }
        let found = self.append(
            "INSERT INTO audit (at, kind, who, request, server, tool, conversation, turn, call, decision, reason,
             arguments, arguments_sha256) SELECT ?1, kind, ?5, ?6, server, tool, conversation, ?2, call, decision,
             'answered from memory', arguments, arguments_sha256 FROM audit
             WHERE turn = ?3 AND call = ?4 AND kind = 'call' LIMIT 1",
            params![
                now,
                again.as_str(),
                turn.as_str(),
                call.as_str(),
                who.to_string(),
                who.request()
            ],
        )?;
        Ok(found > 0)
    }

    /// Writes down what came of a call. `result` is as the server gave it.
    pub(crate) fn append_outcome(
        &self,
        key: &TurnKey,
        server: &ServerId,
        result: &ToolResult,
        duration_ms: u64,
    ) -> Result<(), StoreError> {
        let (hash, bytes) = digest(&result.content, result.structured.as_ref())?;
        self.append(
            "INSERT INTO audit (at, kind, who, server, tool, conversation, turn, call, outcome, result_sha256,
             result_bytes, duration_ms) VALUES (?1, 'result', '', ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
            params![
                clock::now().as_millisecond(),
                server.as_str(),
                result.tool.as_str(),
                key.conversation.as_str(),
                key.turn.as_str(),
                result.call.as_str(),
                outcome_text(result.outcome),
                hash,
                bytes.cast_signed(),
                duration_ms.cast_signed(),
            ],
        )
        .map(drop)
    }

    /// Writes down something that is no call: an approval, a rule, a server that was added or removed.
    pub fn append_note(
        &self,
        kind: AuditKind,
        who: &Actor,
        server: &ServerId,
        tool: Option<&ToolName>,
        what: &str,
    ) -> Result<(), StoreError> {
        self.append(
            "INSERT INTO audit (at, kind, who, server, tool, reason, request) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            params![
                clock::now().as_millisecond(),
                kind.as_str(),
                who.to_string(),
                server.as_str(),
                tool.map(ToolName::as_str),
                what,
                who.request(),
            ],
        )
        .map(drop)
    }

    /// The words of the last entry of this kind about a tool, or about a server as a whole.
    pub fn last_note(
        &self,
        kind: AuditKind,
        server: &ServerId,
        tool: Option<&ToolName>,
    ) -> Result<Option<String>, StoreError> {
        let connection = self.connection();
        let mut statement = connection.prepare_cached(
            "SELECT reason FROM audit WHERE kind = ?1 AND (tool = ?3 OR (?3 IS NULL AND tool IS NULL AND server = ?2))
             ORDER BY id DESC LIMIT 1",
        )?;
        let asked = params![kind.as_str(), server.as_str(), tool.map(ToolName::as_str)];
        Ok(statement.query_row(asked, |row| row.get(0)).optional()?)
    }

    /// How many rows were added: one, or none where a statement adds what it finds.
    fn append(&self, sql: &str, values: &[&dyn ToSql]) -> Result<usize, StoreError> {
        if let Some(main) = &self.0.main {
            return main.append(sql, values);
        }
        let (added, id) = {
            let connection = self.connection();
            let added = connection.prepare_cached(sql)?.execute(values)?;
            (added, connection.last_insert_rowid())
        };
        if added > 0 && id % ROTATE_EVERY == 0 {
            self.rotate_audit(AUDIT_KEPT)?;
        }
        Ok(added)
    }

    /// Lets the oldest rows go when there are more than `kept`, and a tenth more, so that it is seldom done.
    pub fn rotate_audit(&self, kept: u32) -> Result<(), StoreError> {
        let mut connection = self.connection();
        let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let rows: i64 = tx.query_row("SELECT count(*) FROM audit", [], |row| row.get(0))?;
        if rows <= i64::from(kept) {
            return Ok(());
        }
        let gone = rows - i64::from(kept - kept / 10);
        tx.execute("DELETE FROM audit_rotated", [])?;
        tx.execute(
            "INSERT INTO audit_rotated (at, up_to)
             SELECT ?1, max(id) FROM (SELECT id FROM audit ORDER BY id LIMIT ?2)",
            params![clock::now().as_millisecond(), gone],
        )?;
        tx.execute("DELETE FROM audit WHERE id <= (SELECT max(up_to) FROM audit_rotated)", [])?;
        Ok(tx.commit()?)
    }

    /// The entries that match, oldest first.
    pub fn audit(&self, query: &AuditQuery) -> Result<Vec<AuditEntry>, StoreError> {
        let connection = self.connection();
        let mut statement = connection.prepare_cached(QUERY)?;
        let mut rows = statement.query(params![
            query.conversation.as_ref().map(ConversationId::as_str),
            query.server.as_ref().map(ServerId::as_str),
            query.tool.as_ref().map(ToolName::as_str),
            query.since.map(Timestamp::as_millisecond),
            query.after,
            query.limit.map_or(-1, i64::from),
        ])?;
        let mut out = Vec::new();
        while let Some(row) = rows.next()? {
            out.push(entry(row)?);
        }
        out.reverse();
        Ok(out)
    }
}

/// The latest first, so that a limit keeps those. A call's result is the first row of its kind for it.
const QUERY: &str = "
    SELECT a.id, a.at, a.kind, a.who, a.server, a.tool, a.conversation, a.turn, a.call, a.decision, a.reason,
        a.arguments, a.arguments_sha256, r.outcome, r.result_sha256, r.result_bytes, r.duration_ms, a.request
    FROM audit a LEFT JOIN audit r ON a.kind = 'call' AND r.id = (
        SELECT min(id) FROM audit WHERE turn = a.turn AND call = a.call AND kind = 'result')
    WHERE a.kind <> 'result'
        AND (?1 IS NULL OR a.conversation = ?1) AND (?2 IS NULL OR a.server = ?2)
        AND (?3 IS NULL OR a.tool = ?3) AND (?4 IS NULL OR a.at >= ?4) AND (?5 IS NULL OR a.id > ?5)
    ORDER BY a.id DESC LIMIT ?6";

fn entry(row: &Row<'_>) -> Result<AuditEntry, StoreError> {
    let text = |column| row.get::<_, Option<String>>(column);
    let arguments = text(11)?.map(|text| serde_json::from_str(&text)).transpose();
    Ok(AuditEntry {
        id: row.get(0)?,
        at: from_millis(row.get(1)?),
        kind: AuditKind::read(&row.get::<_, String>(2)?),
        who: row.get(3)?,
        request: text(17)?,
        server: ServerId(row.get(4)?),
        tool: text(5)?.map(ToolName),
        conversation: text(6)?.map(ConversationId),
        turn: text(7)?.map(TurnId),
        call: text(8)?.map(ToolCallId),
        decision: text(9)?.map(|decision| AuditDecision::read(&decision)),
        reason: row.get(10)?,
        arguments: arguments.map_err(|source| StoreError::Unreadable { what: "arguments", source })?,
        arguments_sha256: text(12)?,
        outcome: text(13)?.map(|outcome| outcome_of(row, &outcome)).transpose()?,
    })
}

fn outcome_of(row: &Row<'_>, outcome: &str) -> Result<AuditOutcome, StoreError> {
    Ok(AuditOutcome {
        outcome: match outcome {
            "succeeded" => ToolOutcome::Succeeded,
            "denied" => ToolOutcome::Denied,
            "cancelled" => ToolOutcome::Cancelled,
            _ => ToolOutcome::Failed,
        },
        result_sha256: row.get(14)?,
        result_bytes: row.get::<_, i64>(15)?.cast_unsigned(),
        duration_ms: row.get::<_, i64>(16)?.cast_unsigned(),
    })
}

fn outcome_text(outcome: ToolOutcome) -> &'static str {
    match outcome {
        ToolOutcome::Succeeded => "succeeded",
        ToolOutcome::Failed => "failed",
        ToolOutcome::Denied => "denied",
        ToolOutcome::Cancelled => "cancelled",
    }
}

/// Hash and size of a result as JSON: `{"content": […], "structured": …}`.
fn digest(content: &[Content], structured: Option<&Value>) -> Result<(String, u64), StoreError> {
    let text = to_json("result", &json!({ "content": content, "structured": structured }))?;
    Ok((sha256(text.as_bytes()), text.len() as u64))
}

fn bounded(arguments: String) -> String {
    if arguments.len() <= AUDIT_ARGUMENTS {
        return arguments;
    }
    let start = &arguments[..arguments.floor_char_boundary(AUDIT_ARGUMENTS / 4)];
    json!({ "cut": true, "bytes": arguments.len(), "start": start }).to_string()
}

pub(super) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
