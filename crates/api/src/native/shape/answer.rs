//! `POST /api/chat/completions`: what is asked beyond OpenAI's fields, and the answer in one body.

use std::borrow::Cow;

use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;
use utoipa::{PartialSchema, ToSchema};

use super::joined;
use crate::v1::shape::answer::ChatCompletion;
use crate::v1::shape::asked::ChatRequest;

/// The fields of `ChatRequest` and of [`SessionFields`].
pub struct SessionRequest;

/// What a client asks for beyond OpenAI's fields.
#[derive(ToSchema)]
struct SessionFields {
    /// Names a session: letters, digits, `_`, `-`, and `.` neither at the beginning nor twice. A new one without it.
    #[schema(pattern = r"^[a-zA-Z0-9_-]+(\.[a-zA-Z0-9_-]+)*\.?$", max_length = 128)]
    session_id: Option<String>,
    /// Who runs the tools of the user's servers; `auto` when it is left out.
    mode: Option<RunBy>,
}

/// Who runs the tools of the user's servers: this server in the middle of the answer, or the client.
#[derive(ToSchema)]
#[serde(rename_all = "lowercase")]
enum RunBy {
    Auto,
    Manual,
}

impl PartialSchema for SessionRequest {
    fn schema() -> RefOr<Schema> {
        joined::<ChatRequest, SessionFields>(
            "What `/v1/chat/completions` takes, and a session. Of `messages`, what follows the last answer is new; a session \
             that begins takes all of them. Without `tools` all tools of the user's servers are offered, with an empty list \
             none.",
        )
    }
}

impl ToSchema for SessionRequest {
    fn name() -> Cow<'static, str> {
        "SessionRequest".into()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        ChatRequest::schemas(schemas);
        SessionFields::schemas(schemas);
    }
}

/// The fields of `ChatCompletion` and of [`Executed`].
pub struct SessionCompletion;

#[derive(ToSchema)]
struct Executed {
    tool_execution: ToolExecution,
}

/// What ran here, and where.
#[derive(ToSchema)]
pub struct ToolExecution {
    /// Whether any tool ran.
    executed: bool,
    /// The tools that ran, in their order.
    tools_called: Vec<String>,
    /// The session.
    session_id: String,
    /// The session's conversation, as the audit log and the events name it.
    conversation: String,
    /// The session's folder.
    workspace_path: String,
}

impl PartialSchema for SessionCompletion {
    fn schema() -> RefOr<Schema> {
        joined::<ChatCompletion, Executed>("A whole answer, with what ran here.")
    }
}

impl ToSchema for SessionCompletion {
    fn name() -> Cow<'static, str> {
        "SessionCompletion".into()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        ChatCompletion::schemas(schemas);
        Executed::schemas(schemas);
    }
}
