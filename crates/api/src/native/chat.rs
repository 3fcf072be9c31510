//! `POST /api/chat/completions`: the model, the user's servers and the client's own tools, in a session.
//!
//! What a session holds already is not said again: of `messages`, what follows the last answer is new. A session that
//! begins takes all of them.

use std::sync::Arc;

use axum::extract::{Extension, State};
use axum::response::Response;
use lectern_app::Answering;
use lectern_core::{
    Message, ThinkingOptions, ToolCallId, ToolChoice, ToolProvider, ToolResult, ToolSet, UserMessage,
};
use serde_json::Value;

use super::frames::Frames;
use super::shape::answer::{SessionCompletion, SessionRequest};
use super::{manual, telling};
use crate::auth::{Caller, Scope};
use crate::body::JsonBody;
use crate::document::{Failures, ServerSentEvent};
use crate::error::ApiError;
use crate::fields::Fields;
use crate::metrics::turn::For;
use crate::sessions::Session;
use crate::state::Api;
use crate::turning::{Beside, Start, Turning};
use crate::v1::chat::{named_servers, open};
use crate::v1::gather::Head;
use crate::v1::request::Asked;
use crate::v1::served::GO_ON;

/// What a client asks for beyond OpenAI's fields.
pub struct Native {
    /// What is OpenAI's.
    pub asked: Asked,
    /// Whether `tools` was there at all; without it all tools of the user's servers are offered.
    pub named_tools: bool,
    /// The session; none for a new one.
    pub session: Option<String>,
    /// Who runs the tools.
    pub mode: Mode,
}

/// Who runs the tools of the user's servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// This server, in the middle of the answer.
    Automatic,
    /// The client, by `POST /api/tools/{name}` or by itself.
    Manual,
}

/// Goes on with a session.
///
/// In one body, or with `stream` in pieces: the data of each event is a `Frame`, and the last one `[DONE]`.
#[utoipa::path(
    post,
    path = "/api/chat/completions",
    operation_id = "answer_in_session",
    tag = "Lectern",
    request_body = SessionRequest,
    responses(
        (
            status = 200,
            description = "The answer",
            content((SessionCompletion = "application/json"), (ServerSentEvent = "text/event-stream")),
        ),
        Failures,
    ),
)]
pub async fn completions(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    caller.must(Scope::Models)?;
    let mut native = read(body)?;
    let session = api.sessions.session(&caller.id, native.session.take())?;
    if native.mode == Mode::Manual {
        return manual::answer(&api, &caller, native, session).await;
    }
    let tools = api.sessions.tools(&session, &*api.backend);
    let servers = named_servers(&api, &caller, &mut native.asked, !native.named_tools, tools).await?;
    let answering = open(&api, &native.asked).await?;
    api.sessions.quiet(&session).await;
    let message = received(&api, &session, &native.asked)?;
    let asked = &native.asked;
    let turning = start(&api, &caller, &answering, asked, &session, message, servers)?;
    api.sessions.begin_turn();
    api.metrics.answer();
    let own = asked.tools().iter().map(|spec| spec.name.0.clone()).collect();
    let (frames, head) = (Frames::new(session, own), Head::new(answering.id.as_str()));
    if asked.stream {
        return telling::streamed(api, turning, frames).await;
    }
    telling::whole(&api, &head, turning, frames).await
}

fn read(body: Value) -> Result<Native, ApiError> {
    let mut fields = Fields::of("", body)?;
    let session = fields.string("session_id")?;
    let mode = match fields.word("mode", &["auto", "manual"])? {
        Some("manual") => Mode::Manual,
        Some(_) | None => Mode::Automatic,
    };
    let named_tools = fields.has("tools");
    let asked = Asked::take(&mut fields)?;
    fields.end()?;
    Ok(Native { asked, named_tools, session, mode })
}

/// Puts what is new into the session; the user's message that begins the turn.
fn received(api: &Api, session: &Session, asked: &Asked) -> Result<UserMessage, ApiError> {
    if let Some(turn) = api.sessions.turns.running(&session.conversation) {
        drop(turn);
        return Err(crate::turning::busy());
    }
    let mut messages = asked.history.messages.clone();
    let stored = api.sessions.history(session)?;
    match messages.pop() {
        Some(Message::User(message)) => {
            if stored.is_empty() && !messages.is_empty() {
                api.sessions.begin(session, messages)?;
            }
            Ok(message)
        }
        Some(Message::Tool(last)) => {
            messages.push(Message::Tool(last));
            let history = if stored.is_empty() { messages } else { answered(stored, messages)? };
            api.sessions.begin(session, history)?;
            Ok(UserMessage::text(GO_ON))
        }
        Some(Message::Assistant(_)) | None => {
            let said = "the last of `messages` has to be the user's, or the result of a tool";
            Err(ApiError::invalid("invalid_value", "messages", said))
        }
    }
}

/// The session's history with the client's results of its own tools in place of those that stand for them.
fn answered(mut stored: Vec<Message>, asked: Vec<Message>) -> Result<Vec<Message>, ApiError> {
    let is_result = |message: &Message| matches!(message, Message::Tool(_));
    let open = stored.iter().rposition(|message| !is_result(message)).map_or(0, |last| last + 1);
    let news = asked.iter().rposition(|message| !is_result(message)).map_or(0, |last| last + 1);
    for message in asked.into_iter().skip(news) {
        let Message::Tool(result) = message else { continue };
        let place = stored[open..].iter_mut().find_map(|message| match message {
            Message::Tool(waiting) if waiting.call == result.call => Some(waiting),
            Message::Tool(_) | Message::User(_) | Message::Assistant(_) => None,
        });
        let place = place.ok_or_else(|| not_waiting(&result.call))?;
        // The tool's name is the session's; a result does not have it.
        *place = ToolResult { tool: place.tool.clone(), ..result };
    }
    Ok(stored)
}

fn not_waiting(call: &ToolCallId) -> ApiError {
    let id = crate::fields::shortened(call.as_str());
    let message = format!("the last answer of the session has no call `{id}`");
    ApiError::invalid("unknown_tool_call_id", "messages", message)
}

fn start(
    api: &Api,
    caller: &Caller,
    answering: &Answering,
    asked: &Asked,
    session: &Session,
    message: UserMessage,
    servers: Option<Arc<dyn ToolProvider>>,
) -> Result<Turning, ApiError> {
    let tools = servers.is_some() || !asked.tools().is_empty();
    let start = Start {
        caller,
        answering,
        conversation: session.conversation.clone(),
        store: api.sessions.store().clone(),
        turns: api.sessions.turns.clone(),
        session: Some(session.clone()),
        what: For::Answer,
        stopped: Arc::default(),
        message,
        system: asked.history.system.clone(),
        own: asked.tools().to_vec(),
        beside: Beside::Finish,
        servers: servers.unwrap_or_else(|| Arc::new(ToolSet::default())),
        tools: tools && asked.offered.choice.choice != ToolChoice::None,
        choice: asked.offered.choice.choice.clone(),
        answer: asked.answer.clone(),
        sampling: asked.sampling_over(&answering.sampling),
        thinking: ThinkingOptions {
            enabled: asked.thinking.or(answering.thinking.enabled),
            ..answering.thinking
        },
    };
    Turning::start(api, start)
}
