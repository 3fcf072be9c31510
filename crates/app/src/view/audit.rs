//! What was decided about calls and what came of them.
//!
//! Invariant: results by hash and size only.

use lectern_core::{ConversationId, ServerId, Timestamp, ToolName, ToolOutcome};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use ts_rs::TS;

/// One line of the audit log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/audit.ts")]
pub struct AuditEntry {
    /// Counts up; what comes later has a greater one.
    #[ts(type = "number")]
    pub id: i64,
    /// When.
    #[ts(type = "string")]
    pub at: Timestamp,
    /// What it is about.
    pub about: AuditAbout,
    /// Who acted: `window`, `cli`, or `api:` and the name of a key.
    pub who: String,
    /// The request of the local API that it belongs to, as its header `x-request-id` and the log have it.
    pub request: Option<String>,
    /// In which conversation.
    pub conversation: Option<ConversationId>,
    /// At which server.
    pub server: Option<ServerId>,
    /// Which tool, by its public name.
    pub tool: Option<ToolName>,
    /// With what, secrets masked; `{"cut": true, "bytes", "start"}` when it is long. Only of calls.
    #[ts(type = "unknown | null")]
    pub arguments: Option<Value>,
    /// SHA-256 of the arguments as the call had them, in hex.
    pub arguments_hash: Option<String>,
    /// What was decided. Only of calls.
    pub decision: Option<AuditVerdict>,
    /// By which rule (`user: once`, `rule: server notes (settings)`, `read-only`), or `answered from memory`; or what was
    /// approved, set, added.
    pub rule: Option<String>,
    /// What came of it; none when it did not run, runs still, or was never finished.
    pub outcome: Option<ToolOutcome>,
    /// SHA-256 of the result, in hex.
    pub result_hash: Option<String>,
    /// Size of the result in bytes.
    pub result_bytes: Option<u64>,
    /// Milliseconds that it ran.
    pub duration_ms: Option<u64>,
}

/// What an entry is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export, export_to = "app/audit.ts")]
pub enum AuditAbout {
    /// A call of a tool.
    Call,
    /// A server or a tool that was approved.
    Approval,
    /// A rule that was set or taken back.
    Permission,
    /// A server that was added, changed or removed.
    Server,
}

/// What was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export, export_to = "app/audit.ts")]
pub enum AuditVerdict {
    /// It may run.
    Allowed,
    /// It must not.
    Denied,
    /// The user stopped before it was decided.
    Cancelled,
    /// It could not run: no such tool, or wrong arguments.
    Refused,
}
