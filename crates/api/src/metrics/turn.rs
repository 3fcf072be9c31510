//! What a turn adds to the counts.

use std::collections::HashMap;

use lectern_core::{Event, EventKind, ToolCallId, ToolName, ToolResult};
use tokio::time::Instant;

use crate::state::Api;

/// What a turn is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum For {
    /// The answer of a model.
    Answer,
    /// One call of a tool, without a model.
    Call,
}

/// One turn, while it runs.
pub struct Account {
    what: For,
    begun: Instant,
    spoken: bool,
    ran: bool,
    /// When each call that runs began.
    running: HashMap<ToolCallId, Instant>,
}

impl Account {
    /// Of a turn that begins.
    pub fn new(what: For) -> Self {
        Self { what, begun: Instant::now(), spoken: false, ran: false, running: HashMap::new() }
    }

    /// Counts what happened; `own` are the tools that the client runs, which are no business of ours.
    pub fn take(&mut self, api: &Api, event: &Event, own: &[ToolName]) {
        match &event.kind {
            EventKind::TextDelta { .. }
            | EventKind::ThinkingDelta { .. }
            | EventKind::ToolCallDelta { .. } => {
                if !std::mem::replace(&mut self.spoken, true) && self.what == For::Answer {
                    api.metrics.first_token(self.begun.elapsed());
                }
            }
            // A call alone costs no tokens.
            EventKind::StepFinished { stats, .. } => api.metrics.tokens(&stats.usage),
            EventKind::ToolStarted { call } if !own.contains(&call.tool) => {
                self.running.insert(call.id.clone(), Instant::now());
                if !std::mem::replace(&mut self.ran, true) && self.what == For::Answer {
                    api.metrics.tools_ran();
                }
            }
            EventKind::ToolFinished { result, .. } if !own.contains(&result.tool) => self.ended(api, result),
            EventKind::TurnStarted { .. }
            | EventKind::StepStarted { .. }
            | EventKind::ModelLoading { .. }
            | EventKind::PromptProgress { .. }
            | EventKind::Retrying { .. }
            | EventKind::PermissionRequested { .. }
            | EventKind::PermissionAnswered { .. }
            | EventKind::ToolStarted { .. }
            | EventKind::ToolProgress { .. }
            | EventKind::ToolWire { .. }
            | EventKind::ToolLog { .. }
            | EventKind::QuestionAsked { .. }
            | EventKind::QuestionAnswered { .. }
            | EventKind::SampleFinished { .. }
            | EventKind::ToolFinished { .. }
            | EventKind::Notice { .. }
            | EventKind::TurnFinished { .. } => {}
        }
    }

    fn ended(&mut self, api: &Api, result: &ToolResult) {
        let ran = self.running.remove(&result.call).map(|begun| begun.elapsed());
        // Models make up names; those are no labels.
        let known = api.backend.tools().tools().iter().any(|spec| spec.name == result.tool);
        api.metrics.tool(known.then_some(result.tool.as_str()), result.outcome, ran);
    }
}
