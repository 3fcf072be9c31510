//! `GET /api/sessions/{id}` and `DELETE /api/sessions/{id}`.

use axum::Json;
use axum::extract::{Extension, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::json;

use super::shape::session::SessionShown;
use crate::auth::{Caller, Scope};
use crate::body::Name;
use crate::document::Failures;
use crate::error::ApiError;
use crate::state::Api;

/// What was said in a session.
#[utoipa::path(
    get,
    path = "/api/sessions/{id}",
    operation_id = "get_session",
    tag = "Lectern",
    params(("id" = String, Path, description = "The session", min_length = 1)),
    responses((status = 200, description = "The session", body = SessionShown), Failures),
)]
pub async fn show(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    Name(id): Name,
) -> Result<Response, ApiError> {
    caller.must(Scope::Models)?;
    let session = api.sessions.known(&caller.id, id)?;
    let messages = api.sessions.history(&session)?;
    let body = json!({
        "object": "session",
        "id": session.id,
        "conversation": session.conversation,
        "workspace_path": session.workspace,
        "messages": messages,
    });
    Ok(Json(body).into_response())
}

/// Deletes a session.
///
/// Its history and its files go with it; an answer that is being made is stopped.
#[utoipa::path(
    delete,
    path = "/api/sessions/{id}",
    operation_id = "delete_session",
    tag = "Lectern",
    params(("id" = String, Path, description = "The session", min_length = 1)),
    responses((status = 204, description = "It is gone"), Failures),
)]
pub async fn delete(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    Name(id): Name,
) -> Result<Response, ApiError> {
    caller.must(Scope::Models)?;
    let session = api.sessions.known(&caller.id, id)?;
    let gone = api.sessions.delete(session).await?;
    api.backend.forget(vec![gone]).await;
    Ok(StatusCode::NO_CONTENT.into_response())
}
