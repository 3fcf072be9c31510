//! An answer in which the user's servers serve the model: the client sees the words, and calls of its own tools.
//!
//! Invariant: what the servers do is told in comments only; a call of the client's own tool ends the answer there.

use futures::{StreamExt, stream};
use lectern_core::{
    EventKind, FinishReason, Message, Store, ThinkingOptions, ToolCallId, ToolName, TurnOutcome, Turns,
    Usage, UserMessage,
};

use super::calls::{Calls, Piece, Pieces};
use super::outcome::{of_turn, ran_out, sum};
use super::request::Asked;
use crate::error::ApiError;
use crate::metrics::turn::For;
use crate::prefix::Lease;
use crate::state::{Api, ending_now};
use crate::turning::{Beside, Happening, Start, Turning};

/// Said when a conversation does not end with the user, who has to begin a turn.
pub const GO_ON: &str = "Go on.";

/// What the turn is made of; the conversation, the store and the message are added here.
pub struct Serve<'a> {
    /// Who asks.
    pub caller: &'a crate::auth::Caller,
    /// The model.
    pub answering: &'a lectern_app::Answering,
    /// What is asked.
    pub asked: &'a Asked,
    /// The servers' tools that may be called.
    pub servers: std::sync::Arc<dyn lectern_core::ToolProvider>,
}

/// Begins the answer.
pub fn serve(api: &Api, serve: Serve<'_>, lease: Lease) -> Result<Pieces, ApiError> {
    let Serve { caller, answering, asked, servers } = serve;
    let mut earlier = asked.history.messages.clone();
    let message = match earlier.pop() {
        Some(Message::User(user)) => user,
        other => {
            earlier.extend(other);
            UserMessage::text(GO_ON)
        }
    };
    let calls = Calls::new(&earlier, true);
    let conversation = lease.conversation().clone();
    let store = imported(api, &conversation, earlier)?;
    let thinking =
        ThinkingOptions { enabled: asked.thinking.or(answering.thinking.enabled), ..answering.thinking };
    let turning = Turning::start(
        api,
        Start {
            caller,
            answering,
            conversation,
            store,
            turns: Turns::default(),
            session: None,
            what: For::Answer,
            stopped: Default::default(),
            message,
            system: asked.history.system.clone(),
            own: asked.tools().to_vec(),
            beside: Beside::Stop,
            servers,
            tools: true,
            choice: asked.offered.choice.choice.clone(),
            answer: asked.answer.clone(),
            sampling: asked.sampling_over(&answering.sampling),
            thinking,
        },
    )?;
    let served = Served {
        turning,
        calls,
        shown: Vec::new(),
        parallel: asked.parallel_calls,
        usage: Usage::default(),
        finish: None,
        said: Said::Nothing,
        _lease: lease,
    };
    let state = Some(served);
    let pieces = stream::unfold(state, |state| async move {
        let mut served = state?;
        let Some(happening) = served.turning.next().await else {
            return Some((vec![Err(ending_now())], None));
        };
        let (pieces, over) = served.take(happening);
        Some((pieces, (!over).then_some(served)))
    });
    Ok(pieces.map(stream::iter).flatten().boxed())
}

fn imported(
    api: &Api,
    conversation: &lectern_core::ConversationId,
    earlier: Vec<Message>,
) -> Result<Store, ApiError> {
    let made = Store::in_memory_beside(&api.backend.store())
        .and_then(|store| store.import(conversation, earlier).map(|()| store));
    made.map_err(|error| {
        tracing::warn!(%error, "a conversation of a request");
        let status = axum::http::StatusCode::INTERNAL_SERVER_ERROR;
        ApiError::failed(status, "internal_error", "the conversation could not be kept")
    })
}

struct Served {
    turning: Turning,
    calls: Calls,
    /// The client's own calls so far, by their place.
    shown: Vec<ToolCallId>,
    /// Whether there may be more than one of them.
    parallel: bool,
    usage: Usage,
    finish: Option<FinishReason>,
    said: Said,
    _lease: Lease,
}

/// Whether words of an earlier step stand before those that come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Said {
    Nothing,
    InThisStep,
    Before,
}

impl Served {
    /// The pieces, and whether they are the last ones.
    fn take(&mut self, happening: Happening) -> (Vec<Result<Piece, ApiError>>, bool) {
        let pieces = match happening.event.kind {
            EventKind::TextDelta { text } => vec![Piece::Text(self.apart(text))],
            EventKind::ThinkingDelta { text } => vec![Piece::Thinking(text)],
            EventKind::ToolCallDelta { call, tool, arguments } => self.own_call(call, &tool, arguments),
            EventKind::PromptProgress { .. } => vec![Piece::Working],
            EventKind::StepFinished { message, finish, stats, .. } => {
                self.usage = sum(self.usage, stats.usage);
                self.finish = Some(finish);
                if self.said == Said::InThisStep {
                    self.said = Said::Before;
                }
                if message.tool_calls().any(|call| self.turning.is_own(&call.tool)) {
                    let done = Piece::Done { finish: FinishReason::ToolCalls, usage: self.usage };
                    return (self.calls.complete().chain([done]).map(Ok).collect(), true);
                }
                Vec::new()
            }
            EventKind::ToolStarted { call } => vec![Piece::Remark(format!("tool {} started", call.tool))],
            EventKind::ToolProgress { progress, .. } => vec![Piece::Remark(progress_line(&progress))],
            EventKind::ToolFinished { result, .. } => {
                vec![Piece::Remark(format!("tool {} {:?}", result.tool, result.outcome).to_lowercase())]
            }
            EventKind::PermissionRequested { call, .. } => {
                vec![Piece::Remark(format!("tool {} waits for approval", call.tool))]
            }
            EventKind::TurnFinished { outcome } => return (vec![self.end(&outcome)], true),
            EventKind::TurnStarted { .. }
            | EventKind::StepStarted { .. }
            | EventKind::ModelLoading { .. }
            | EventKind::Retrying { .. }
            | EventKind::PermissionAnswered { .. }
            | EventKind::ToolWire { .. }
            | EventKind::ToolLog { .. }
            | EventKind::QuestionAsked { .. }
            | EventKind::QuestionAnswered { .. }
            | EventKind::SampleFinished { .. }
            | EventKind::Notice { .. } => Vec::new(),
        };
        (pieces.into_iter().map(Ok).collect(), false)
    }

    fn end(&self, outcome: &TurnOutcome) -> Result<Piece, ApiError> {
        let finish = match outcome {
            TurnOutcome::Completed => self.finish.unwrap_or(FinishReason::Stop),
            TurnOutcome::StepLimit => FinishReason::Length,
            TurnOutcome::Cancelled => return Err(ending_now()),
            TurnOutcome::Failed { error } if ran_out(self.finish, error) => FinishReason::Length,
            TurnOutcome::Failed { error } => return Err(of_turn(error)),
        };
        // What the model called last, a server answered.
        let finish = if finish == FinishReason::ToolCalls { FinishReason::Stop } else { finish };
        Ok(Piece::Done { finish, usage: self.usage })
    }

    /// A piece of a call that the client has to run.
    fn own_call(&mut self, call: ToolCallId, tool: &ToolName, arguments: String) -> Vec<Piece> {
        if !self.turning.is_own(tool) {
            return Vec::new();
        }
        let known = self.shown.iter().position(|shown| *shown == call);
        if known.is_none() && !self.parallel && !self.shown.is_empty() {
            return Vec::new();
        }
        let mut pieces = Vec::new();
        let place = known.unwrap_or_else(|| {
            self.shown.push(call.clone());
            self.shown.len() - 1
        });
        let index = u32::try_from(place).unwrap_or(u32::MAX);
        pieces.extend(self.calls.begin(index, call, tool.0.clone()));
        pieces.extend(self.calls.extend(index, arguments));
        pieces
    }

    /// Words of another step begin a paragraph of their own.
    fn apart(&mut self, text: String) -> String {
        let before = std::mem::replace(&mut self.said, Said::InThisStep);
        if before == Said::Before { format!("\n\n{text}") } else { text }
    }
}

fn progress_line(progress: &lectern_core::Progress) -> String {
    let total = progress.total.map(|total| format!(" of {total}")).unwrap_or_default();
    let message = progress.message.as_deref().unwrap_or_default();
    format!("progress {}{total} {message}", progress.done)
}
