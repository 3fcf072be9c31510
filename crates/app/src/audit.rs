//! The audit log as shells show it.
//!
//! Invariant: reading starts nothing and changes nothing but what opening the store does.

use lectern_core::store::{AuditDecision, AuditEntry as Stored, AuditKind, AuditQuery};
use lectern_core::{ServerId, Store, Timestamp, ToolName};

use crate::home::Home;
use crate::problem::of_store;
use crate::view::{AuditAbout, AuditEntry, AuditVerdict, Problem};

/// Which entries are wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// About this server.
    pub server: Option<ServerId>,
    /// About this tool, by its public name.
    pub tool: Option<ToolName>,
    /// Then or later.
    pub since: Option<Timestamp>,
    /// With a greater number.
    pub after: Option<i64>,
    /// The latest at most; all when none.
    pub limit: Option<u32>,
}

/// Reads the log of a home without an engine.
pub struct AuditLog(Store);

impl AuditLog {
    /// Opens it.
    pub fn open(home: &Home) -> Result<Self, Problem> {
        Store::open(&home.store()).map(Self).map_err(|error| of_store(&error))
    }

    /// The entries that match, oldest first.
    pub fn read(&self, filter: &AuditFilter) -> Result<Vec<AuditEntry>, Problem> {
        read(&self.0, filter)
    }
}

pub(crate) fn read(store: &Store, filter: &AuditFilter) -> Result<Vec<AuditEntry>, Problem> {
    let AuditFilter { server, tool, since, after, limit } = filter.clone();
    let query = AuditQuery { conversation: None, server, tool, since, after, limit };
    let entries = store.audit(&query).map_err(|error| of_store(&error))?;
    Ok(entries.into_iter().map(shown).collect())
}

fn shown(entry: Stored) -> AuditEntry {
    let outcome = entry.outcome.as_ref();
    AuditEntry {
        id: entry.id,
        at: entry.at,
        about: match entry.kind {
            AuditKind::Call => AuditAbout::Call,
            AuditKind::Approval => AuditAbout::Approval,
            AuditKind::Permission => AuditAbout::Permission,
            AuditKind::Server => AuditAbout::Server,
        },
        who: entry.who,
        request: entry.request,
        conversation: entry.conversation,
        server: (!entry.server.as_str().is_empty()).then_some(entry.server),
        tool: entry.tool,
        arguments: entry.arguments,
        arguments_hash: entry.arguments_sha256,
        decision: entry.decision.map(|decision| match decision {
            AuditDecision::Allowed => AuditVerdict::Allowed,
            AuditDecision::Denied => AuditVerdict::Denied,
            AuditDecision::Cancelled => AuditVerdict::Cancelled,
            AuditDecision::Refused => AuditVerdict::Refused,
        }),
        rule: Some(entry.reason).filter(|reason| !reason.is_empty()),
        outcome: outcome.map(|outcome| outcome.outcome),
        result_hash: outcome.map(|outcome| outcome.result_sha256.clone()),
        result_bytes: outcome.map(|outcome| outcome.result_bytes),
        duration_ms: outcome.map(|outcome| outcome.duration_ms),
    }
}
