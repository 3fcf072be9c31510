//! Puts a streamed reply together into one message.
//!
//! Invariant: parts stand in the order in which they began; the id of each call is unique in its conversation.

use std::collections::{HashMap, HashSet};

use crate::event::EventKind;
use crate::ids::{ModelId, ToolCallId, ToolName};
use crate::message::{AssistantMessage, JsonObject, Opaque, Part, Thinking, ToolCall, arguments_of};
use crate::model::{Delta, FinishReason, Usage};

/// Longest id of a provider that is kept as it is.
const MAX_ID_LENGTH: usize = 256;

/// A reply as far as it has come.
pub(super) struct Assembler {
    model: ModelId,
    pieces: Vec<Piece>,
    /// The piece that collects the arguments of the call with this index.
    calls: HashMap<u32, usize>,
    provider_data: Option<Opaque>,
    pub usage: Usage,
    pub finish: Option<FinishReason>,
    /// Bytes of text and arguments so far.
    pub size: usize,
}

enum Piece {
    Text(String),
    Thinking(String),
    Call(CallDraft),
}

struct CallDraft {
    id: ToolCallId,
    /// As the provider named it; tells a repeated start from a new call.
    provider_id: ToolCallId,
    tool: ToolName,
    arguments: String,
    provider_data: Option<Opaque>,
}

impl Assembler {
    pub fn new(model: ModelId) -> Self {
        Self {
            model,
            pieces: Vec::new(),
            calls: HashMap::new(),
            provider_data: None,
            usage: Usage::default(),
            finish: None,
            size: 0,
        }
    }

    /// Takes a delta in and gives the event that tells about it, if any does. `used` are the ids of the conversation.
    pub fn take(&mut self, delta: Delta, used: &mut HashSet<ToolCallId>) -> Option<EventKind> {
        match delta {
            Delta::Loading(fraction) => Some(EventKind::ModelLoading { fraction }),
            Delta::PromptProgress { done, total, reused } => {
                Some(EventKind::PromptProgress { done, total, reused })
            }
            Delta::Text(text) => self.take_text(text),
            Delta::Thinking(text) => self.take_thinking(text),
            Delta::ToolCallStarted { index, id, tool, provider_data } => {
                self.start_call(index, id, tool, provider_data, used)
            }
            Delta::ToolCallArguments { index, fragment } => self.extend_call(index, fragment),
            Delta::ProviderData(data) => {
                self.provider_data = Some(data);
                None
            }
            Delta::Retrying { after_ms, attempt, reason, message } => {
                Some(EventKind::Retrying { after_ms, attempt, reason, message })
            }
            Delta::Notice { code, message } => Some(EventKind::Notice { code, message }),
            Delta::Usage(usage) => {
                self.usage = usage;
                None
            }
            Delta::Finished(reason) => {
                self.finish = Some(reason);
                None
            }
        }
    }

    fn take_text(&mut self, text: String) -> Option<EventKind> {
        if text.is_empty() {
            return None;
        }
        self.size += text.len();
        if let Some(Piece::Text(last)) = self.pieces.last_mut() {
            last.push_str(&text);
        } else {
            self.pieces.push(Piece::Text(text.clone()));
        }
        Some(EventKind::TextDelta { text })
    }

    fn take_thinking(&mut self, text: String) -> Option<EventKind> {
        if text.is_empty() {
            return None;
        }
        self.size += text.len();
        if let Some(Piece::Thinking(last)) = self.pieces.last_mut() {
            last.push_str(&text);
        } else {
            self.pieces.push(Piece::Thinking(text.clone()));
        }
        Some(EventKind::ThinkingDelta { text })
    }

    fn start_call(
        &mut self,
        index: u32,
        provider_id: ToolCallId,
        tool: ToolName,
        provider_data: Option<Opaque>,
        used: &mut HashSet<ToolCallId>,
    ) -> Option<EventKind> {
        if let Some(Piece::Call(known)) = self.calls.get(&index).and_then(|at| self.pieces.get_mut(*at))
            && known.provider_id == provider_id
        {
            // Some servers repeat id and name with each piece.
            known.provider_data = provider_data.or(known.provider_data.take());
            return None;
        }
        let id = unique(&provider_id, used);
        self.calls.insert(index, self.pieces.len());
        let event =
            EventKind::ToolCallDelta { call: id.clone(), tool: tool.clone(), arguments: String::new() };
        let arguments = String::new();
        self.pieces.push(Piece::Call(CallDraft { id, provider_id, tool, arguments, provider_data }));
        Some(event)
    }

    fn extend_call(&mut self, index: u32, fragment: String) -> Option<EventKind> {
        let piece = self.calls.get(&index).and_then(|at| self.pieces.get_mut(*at));
        let Some(Piece::Call(call)) = piece else {
            return Some(EventKind::Notice {
                code: "stray_arguments".to_owned(),
                message: format!("the model sent arguments for call {index}, which it never began"),
            });
        };
        self.size += fragment.len();
        call.arguments.push_str(&fragment);
        Some(EventKind::ToolCallDelta { call: call.id.clone(), tool: call.tool.clone(), arguments: fragment })
    }

    /// Whether anything of the answer is there.
    pub fn has_begun(&self) -> bool {
        !self.pieces.is_empty()
    }

    /// The whole message. Calls of a reply of which a filter took a part are left out: they were withheld too. A call at
    /// which the limit of tokens was reached before its arguments began can't be told from one without arguments: it is
    /// one that can't be read.
    pub fn whole(&self) -> AssistantMessage {
        self.message(false)
    }

    /// The message as far as it has come. Calls are left out: none of them runs, and half a call is no call.
    pub fn partial(&self) -> AssistantMessage {
        self.message(true)
    }

    fn message(&self, incomplete: bool) -> AssistantMessage {
        let calls_count = !incomplete && self.finish != Some(FinishReason::Filtered);
        let last = self.pieces.len().saturating_sub(1);
        let is_cut = |at: usize| at == last && self.finish == Some(FinishReason::Length);
        let parts = self.pieces.iter().enumerate().filter_map(|(at, piece)| match piece {
            Piece::Text(text) => Some(Part::Text { text: text.clone() }),
            Piece::Thinking(text) => {
                Some(Part::Thinking(Thinking { text: text.clone(), provider_data: None }))
            }
            Piece::Call(call) => calls_count.then(|| Part::ToolCall(call.finish(is_cut(at)))),
        });
        AssistantMessage {
            parts: parts.collect(),
            model: Some(self.model.clone()),
            incomplete,
            provider_data: self.provider_data.clone(),
        }
    }
}

impl CallDraft {
    fn finish(&self, cut: bool) -> ToolCall {
        let whole = !(cut && self.arguments.trim().is_empty());
        let (arguments, malformed) = match arguments_of(&self.arguments).filter(|_| whole) {
            Some(arguments) => (arguments, None),
            None => (JsonObject::new(), Some(self.arguments.clone())),
        };
        ToolCall {
            id: self.id.clone(),
            tool: self.tool.clone(),
            arguments,
            malformed,
            provider_data: self.provider_data.clone(),
        }
    }
}

/// The provider's id where it is good, else a fresh one.
fn unique(id: &ToolCallId, used: &mut HashSet<ToolCallId>) -> ToolCallId {
    let good = !id.as_str().is_empty() && id.as_str().len() <= MAX_ID_LENGTH;
    let id = if good && !used.contains(id) { id.clone() } else { ToolCallId::fresh() };
    used.insert(id.clone());
    id
}
