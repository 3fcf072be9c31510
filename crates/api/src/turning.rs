//! Runs the core's loop for a request: the model, the user's servers, and the client's own tools beside them.
//!
//! Invariant: dropping it cancels the turn and the tool under it; a call that needs consent waits for somebody who can
//! give it, or is refused; a server that asks something in the middle of a call gets a no.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use axum::http::StatusCode;
use futures::FutureExt;
use futures::future::BoxFuture;
use lectern_app::Answering;
use lectern_core::{
    AnswerForm, CallContext, ConversationId, Event, EventKind, Events, ExposurePolicy, PermissionAnswer,
    QuestionAnswer, Sampling, StartError, Store, ThinkingOptions, ToolCall, ToolCallId, ToolChoice,
    ToolExposure, ToolName, ToolOutcome, ToolProvider, ToolResult, ToolSet, ToolSpec, TurnHandle, TurnInput,
    Turns, UserMessage,
};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::approvals::Place;
use crate::auth::Caller;
use crate::bounded::{Bounded, Stopped};
use crate::error::{ApiError, ErrorKind};
use crate::metrics::turn::{Account, For};
use crate::sessions::Session;
use crate::state::Api;

/// What a turn is made of.
pub struct Start<'a> {
    /// Who asks.
    pub caller: &'a Caller,
    /// The model.
    pub answering: &'a Answering,
    /// The conversation, which is in the store.
    pub conversation: ConversationId,
    /// Where it is.
    pub store: Store,
    /// Which turns run there.
    pub turns: Turns,
    /// The session, when it has one.
    pub session: Option<Session>,
    /// What it counts as.
    pub what: For,
    /// Where a call's limit notes that it was at fault.
    pub stopped: Arc<OnceLock<Stopped>>,
    /// What is asked now.
    pub message: UserMessage,
    /// The client's instructions.
    pub system: Option<String>,
    /// The client's own tools.
    pub own: Vec<ToolSpec>,
    /// What becomes of the servers' calls beside one of those.
    pub beside: Beside,
    /// The servers' tools.
    pub servers: Arc<dyn ToolProvider>,
    /// Whether any tool may be called.
    pub tools: bool,
    /// What the first step has to do about tools.
    pub choice: ToolChoice,
    /// The form of the answer.
    pub answer: AnswerForm,
    /// How tokens are chosen.
    pub sampling: Sampling,
    /// Whether the model thinks first.
    pub thinking: ThinkingOptions,
}

/// What becomes of the servers' calls in a step that calls a tool of the client's own, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beside {
    /// They come to their end, and then the turn is over.
    Finish,
    /// They are stopped with the turn: whoever follows it ends it with that step, and nobody would learn of their results.
    Stop,
}

/// A turn that is followed.
pub struct Turning {
    api: Api,
    caller: Caller,
    session: Option<Session>,
    handle: TurnHandle,
    events: Events,
    own: Vec<ToolName>,
    waiting: HashMap<ToolCallId, (Place, Instant)>,
    account: Account,
    _stops: DropGuard,
}

/// Something that happened.
pub struct Happening {
    /// What.
    pub event: Event,
    /// The approval that a call waits for now.
    pub approval: Option<String>,
}

impl Turning {
    /// Starts a turn.
    pub fn start(api: &Api, start: Start<'_>) -> Result<Self, ApiError> {
        let cancel = CancellationToken::new();
        let own = start.own.iter().map(|spec| spec.name.clone()).collect();
        let (caller, session, turns) = (start.caller.clone(), start.session.clone(), start.turns.clone());
        let what = start.what;
        let input = input(api, start, cancel.clone());
        let handle = turns.start(input).map_err(|error| not_started(&error))?;
        let events = handle.events();
        Ok(Self {
            api: api.clone(),
            caller,
            session,
            handle,
            events,
            own,
            waiting: HashMap::new(),
            account: Account::new(what),
            _stops: cancel.drop_guard(),
        })
    }

    /// Whether the client runs this tool itself.
    pub fn is_own(&self, tool: &ToolName) -> bool {
        self.own.contains(tool)
    }

    /// What happens next; none after the end.
    pub async fn next(&mut self) -> Option<Happening> {
        let event = loop {
            let patience = self.waiting.values().map(|(_, until)| *until).min();
            tokio::select! {
                event = self.events.next() => break event?,
                () = sleep_until(patience.unwrap_or_else(Instant::now)), if patience.is_some() => self.lose_patience(),
            }
        };
        self.account.take(&self.api, &event, &self.own);
        let approval = self.attend(&event);
        Some(Happening { event, approval })
    }

    /// Answers what nobody else will.
    fn attend(&mut self, event: &Event) -> Option<String> {
        match &event.kind {
            EventKind::PermissionRequested { call, .. } if self.is_own(&call.tool) => None,
            EventKind::PermissionRequested { call, choices } => {
                if !self.api.can_approve() {
                    // It may have been answered by a rule in the meantime.
                    let _ = self.handle.answer_permission(&call.id, PermissionAnswer::Deny);
                    return None;
                }
                let key = Arc::clone(&self.caller.name);
                let session = self.session.as_ref().map(|session| session.id.clone());
                let (call, choices) = (call.clone(), choices.clone());
                let (id, patience) = (call.id.clone(), self.api.options.limits.consent_time);
                let place = self.api.approvals.ask(&self.handle, key, session, call, choices, patience);
                let approval = place.id.clone();
                self.waiting.insert(id, (place, Instant::now() + patience));
                Some(approval)
            }
            EventKind::PermissionAnswered { call, .. } => {
                self.waiting.remove(call);
                None
            }
            EventKind::QuestionAsked { question_id, .. } => {
                let _ = self.handle.answer_question(question_id, QuestionAnswer::Declined);
                None
            }
            EventKind::TurnStarted { .. }
            | EventKind::StepStarted { .. }
            | EventKind::ModelLoading { .. }
            | EventKind::PromptProgress { .. }
            | EventKind::Retrying { .. }
            | EventKind::TextDelta { .. }
            | EventKind::ThinkingDelta { .. }
            | EventKind::ToolCallDelta { .. }
            | EventKind::StepFinished { .. }
            | EventKind::ToolStarted { .. }
            | EventKind::ToolProgress { .. }
            | EventKind::ToolWire { .. }
            | EventKind::ToolLog { .. }
            | EventKind::QuestionAnswered { .. }
            | EventKind::SampleFinished { .. }
            | EventKind::ToolFinished { .. }
            | EventKind::Notice { .. }
            | EventKind::TurnFinished { .. } => None,
        }
    }

    fn lose_patience(&mut self) {
        let now = Instant::now();
        let over: Vec<ToolCallId> = self
            .waiting
            .iter()
            .filter(|(_, (_, until))| *until <= now)
            .map(|(call, _)| call.clone())
            .collect();
        for call in over {
            self.waiting.remove(&call);
            let _ = self.handle.answer_permission(&call, PermissionAnswer::Deny);
        }
    }
}

fn input(api: &Api, start: Start<'_>, cancel: CancellationToken) -> TurnInput {
    let answering = start.answering;
    let exposure = match (start.tools, start.own.is_empty()) {
        (false, _) => ExposurePolicy { tools: ToolExposure::Off, ..answering.exposure.clone() },
        (true, true) => answering.exposure.clone(),
        // The client's own tools are offered as it asked.
        (true, false) => ExposurePolicy {
            pinned: start.own.iter().map(|spec| spec.name.clone()).collect(),
            ..answering.exposure.clone()
        },
    };
    let own: Arc<dyn ToolProvider> = Arc::new(OwnTools { tools: start.own.into(), beside: start.beside });
    let servers: Arc<dyn ToolProvider> =
        Arc::new(Bounded::new(start.servers, api, &start.caller.name, start.session, start.stopped));
    TurnInput {
        conversation: start.conversation,
        message: start.message,
        model: Arc::clone(&answering.model),
        tools: Arc::new(ToolSet::new([own, servers])),
        who: start.caller.actor(),
        permissions: api.backend.permissions(),
        store: start.store,
        system: start.system.or_else(|| answering.system.clone()),
        sampling: start.sampling,
        thinking: start.thinking,
        answer: start.answer,
        earlier_turns: answering.earlier_turns(),
        largest_context: answering.largest_context,
        tool_mode: answering.tool_mode,
        exposure,
        first_choice: start.choice,
        others: answering.others.clone(),
        max_steps: answering.max_steps,
        cancel,
    }
}

/// A session has one answer at a time.
pub fn busy() -> ApiError {
    let message = "an answer is being made in this session already";
    ApiError::new(StatusCode::CONFLICT, ErrorKind::InvalidRequestError, "session_busy", message)
        .at("session_id")
}

fn not_started(error: &StartError) -> ApiError {
    match error {
        StartError::Running { .. } => busy(),
        StartError::Store(_) => {
            let message = "the conversation could not be kept";
            ApiError::failed(StatusCode::INTERNAL_SERVER_ERROR, "internal_error", message)
        }
    }
}

/// Tools that the client runs: a call of them ends the turn here.
struct OwnTools {
    tools: Arc<[ToolSpec]>,
    beside: Beside,
}

impl ToolProvider for OwnTools {
    fn tools(&self) -> Arc<[ToolSpec]> {
        Arc::clone(&self.tools)
    }

    fn hands_over(&self, _: &ToolName) -> bool {
        self.beside == Beside::Finish
    }

    fn call(&self, call: ToolCall, context: CallContext) -> BoxFuture<'static, ToolResult> {
        async move {
            context.cancel.cancelled().await;
            ToolResult::of(&call, ToolOutcome::Cancelled, "The client runs this tool.")
        }
        .boxed()
    }
}

/// Some of the tools of a provider.
pub struct Chosen {
    inner: Arc<dyn ToolProvider>,
    wanted: Arc<dyn Fn(&ToolSpec) -> bool + Send + Sync>,
}

impl Chosen {
    /// Those that are wanted.
    pub fn new(
        inner: Arc<dyn ToolProvider>,
        wanted: impl Fn(&ToolSpec) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self { inner, wanted: Arc::new(wanted) }
    }
}

impl ToolProvider for Chosen {
    fn tools(&self) -> Arc<[ToolSpec]> {
        self.inner.tools().iter().filter(|spec| (self.wanted)(spec)).cloned().collect()
    }

    fn withheld(&self, tool: &ToolName) -> Option<String> {
        self.inner.withheld(tool)
    }

    fn masked(&self, call: &ToolCall) -> lectern_core::JsonObject {
        self.inner.masked(call)
    }

    fn call(&self, call: ToolCall, context: CallContext) -> BoxFuture<'static, ToolResult> {
        self.inner.call(call, context)
    }
}
