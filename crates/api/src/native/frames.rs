//! A turn as the frames of `/api`, and as one body.

use std::collections::HashMap;

use bytes::Bytes;
use lectern_core::{
    AssistantMessage, EventKind, FinishReason, ToolCallId, ToolOutcome, ToolResult, TurnOutcome, Usage,
};
use serde_json::{Map, Value, json};

use crate::error::ApiError;
use crate::sessions::Session;
use crate::sse;
use crate::state::stopped;
use crate::turning::Happening;
use crate::v1::outcome::{finish_reason, of_turn, ran_out, sum, usage};

/// Numbers the frames of one answer, and remembers what its end tells.
pub struct Frames {
    session: Session,
    own: Vec<String>,
    seq: u64,
    calls: HashMap<ToolCallId, Told>,
    ran: Vec<String>,
    usage: Usage,
    /// The last message of the model.
    pub last: Option<AssistantMessage>,
    finish: Option<FinishReason>,
}

/// What was told of a call.
struct Told {
    index: usize,
    /// Whether its arguments are there, as far as they are written.
    arguments: bool,
}

/// What became of an answer.
pub enum End {
    /// It is whole.
    Done {
        /// `finish_reason`.
        finish: &'static str,
    },
    /// It could not go on.
    Failed(ApiError),
}

impl Frames {
    /// For an answer in this session; `own` are the client's own tools.
    pub fn new(session: Session, own: Vec<String>) -> Self {
        Self {
            session,
            own,
            seq: 0,
            calls: HashMap::new(),
            ran: Vec::new(),
            usage: Usage::default(),
            last: None,
            finish: None,
        }
    }

    /// The frames that tell what happened, and the end when it was that.
    pub fn take(&mut self, happening: &Happening) -> (Vec<Value>, Option<End>) {
        let mut end = None;
        let frame = match &happening.event.kind {
            EventKind::TextDelta { text } => Some(("content", json!({"delta": {"content": text}}))),
            EventKind::ThinkingDelta { text } => Some(("thinking", json!({"delta": {"content": text}}))),
            EventKind::ToolCallDelta { call, tool, arguments } => {
                Some(("tool_call", self.call_delta(call, tool.as_str(), arguments)))
            }
            EventKind::PermissionRequested { call, choices } if !self.is_own(call.tool.as_str()) => Some((
                "approval_required",
                json!({
                    "tool_call_id": call.id, "tool": call.tool, "arguments": call.arguments,
                    "approval_id": happening.approval, "choices": choices,
                }),
            )),
            EventKind::ToolStarted { call } if !self.is_own(call.tool.as_str()) => {
                self.ran.push(call.tool.0.clone());
                let frame = json!({"tool_call_id": call.id, "tool": call.tool, "arguments": call.arguments});
                Some(("tool_start", frame))
            }
            EventKind::ToolProgress { call, progress } => {
                Some(("tool_progress", json!({"tool_call_id": call, "progress": progress})))
            }
            EventKind::ToolFinished { result, .. } if !self.is_own(result.tool.as_str()) => {
                let frame =
                    json!({"tool_call_id": result.call, "tool": result.tool, "result": result_view(result)});
                Some(("tool_result", frame))
            }
            EventKind::StepFinished { message, finish, stats, .. } => {
                self.usage = sum(self.usage, stats.usage);
                self.finish = Some(*finish);
                let rest = self.untold(message);
                self.last = Some(message.clone());
                return (rest, None);
            }
            EventKind::TurnFinished { outcome } => {
                end = Some(self.ended(outcome));
                None
            }
            EventKind::TurnStarted { .. }
            | EventKind::StepStarted { .. }
            | EventKind::ModelLoading { .. }
            | EventKind::PromptProgress { .. }
            | EventKind::Retrying { .. }
            | EventKind::PermissionRequested { .. }
            | EventKind::PermissionAnswered { .. }
            | EventKind::ToolStarted { .. }
            | EventKind::ToolWire { .. }
            | EventKind::ToolLog { .. }
            | EventKind::QuestionAsked { .. }
            | EventKind::QuestionAnswered { .. }
            | EventKind::SampleFinished { .. }
            | EventKind::ToolFinished { .. }
            | EventKind::Notice { .. } => None,
        };
        let frames = frame.map(|(kind, fields)| self.frame(kind, fields)).into_iter().collect();
        (frames, end)
    }

    /// The last frames, `[DONE]` included.
    pub fn closing(&mut self, end: &End) -> Bytes {
        let mut out = Vec::new();
        match end {
            End::Done { finish } => {
                let frame = self.frame("usage", json!({"usage": usage(&self.usage)}));
                out.extend_from_slice(&sse::data(&frame));
                let fields = json!({"finish_reason": finish, "tool_execution": self.tool_execution()});
                out.extend_from_slice(&sse::data(&self.frame("done", fields)));
            }
            End::Failed(error) => {
                out.extend_from_slice(&sse::data(&self.frame("error", error.body())));
            }
        }
        out.extend_from_slice(sse::DONE);
        out.into()
    }

    /// What ran here, and where.
    pub fn tool_execution(&self) -> Value {
        json!({
            "executed": !self.ran.is_empty(),
            "tools_called": self.ran,
            "session_id": self.session.id,
            "conversation": self.session.conversation,
            "workspace_path": self.session.workspace,
        })
    }

    /// What the answer cost.
    pub fn usage(&self) -> Value {
        usage(&self.usage)
    }

    fn frame(&mut self, kind: &str, fields: Value) -> Value {
        let mut frame = Map::new();
        frame.insert("type".to_owned(), json!(kind));
        frame.insert("seq".to_owned(), json!(self.seq));
        self.seq += 1;
        if let Value::Object(fields) = fields {
            frame.extend(fields);
        }
        Value::Object(frame)
    }

    /// As OpenAI writes pieces of calls: the id and the name with the first one only.
    fn call_delta(&mut self, call: &ToolCallId, tool: &str, arguments: &str) -> Value {
        let known = self.calls.len();
        let told = self.calls.entry(call.clone()).or_insert(Told { index: known, arguments: false });
        told.arguments |= !arguments.trim().is_empty();
        let index = told.index;
        let delta = if index == known {
            json!({"index": index, "id": call, "type": "function", "function": {"name": tool, "arguments": arguments}})
        } else {
            json!({"index": index, "function": {"arguments": arguments}})
        };
        json!({"tool_call_id": call, "delta": {"tool_calls": [delta]}})
    }

    /// Calls of a whole message that were not told in pieces, and arguments of calls that have none: clients parse them.
    fn untold(&mut self, message: &AssistantMessage) -> Vec<Value> {
        let mut frames = Vec::new();
        for call in message.tool_calls() {
            if self.calls.get(&call.id).is_none_or(|told| !told.arguments) {
                let arguments = Value::Object(call.arguments.clone()).to_string();
                let fields = self.call_delta(&call.id, call.tool.as_str(), &arguments);
                frames.push(self.frame("tool_call", fields));
            }
        }
        frames
    }

    /// Whether the client runs this tool itself.
    pub fn is_own(&self, tool: &str) -> bool {
        self.own.iter().any(|own| own == tool)
    }

    /// Whether the last step left calls to the client.
    fn is_handed_over(&self) -> bool {
        let mut calls = self.last.iter().flat_map(AssistantMessage::tool_calls);
        calls.any(|call| self.is_own(call.tool.as_str()))
    }

    fn ended(&self, outcome: &TurnOutcome) -> End {
        let finish = match outcome {
            TurnOutcome::Completed if self.is_handed_over() => return End::Done { finish: "tool_calls" },
            TurnOutcome::Completed => self.finish.unwrap_or(FinishReason::Stop),
            TurnOutcome::StepLimit => FinishReason::Length,
            TurnOutcome::Cancelled => return End::Failed(stopped()),
            TurnOutcome::Failed { error } if ran_out(self.finish, error) => FinishReason::Length,
            TurnOutcome::Failed { error } => return End::Failed(of_turn(error)),
        };
        End::Done { finish: finish_reason(finish, false).unwrap_or("stop") }
    }
}

/// What a tool gave.
pub fn result_view(result: &ToolResult) -> Value {
    json!({
        "success": result.outcome == ToolOutcome::Succeeded,
        "outcome": result.outcome,
        "content": result.text(),
        "structured": result.structured,
    })
}
