//! Runs one tool, with all that belongs to a call: the check of its arguments, consent, the audit log, an end.
//!
//! It is a turn whose model asks for this call and nothing else, so that there is one way to run a tool and not two.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use axum::http::StatusCode;
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use lectern_app::Answering;
use lectern_core::{
    AnswerForm, ChatModel, ChatRequest, Delta, EventKind, ExposurePolicy, FinishReason, JsonObject,
    MessageId, ModelError, ModelInfo, Sampling, Store, StoreError, ThinkingOptions, ToolCallId, ToolChoice,
    ToolExposure, ToolMode, ToolName, ToolOutcome, ToolProvider, ToolResult, TurnId, Turns, UserMessage,
    WireDirection,
};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::auth::Caller;
use crate::bounded::Stopped;
use crate::error::ApiError;
use crate::metrics::turn::For;
use crate::sessions::Session;
use crate::state::{Api, ending_now};
use crate::turning::{Beside, Chosen, Start, Turning};

/// A call that a client wants.
pub struct Wanted {
    /// The tool.
    pub tool: ToolName,
    /// Its arguments.
    pub arguments: JsonObject,
}

/// What came of it.
pub struct Ran {
    /// Its turn, as the audit log has it.
    pub turn: TurnId,
    /// The result.
    pub result: ToolResult,
    /// All of its text, where the result has only a part of it.
    pub whole: Option<String>,
    /// Whether it needed consent that nobody gave.
    pub unapproved: bool,
    /// The limit that it came to.
    pub stopped: Option<Stopped>,
}

/// Runs it.
pub async fn run(api: &Api, caller: &Caller, session: &Session, wanted: Wanted) -> Result<Ran, ApiError> {
    let tool = wanted.tool.clone();
    let answering = answering(wanted);
    // What was allowed for the session holds for this call, and the audit log names the session.
    let conversation = session.conversation.clone();
    let store = Store::in_memory_beside(&api.backend.store()).map_err(|error| unkept(&error))?;
    store.touch(&conversation).map_err(|error| unkept(&error))?;
    let stopped: Arc<OnceLock<Stopped>> = Arc::default();
    let (this, tools) = (tool.clone(), api.sessions.tools(session, &*api.backend));
    let start = Start {
        caller,
        answering: &answering,
        conversation,
        store: store.clone(),
        turns: Turns::default(),
        session: Some(session.clone()),
        what: For::Call,
        stopped: Arc::clone(&stopped),
        message: UserMessage::text(format!("Run {tool}.")),
        system: None,
        own: Vec::new(),
        beside: Beside::Finish,
        servers: Arc::new(Chosen::new(tools, move |spec| spec.name == this)) as Arc<dyn ToolProvider>,
        tools: true,
        choice: ToolChoice::Auto,
        answer: AnswerForm::Free,
        sampling: Sampling::default(),
        thinking: ThinkingOptions::default(),
    };
    let mut ran = follow(api, &store, Turning::start(api, start)?).await?;
    ran.stopped = stopped.get().copied();
    Ok(ran)
}

async fn follow(api: &Api, store: &Store, mut turning: Turning) -> Result<Ran, ApiError> {
    let (mut asked, mut wire) = (false, None);
    loop {
        let next = tokio::select! {
            biased;
            () = api.ending.cancelled() => None,
            next = turning.next() => next,
        };
        let event = next.ok_or_else(ending_now)?.event;
        match event.kind {
            EventKind::PermissionRequested { .. } => asked = true,
            EventKind::ToolWire { direction: WireDirection::Received, message, .. } => wire = Some(message),
            EventKind::ToolFinished { result, .. } => {
                let unapproved = asked && result.outcome == ToolOutcome::Denied;
                let whole = wire.and_then(|wire| whole(store, &result, wire));
                return Ok(Ran { turn: event.turn, result, whole, unapproved, stopped: None });
            }
            EventKind::TurnFinished { .. } => return Err(ending_now()),
            EventKind::TurnStarted { .. }
            | EventKind::StepStarted { .. }
            | EventKind::ModelLoading { .. }
            | EventKind::PromptProgress { .. }
            | EventKind::Retrying { .. }
            | EventKind::TextDelta { .. }
            | EventKind::ThinkingDelta { .. }
            | EventKind::ToolCallDelta { .. }
            | EventKind::StepFinished { .. }
            | EventKind::PermissionAnswered { .. }
            | EventKind::ToolStarted { .. }
            | EventKind::ToolProgress { .. }
            | EventKind::ToolWire { .. }
            | EventKind::ToolLog { .. }
            | EventKind::QuestionAsked { .. }
            | EventKind::QuestionAnswered { .. }
            | EventKind::SampleFinished { .. }
            | EventKind::Notice { .. } => {}
        }
    }
}

/// All texts of what the server answered, when they are more than the result has: that is cut to what a model reads.
fn whole(store: &Store, result: &ToolResult, wire: Value) -> Option<String> {
    let message = match wire.get("full").and_then(Value::as_str) {
        Some(full) => store.long_message(&MessageId(full.to_owned())).ok().flatten()?,
        None => wire,
    };
    let content = message.get("result")?.get("content")?.as_array()?;
    let texts = content.iter().map(|one| one.get("text").and_then(Value::as_str));
    // Anything but text is told by the result.
    let text = texts.collect::<Option<Vec<&str>>>()?.join("\n");
    (text.len() > result.text().len()).then_some(text)
}

/// It was not run, because it can't be written down.
pub fn unkept(error: &StoreError) -> ApiError {
    tracing::warn!(%error, "a call");
    let status = StatusCode::INTERNAL_SERVER_ERROR;
    ApiError::failed(status, "internal_error", "the call could not be kept")
}

fn answering(wanted: Wanted) -> Answering {
    Answering {
        id: "call".into(),
        model: Arc::new(OneCall::new(wanted)),
        tool_mode: ToolMode::Native,
        sampling: Sampling::default(),
        thinking: ThinkingOptions::default(),
        others: Default::default(),
        exposure: ExposurePolicy { tools: ToolExposure::Always, ..ExposurePolicy::default() },
        system: None,
        largest_context: None,
        max_steps: 2,
        starter: false,
    }
}

/// Asks for one call, and then says that it is done.
struct OneCall {
    info: ModelInfo,
    wanted: Wanted,
    asked: AtomicBool,
}

impl OneCall {
    fn new(wanted: Wanted) -> Self {
        let info = ModelInfo {
            id: "call".into(),
            name: "call".to_owned(),
            tool_mode: ToolMode::Native,
            context_length: None,
            vision: false,
            remote: false,
        };
        Self { info, wanted, asked: AtomicBool::new(false) }
    }
}

impl ChatModel for OneCall {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn stream(&self, _: ChatRequest, _: CancellationToken) -> BoxStream<'static, Result<Delta, ModelError>> {
        let deltas = if self.asked.swap(true, Ordering::Relaxed) {
            vec![Delta::Text("Done.".to_owned()), Delta::Finished(FinishReason::Stop)]
        } else {
            let (tool, id) = (self.wanted.tool.clone(), ToolCallId::fresh());
            let fragment = Value::Object(self.wanted.arguments.clone()).to_string();
            vec![
                Delta::ToolCallStarted { index: 0, id, tool, provider_data: None },
                Delta::ToolCallArguments { index: 0, fragment },
                Delta::Finished(FinishReason::ToolCalls),
            ]
        };
        stream::iter(deltas.into_iter().map(Ok)).boxed()
    }
}
