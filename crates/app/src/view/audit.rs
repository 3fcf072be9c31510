//! What was decided about calls and what came of them.
//!
//! Invariant: results by hash and size only.

use lectern_core::{ConversationId, ServerId, Timestamp, ToolName, ToolOutcome};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use ts_rs::TS;

/// One line of the audit log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app.ts")]
pub struct AuditEntry {
    /// When.
    #[ts(type = "string")]
    pub at: Timestamp,
    /// Who decided: `user`, `rule`, `default`, or the shell that had no one to ask.
    pub who: String,
    /// In which conversation.
    pub conversation: Option<ConversationId>,
    /// At which server.
    pub server: Option<ServerId>,
    /// Which tool.
    pub tool: ToolName,
    /// With what, secrets masked.
    #[ts(type = "unknown")]
    pub arguments: Value,
    /// What was decided.
    pub decision: AuditVerdict,
    /// By which rule.
    pub rule: Option<String>,
    /// What came of it; none when it did not run or runs still.
    pub outcome: Option<ToolOutcome>,
    /// SHA-256 of the result, in hex.
    pub result_hash: Option<String>,
    /// Size of the result in bytes.
    pub result_bytes: Option<u64>,
    /// Milliseconds that it ran.
    pub duration_ms: Option<u64>,
}

/// What was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export, export_to = "app.ts")]
pub enum AuditVerdict {
    /// It may run.
    Allowed,
    /// It must not.
    Denied,
}
