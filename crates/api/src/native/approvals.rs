//! `GET /api/approvals` and `POST /api/approvals/{id}`: for keys that may answer for the user.

use axum::Json;
use axum::extract::{Extension, State};
use axum::response::{IntoResponse, Response};
use lectern_core::{Grant, PermissionAnswer};
use serde_json::{Value, json};

use super::shape::approval::{ApprovalAnswer, ApprovalAnswered, ApprovalList};
use crate::auth::{Caller, Scope};
use crate::body::{JsonBody, Name};
use crate::document::Failures;
use crate::error::ApiError;
use crate::fields::{Fields, missing, shortened};
use crate::state::Api;

/// The calls that wait for consent.
#[utoipa::path(
    get,
    path = "/api/approvals",
    operation_id = "list_approvals",
    tag = "Lectern",
    responses((status = 200, description = "The calls that wait", body = ApprovalList), Failures),
)]
pub async fn list(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
) -> Result<Response, ApiError> {
    caller.must(Scope::Approvals)?;
    let data: Vec<Value> = api.approvals.waiting().iter().map(crate::approvals::Waiting::view).collect();
    Ok(Json(json!({"object": "list", "data": data})).into_response())
}

/// Answers for the user.
///
/// An "always" is for the window alone.
#[utoipa::path(
    post,
    path = "/api/approvals/{id}",
    operation_id = "answer_approval",
    tag = "Lectern",
    params(("id" = String, Path, description = "The call that waits", min_length = 1)),
    request_body = ApprovalAnswer,
    responses((status = 200, description = "It was answered", body = ApprovalAnswered), Failures),
)]
pub async fn answer(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    Name(id): Name,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    caller.must(Scope::Approvals)?;
    let mut fields = Fields::of("", body)?;
    let decision =
        fields.word("decision", &["allow", "deny"])?.ok_or_else(|| missing("decision".to_owned()))?;
    let grant = fields.word("grant", &["once", "conversation"])?;
    fields.end()?;
    let waiting = api.approvals.get(&id).ok_or_else(|| gone(&id))?;
    let grant = if grant == Some("conversation") { Grant::Conversation } else { Grant::Once };
    if decision == "allow" && !waiting.choices.contains(&grant) {
        let message = "this call can be allowed once only";
        return Err(ApiError::invalid("invalid_value", "grant", message));
    }
    let answer = if decision == "allow" { PermissionAnswer::Allow { grant } } else { PermissionAnswer::Deny };
    if !api.approvals.answer(&id, answer) {
        return Err(gone(&id));
    }
    Ok(Json(json!({"id": id, "decision": decision})).into_response())
}

fn gone(id: &str) -> ApiError {
    let message = format!("nothing waits under `{}`", shortened(id));
    ApiError::not_found("approval_not_found", message)
}
