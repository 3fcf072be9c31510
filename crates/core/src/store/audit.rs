//! The audit log: each decision about a call, written before the call runs.
//!
//! Invariant: entries are only added; they outlive the conversation.

use rusqlite::params;
use sha2::{Digest, Sha256};

use super::{Store, StoreError, TurnKey, from_millis, to_json};
use crate::Timestamp;
use crate::clock;
use crate::ids::{ConversationId, ServerId, ToolCallId, ToolName, TurnId};
use crate::message::{JsonObject, ToolCall};

/// What was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditDecision {
    /// The call runs.
    Allowed,
    /// The call does not run.
    Denied,
}

/// One decision.
#[derive(Clone, Debug, PartialEq)]
pub struct AuditEntry {
    /// When.
    pub at: Timestamp,
    /// Where.
    pub conversation: ConversationId,
    /// In which turn.
    pub turn: TurnId,
    /// The call.
    pub call: ToolCallId,
    /// The tool's public name.
    pub tool: ToolName,
    /// The server that offers it.
    pub server: ServerId,
    /// The arguments.
    pub arguments: JsonObject,
    /// SHA-256 of the arguments as stored, in hex.
    pub arguments_sha256: String,
    /// What was decided.
    pub decision: AuditDecision,
    /// Why: `read-only`, `user: …`, or the rule.
    pub reason: String,
}

impl AuditDecision {
    fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Denied => "denied",
        }
    }
}

impl Store {
    pub(crate) fn append_audit(
        &self,
        key: &TurnKey,
        call: &ToolCall,
        server: &ServerId,
        decision: AuditDecision,
        reason: &str,
    ) -> Result<(), StoreError> {
        let arguments = to_json("arguments", &call.arguments)?;
        let hash = hex(&Sha256::digest(arguments.as_bytes()));
        self.connection()
            .prepare_cached(
                "INSERT INTO audit (at, conversation, turn, call, tool, server, arguments, arguments_sha256,
                 decision, reason) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
            )?
            .execute(params![
                clock::now().as_millisecond(),
                key.conversation.as_str(),
                key.turn.as_str(),
                call.id.as_str(),
                call.tool.as_str(),
                server.as_str(),
                arguments,
                hash,
                decision.as_str(),
                reason
            ])?;
        Ok(())
    }

    /// The decisions of a conversation, oldest first.
    pub fn audit(&self, conversation: &ConversationId) -> Result<Vec<AuditEntry>, StoreError> {
        let connection = self.connection();
        let mut statement = connection.prepare_cached(
            "SELECT at, turn, call, tool, server, arguments, arguments_sha256, decision, reason
             FROM audit WHERE conversation = ?1 ORDER BY id",
        )?;
        let mut rows = statement.query([conversation.as_str()])?;
        let mut out = Vec::new();
        while let Some(row) = rows.next()? {
            let arguments: String = row.get(5)?;
            let decision: String = row.get(7)?;
            out.push(AuditEntry {
                at: from_millis(row.get(0)?),
                conversation: conversation.clone(),
                turn: TurnId(row.get(1)?),
                call: ToolCallId(row.get(2)?),
                tool: ToolName(row.get(3)?),
                server: ServerId(row.get(4)?),
                arguments: serde_json::from_str(&arguments)
                    .map_err(|source| StoreError::Unreadable { what: "arguments", source })?,
                arguments_sha256: row.get(6)?,
                decision: if decision == "allowed" { AuditDecision::Allowed } else { AuditDecision::Denied },
                reason: row.get(8)?,
            });
        }
        Ok(out)
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
