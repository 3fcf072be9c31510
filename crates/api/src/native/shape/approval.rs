//! `GET /api/approvals` and `POST /api/approvals/{id}`.

use serde_json::Value;
use utoipa::ToSchema;

use super::frame::GrantWord;
use crate::v1::shape::answer::ListObject;

/// The calls that wait for consent, the oldest first.
#[derive(ToSchema)]
pub struct ApprovalList {
    object: ListObject,
    data: Vec<Approval>,
}

/// A call that waits.
#[derive(ToSchema)]
pub struct Approval {
    /// Names it.
    id: String,
    /// The name of the key whose request it belongs to.
    key: String,
    /// The session, when it has one.
    #[schema(required = true)]
    session_id: Option<String>,
    tool_call_id: String,
    /// The tool.
    tool: String,
    #[schema(value_type = Object)]
    arguments: Value,
    /// The answers that are offered.
    choices: Vec<GrantWord>,
}

/// The user's answer. Fields that are null count as absent.
#[derive(ToSchema)]
pub struct ApprovalAnswer {
    decision: Decision,
    /// For how long, with `allow`; once when it is left out.
    grant: Option<GivenGrant>,
}

/// Whether the call may run.
#[derive(ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Decision {
    Allow,
    Deny,
}

/// For how long: this call, or this tool in this session.
#[derive(ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum GivenGrant {
    Once,
    Conversation,
}

/// An answer that was taken.
#[derive(ToSchema)]
pub struct ApprovalAnswered {
    id: String,
    decision: Decision,
}
