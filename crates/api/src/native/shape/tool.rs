//! `GET /api/tools` and `POST /api/tools/{name}`.

use serde_json::Value;
use utoipa::ToSchema;

use crate::v1::shape::answer::ListObject;

/// The tools of the user's servers.
#[derive(ToSchema)]
pub struct ToolList {
    object: ListObject,
    data: Vec<Tool>,
}

/// A tool of a server.
#[derive(ToSchema)]
pub struct Tool {
    /// Its name, `server__tool`.
    #[schema(example = "notes__search_notes")]
    name: String,
    /// The server's name in the settings.
    server: String,
    /// A name for people.
    #[schema(required = true)]
    title: Option<String>,
    /// What it does, as its server says.
    description: String,
    /// JSON Schema of its arguments, as its server says.
    input_schema: Value,
    /// JSON Schema of its structured result; null when the server gives none.
    #[schema(required = true)]
    output_schema: Option<Value>,
    annotations: ToolClaims,
    /// Whether the user trusts the server, so that its claims count.
    trusted: bool,
    /// Whether it changes nothing, by the claim of a server that is trusted.
    read_only: bool,
}

/// What the server claims about a tool; null where it says nothing.
#[derive(ToSchema)]
pub struct ToolClaims {
    /// It changes nothing.
    #[schema(required = true)]
    read_only: Option<bool>,
    /// It may destroy.
    #[schema(required = true)]
    destructive: Option<bool>,
    /// Calling it twice does the same as once.
    #[schema(required = true)]
    idempotent: Option<bool>,
    /// It reaches beyond this computer.
    #[schema(required = true)]
    open_world: Option<bool>,
}

/// A call of one tool. Fields that are null count as absent.
#[derive(ToSchema)]
pub struct ToolCallRequest {
    /// Names a session: letters, digits, `_`, `-`, and `.` neither at the beginning nor twice. A new one without it.
    #[schema(pattern = r"^[a-zA-Z0-9_-]+(\.[a-zA-Z0-9_-]+)*\.?$", max_length = 128)]
    session_id: Option<String>,
    /// Held to the tool's own schema; none when they are left out.
    #[schema(value_type = Option<Object>, example = json!({"query": "heat pump"}))]
    arguments: Option<Value>,
}

/// What came of a call that succeeded.
#[derive(ToSchema)]
pub struct ToolCallResult {
    object: ToolResultObject,
    /// Names the call, as the audit log does.
    tool_call_id: String,
    /// The tool.
    tool: String,
    result: ToolOutput,
    /// The session.
    session_id: String,
    /// The session's folder.
    workspace_path: String,
}

#[derive(ToSchema)]
pub enum ToolResultObject {
    #[serde(rename = "tool.result")]
    Result,
}

/// What a tool gave.
#[derive(ToSchema)]
pub struct ToolOutput {
    /// Whether the tool did its work.
    success: bool,
    outcome: OutcomeWord,
    /// Its text; of a single call all of it.
    content: String,
    /// Structured content, when it gave some.
    #[schema(required = true)]
    structured: Option<Value>,
}

/// How a call ended: the tool did its work, or it failed, the user or a rule said no, somebody stopped it.
#[derive(ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum OutcomeWord {
    Succeeded,
    Failed,
    Denied,
    Cancelled,
}
