//! `POST /v1/chat/completions`.

use std::collections::HashSet;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::{Extension, State};
use axum::response::{IntoResponse, Response};
use futures::StreamExt;
use lectern_app::Answering;
use lectern_core::{ModelId, Part, ToolChoice, ToolProvider, ToolSpec};
use tokio_util::sync::CancellationToken;

use super::calls::{Pieces, ask};
use super::chunk::frames;
use super::gather::{Head, gather};
use super::models::unknown;
use super::outcome::of_problem;
use super::request::Asked;
use super::served::{Serve, serve};
use super::shape::answer::ChatCompletion;
use super::shape::asked::ChatRequest;
use super::tools::Offered;
use crate::auth::{Caller, Scope};
use crate::body::JsonBody;
use crate::document::{Failures, ServerSentEvent};
use crate::error::ApiError;
use crate::fields::shortened;
use crate::prefix::Lease;
use crate::sse;
use crate::state::Api;
use crate::turning::Chosen;

/// How long the head of a stream waits for the model to take the request. An error until then has a status of its own;
/// later ones are a frame of the stream.
pub const TAKEN: Duration = Duration::from_secs(15);

/// Goes on with a conversation.
///
/// In one body, or with `stream` in pieces: each event is a `ChatCompletionChunk`, and the last one `[DONE]`.
#[utoipa::path(
    post,
    path = "/v1/chat/completions",
    operation_id = "create_chat_completion",
    tag = "OpenAI",
    request_body = ChatRequest,
    responses(
        (status = 200, content((ChatCompletion = "application/json"), (ServerSentEvent = "text/event-stream"))),
        Failures,
    ),
)]
pub async fn completions(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    caller.must(Scope::Models)?;
    let mut asked = Asked::read(body)?;
    let servers = named_servers(&api, &caller, &mut asked, caller.server_tools, api.backend.tools()).await?;
    let answering = open(&api, &asked).await?;
    let head = Head::new(answering.id.as_str());
    let lease = api.prefixes.lease(&caller.id, answering.id.as_str(), &asked.history.messages);
    let pieces = match servers {
        Some(servers) => {
            let request = Serve { caller: &caller, answering: &answering, asked: &asked, servers };
            serve(&api, request, lease)?
        }
        None => api.counted(plain(&answering, &asked, lease)),
    };
    forget(&api);
    api.metrics.answer();
    respond(&api, head, &asked, api.until_end(pieces)).await
}

/// The tools of the user's servers, where they are wanted: all of them by default, or those that the request names.
pub async fn named_servers(
    api: &Api,
    caller: &Caller,
    asked: &mut Asked,
    by_default: bool,
    tools: Arc<dyn ToolProvider>,
) -> Result<Option<Arc<dyn ToolProvider>>, ApiError> {
    let servers = wanted_servers(api, caller, &mut asked.offered, by_default, tools).await?;
    let there = servers.as_ref().map(|servers| servers.tools());
    asked.offered.settle(there.as_deref().unwrap_or_default())?;
    Ok(servers)
}

async fn wanted_servers(
    api: &Api,
    caller: &Caller,
    offered: &mut Offered,
    by_default: bool,
    tools: Arc<dyn ToolProvider>,
) -> Result<Option<Arc<dyn ToolProvider>>, ApiError> {
    let all = by_default && caller.scopes.contains(&Scope::Tools);
    if offered.choice.choice == ToolChoice::None
        || (!all && offered.servers.is_empty() && offered.bare.is_empty())
    {
        return Ok(None);
    }
    if !offered.servers.is_empty() {
        caller.must(Scope::Tools)?;
    }
    api.backend.tools_settled().await;
    let there = tools.tools();
    for wanted in &offered.servers {
        if !there.iter().any(|spec| spec.server == wanted.server) {
            let message = format!("there is no server `{}` with tools", shortened(wanted.server.as_str()));
            return Err(ApiError::invalid("unknown_server", wanted.param.clone(), message));
        }
    }
    let may = caller.scopes.contains(&Scope::Tools);
    let is_meant = |spec: &ToolSpec| may && offered.bare.contains(&spec.name);
    let meant: HashSet<_> =
        there.iter().filter(|spec| is_meant(spec)).map(|spec| spec.name.clone()).collect();
    offered.tools.retain(|spec| !meant.contains(&spec.name));
    if !all && meant.is_empty() && offered.servers.is_empty() {
        return Ok(None);
    }
    let (wanted, choice) = (offered.servers.clone(), offered.choice.clone());
    let chosen = move |spec: &ToolSpec| {
        let asked = all || meant.contains(&spec.name) || wanted.iter().any(|wanted| wanted.covers(spec));
        asked && choice.allows(&spec.name)
    };
    Ok(Some(Arc::new(Chosen::new(tools, chosen))))
}

/// What the caches keep of conversations that nobody can go on with is given up, beside the answer.
fn forget(api: &Api) {
    let forgotten = api.prefixes.take_forgotten();
    if !forgotten.is_empty() {
        tokio::spawn(api.backend.forget(forgotten));
    }
}

/// In one body, or in pieces.
async fn respond(api: &Api, head: Head, asked: &Asked, pieces: Pieces) -> Result<Response, ApiError> {
    if !asked.stream {
        return Ok(Json(gather(head, pieces).await?).into_response());
    }
    let pieces = api.failures_counted(taken(pieces).await?);
    Ok(sse::response(frames(head, asked.include_usage, pieces)))
}

/// Waits until the model takes the request or refuses it.
pub async fn taken(pieces: Pieces) -> Result<Pieces, ApiError> {
    let mut pieces = Box::pin(pieces.peekable());
    let first = tokio::time::timeout(TAKEN, Pin::as_mut(&mut pieces).peek()).await;
    match first {
        Ok(Some(Err(error))) => Err(error.clone()),
        Ok(Some(Ok(_)) | None) | Err(_) => Ok(pieces),
    }
}

/// The model that was named.
pub async fn open(api: &Api, asked: &Asked) -> Result<Answering, ApiError> {
    let id = asked.model.as_deref().map(ModelId::from);
    if let Some(id) = &id
        && !api.backend.models().iter().any(|card| card.id == *id)
    {
        return Err(unknown(id.as_str()));
    }
    let answering = api.backend.open(id).await.map_err(|problem| of_problem(&problem))?;
    must_see(&answering, asked)?;
    Ok(answering)
}

/// One reply; what it calls, the client runs.
pub fn plain(answering: &Answering, asked: &Asked, lease: Lease) -> Pieces {
    let conversation = lease.conversation().clone();
    let mut request = asked.to_core(conversation, &answering.sampling, answering.thinking);
    request.tool_mode = answering.tool_mode;
    let pieces = ask(&*answering.model, request, asked.parallel_calls, CancellationToken::new());
    // The conversation is this answer's own until its last piece.
    let held = move |_: &_| {
        let _ = &lease;
    };
    pieces.inspect(held).boxed()
}

fn must_see(answering: &Answering, asked: &Asked) -> Result<(), ApiError> {
    let info = answering.model.info();
    let Some(first) = asked.history.images.first() else { return Ok(()) };
    let refuse = |what: &str| {
        let message = format!("the model `{}` cannot {what}", answering.id);
        Err(ApiError::invalid("unsupported_content", format!("messages[{first}].content"), message))
    };
    let parts = asked.history.messages.iter().flat_map(|message| match message {
        lectern_core::Message::User(user) => user.parts.as_slice(),
        lectern_core::Message::Assistant(_) | lectern_core::Message::Tool(_) => &[],
    });
    let pdf = |part: &Part| matches!(part, Part::Image(blob) if blob.mime == "application/pdf");
    if !info.vision {
        return refuse("see images");
    }
    if !info.remote && parts.clone().any(pdf) {
        return refuse("read PDF documents");
    }
    Ok(())
}
