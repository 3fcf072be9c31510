//! `GET /api/tools` and `POST /api/tools/{name}`.

use axum::body::Body;
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::stream;
use lectern_core::{JsonObject, ToolCallId, ToolOutcome, ToolSpec};
use serde_json::{Value, json};

use super::frames::result_view;
use super::one::{Ran, Wanted, run, unkept};
use super::shape::tool::{ToolCallRequest, ToolCallResult, ToolList};
use crate::auth::{Caller, Scope};
use crate::body::{JsonBody, Name};
use crate::bounded::Stopped;
use crate::cached::{self, Answer, FRESH, Question};
use crate::document::Failures;
use crate::error::{ApiError, ErrorKind};
use crate::fields::{Fields, shortened, wrong_type};
use crate::sessions::Session;
use crate::state::Api;

/// Bytes that are written at once.
const PIECE: usize = 64 << 10;

/// All tools of the user's servers.
#[utoipa::path(
    get,
    path = "/api/tools",
    operation_id = "list_tools",
    tag = "Lectern",
    params(("If-None-Match" = Option<String>, Header, nullable = false, description = "The tag of a list that the client has")),
    responses(
        (status = 200, description = "The tools", body = ToolList, headers(("ETag" = String, description = "Its tag"))),
        (status = 304, description = "The client has this list already"),
        Failures,
    ),
)]
pub async fn list(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    caller.must(Scope::Tools)?;
    api.backend.tools_settled().await;
    let data: Vec<Value> = api.backend.tools().tools().iter().map(view).collect();
    let body = Bytes::from(json!({"object": "list", "data": data}).to_string());
    let tag = cached::tag(&body);
    Ok(tagged(&headers, &tag, body, "no-cache"))
}

/// Runs one tool.
///
/// The call is held to the tool's schema, asks for consent and stands in the audit log as any other.
#[utoipa::path(
    post,
    path = "/api/tools/{name}",
    operation_id = "call_tool",
    tag = "Lectern",
    params(
        ("name" = String, Path, description = "The tool", min_length = 1, example = "notes__search_notes"),
        ("If-None-Match" = Option<String>, Header, nullable = false, description = "The tag of a result that the client has"),
        ("Cache-Control" = Option<String>, Header, nullable = false, description = "`no-cache` asks the tool anew"),
    ),
    request_body = ToolCallRequest,
    responses(
        (
            status = 200,
            description = "What the tool gave",
            body = ToolCallResult,
            headers(("ETag" = String, description = "Its tag, of tools that only read")),
        ),
        (status = 304, description = "The client has this result already"),
        Failures,
    ),
)]
pub async fn call(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    Name(name): Name,
    headers: HeaderMap,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    caller.must(Scope::Tools)?;
    let (session, arguments) = read(body)?;
    let is_named = session.is_some();
    api.backend.tools_settled().await;
    let there = api.backend.tools().tools();
    let spec = there.iter().find(|spec| spec.name.as_str() == name).ok_or_else(|| not_found(&name))?;
    let session = api.sessions.session(&caller.id, session)?;
    check(spec, &arguments)?;
    // A session that nobody named is new, and its folder is empty: what another new one was told holds for it too, unless
    // the tool's server knows the folder.
    let place = if is_named { session.conversation.as_str() } else { "" };
    let may_keep = cached::may_keep(spec) && (is_named || !api.backend.works_in_folders(&spec.server));
    let question = may_keep.then(|| Question::new(&caller.id, place, spec, &arguments));
    let fresh = format!("private, max-age={}", FRESH.as_secs());
    if let Some(question) = &question
        && !wants_anew(&headers)
        && let Some(answer) = remembered(&api, &caller, question)?
    {
        let body = told(&session, spec, &answer.call.1, &answer.result);
        return Ok(tagged(&headers, &answer.tag, body, &fresh));
    }
    let begun = api.cached.begin();
    let ran = run(&api, &caller, &session, Wanted { tool: spec.name.clone(), arguments }).await?;
    refused(&ran)?;
    let mut result = result_view(&ran.result);
    if let Some(whole) = ran.whole {
        result["content"] = Value::String(whole);
    }
    let body = told(&session, spec, &ran.result.call, &result);
    let Some(question) = question else { return Ok(in_pieces(body)) };
    let answer = Answer::new(result, (ran.turn, ran.result.call));
    let response = tagged(&headers, &answer.tag, body, &fresh);
    api.cached.keep(question, answer, begun);
    Ok(response)
}

/// What came of a call, for the session that it is told to.
fn told(session: &Session, spec: &ToolSpec, call: &ToolCallId, result: &Value) -> Bytes {
    let body = json!({
        "object": "tool.result",
        "tool_call_id": call,
        "tool": spec.name,
        "result": result,
        "session_id": session.id,
        "workspace_path": session.workspace,
    });
    body.to_string().into()
}

/// An answer from memory. The audit log has it as a call that was answered, or it is none.
fn remembered(api: &Api, caller: &Caller, question: &Question) -> Result<Option<Answer>, ApiError> {
    let Some(answer) = api.cached.get(question) else { return Ok(None) };
    let (turn, call) = &answer.call;
    let written = api.backend.store().append_again(&caller.actor(), turn, call);
    Ok(written.map_err(|error| unkept(&error))?.then_some(answer))
}

fn read(body: Value) -> Result<(Option<String>, JsonObject), ApiError> {
    let mut fields = Fields::of("", body)?;
    let session = fields.string("session_id")?;
    let arguments = match fields.value("arguments") {
        None => JsonObject::new(),
        Some(Value::Object(arguments)) => arguments,
        Some(other) => return Err(wrong_type("arguments".to_owned(), "an object", &other)),
    };
    fields.end()?;
    Ok((session, arguments))
}

/// Arguments that do not fit are the client's mistake, not the tool's.
fn check(spec: &ToolSpec, arguments: &JsonObject) -> Result<(), ApiError> {
    let checked = lectern_core::validate::validate(&spec.input_schema, &Value::Object(arguments.clone()));
    // A schema that is broken is the server's mistake; the server itself may still take the call.
    let errors = checked.unwrap_or_default();
    let Some(first) = errors.first() else { return Ok(()) };
    let message = format!("the arguments for `{}` are wrong: {first}", spec.name);
    Err(ApiError::invalid("invalid_arguments", "arguments", message).tool(spec.name.0.clone()))
}

/// Why a call did not do what it should.
fn refused(ran: &Ran) -> Result<(), ApiError> {
    let (result, name) = (&ran.result, ran.result.tool.0.clone());
    let failed = |status, code, message| {
        Err(ApiError::new(status, ErrorKind::ToolExecutionError, code, message).tool(name.clone()))
    };
    match (ran.stopped, result.outcome) {
        (Some(Stopped::Time), _) => failed(StatusCode::GATEWAY_TIMEOUT, "tool_timeout", result.text()),
        (Some(Stopped::Room), _) => failed(StatusCode::INSUFFICIENT_STORAGE, "workspace_full", result.text()),
        (None, ToolOutcome::Succeeded) => Ok(()),
        (None, ToolOutcome::Denied) if ran.unapproved => {
            let message = format!("`{name}` needs the user's consent, and nobody gave it");
            Err(ApiError::forbidden("approval_required", message).tool(name))
        }
        (None, ToolOutcome::Denied) => {
            let message = format!("the user's rules forbid `{name}`");
            Err(ApiError::forbidden("tool_denied", message).tool(name))
        }
        (None, ToolOutcome::Failed | ToolOutcome::Cancelled) => {
            let message = format!("Tool execution failed: {}", result.text());
            failed(StatusCode::UNPROCESSABLE_ENTITY, "tool_failed", message)
        }
    }
}

fn not_found(name: &str) -> ApiError {
    let name = shortened(name);
    ApiError::not_found("tool_not_found", format!("Tool '{name}' not found")).tool(name)
}

fn view(spec: &ToolSpec) -> Value {
    json!({
        "name": spec.name,
        "server": spec.server,
        "title": spec.title,
        "description": spec.description,
        "input_schema": spec.input_schema,
        "output_schema": spec.output_schema,
        "annotations": spec.annotations,
        "trusted": spec.trusted,
        "read_only": spec.is_read_only(),
    })
}

/// Whether the client wants no earlier answer (RFC 9111, section 5.2.1.4).
fn wants_anew(headers: &HeaderMap) -> bool {
    let control =
        headers.get(header::CACHE_CONTROL).and_then(|value| value.to_str().ok()).unwrap_or_default();
    control.split(',').any(|word| matches!(word.trim(), "no-cache" | "no-store" | "max-age=0"))
}

/// A body with its tag; nothing where the client has it already (RFC 9110, section 13.1.2).
fn tagged(headers: &HeaderMap, tag: &str, body: Bytes, control: &str) -> Response {
    let known = headers.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let same =
        known.split(',').map(str::trim).any(|known| known.trim_start_matches("W/") == tag || known == "*");
    let mut response = if same { StatusCode::NOT_MODIFIED.into_response() } else { in_pieces(body) };
    for (name, value) in [(header::ETAG, tag), (header::CACHE_CONTROL, control)] {
        if let Ok(value) = HeaderValue::from_str(value) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

/// JSON; what is long goes out piece by piece, as fast as it is read.
fn in_pieces(body: Bytes) -> Response {
    let length = body.len();
    let body = if length <= PIECE {
        Body::from(body)
    } else {
        let pieces = (0..length.div_ceil(PIECE)).map(move |number| {
            let from = number * PIECE;
            Ok::<_, std::convert::Infallible>(body.slice(from..length.min(from + PIECE)))
        });
        Body::from_stream(stream::iter(pieces))
    };
    ([(header::CONTENT_TYPE, "application/json")], body).into_response()
}
