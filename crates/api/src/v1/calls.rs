//! An answer in pieces, as both forms of a response need it.
//!
//! Invariant: the calls are numbered from 0 in the order in which they began; each begins once, with an id that no other
//! call of the conversation has; arguments of a call are never empty in the end.

use std::collections::{HashMap, HashSet};

use futures::stream::BoxStream;
use futures::{StreamExt, stream};
use lectern_core::{ChatModel, ChatRequest, Delta, FinishReason, Message, ToolCallId, Usage};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::outcome::of_model;
use crate::error::ApiError;

/// A piece of an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    /// The request was taken; the words are still to come.
    Working,
    /// Words.
    Text(String),
    /// Words of reasoning.
    Thinking(String),
    /// A call begins.
    Call {
        /// Its number in this answer.
        index: u32,
        /// Its id.
        id: ToolCallId,
        /// The tool's name.
        tool: String,
    },
    /// More of the arguments of a call.
    Arguments {
        /// The number of the call.
        index: u32,
        /// JSON text.
        fragment: String,
    },
    /// Something that a strict client must not see, for a comment of the stream.
    Remark(String),
    /// The end.
    Done {
        /// Why.
        finish: FinishReason,
        /// What it cost.
        usage: Usage,
    },
}

/// An answer on its way. Dropping it stops the model.
pub type Pieces = BoxStream<'static, Result<Piece, ApiError>>;

/// Asks a model, once.
pub fn ask(model: &dyn ChatModel, request: ChatRequest, parallel: bool, cancel: CancellationToken) -> Pieces {
    let calls = Calls::new(&request.messages, parallel);
    let deltas = model.stream(request, cancel.clone());
    let answer = Answer { deltas, calls, cancel: cancel.drop_guard(), usage: Usage::default(), end: None };
    stream::unfold(answer, |mut answer| async move {
        let pieces = answer.next().await?;
        Some((stream::iter(pieces), answer))
    })
    .flatten()
    .boxed()
}

struct Answer {
    deltas: BoxStream<'static, Result<Delta, lectern_core::ModelError>>,
    calls: Calls,
    cancel: DropGuard,
    usage: Usage,
    end: Option<End>,
}

#[derive(Clone, Copy)]
enum End {
    /// The model is done; only the accounts may follow.
    Finished(FinishReason),
    /// The last piece was given.
    Told,
}

impl Answer {
    /// The next pieces; none after the end.
    async fn next(&mut self) -> Option<Vec<Result<Piece, ApiError>>> {
        if matches!(self.end, Some(End::Told)) {
            return None;
        }
        loop {
            let Some(delta) = self.deltas.next().await else { return Some(self.close()) };
            let delta = match delta {
                Ok(delta) => delta,
                // The reply is whole already; what breaks afterwards does not unmake it.
                Err(_) if self.end.is_some() => return Some(self.close()),
                Err(error) => {
                    self.end = Some(End::Told);
                    return Some(vec![Err(of_model(error))]);
                }
            };
            let pieces = self.take(delta);
            if !pieces.is_empty() {
                return Some(pieces.into_iter().map(Ok).collect());
            }
        }
    }

    fn take(&mut self, delta: Delta) -> Vec<Piece> {
        match delta {
            Delta::Usage(usage) => self.usage = usage,
            // What stopped the model may have been that its answer is whole.
            Delta::Finished(finish) => _ = self.end.get_or_insert(End::Finished(finish)),
            Delta::Loading(_) | Delta::ProviderData(_) | Delta::Notice { .. } | Delta::Retrying { .. } => {}
            Delta::PromptProgress { .. } => return vec![Piece::Working],
            Delta::Text(_)
            | Delta::Thinking(_)
            | Delta::ToolCallStarted { .. }
            | Delta::ToolCallArguments { .. }
                if self.end.is_some() => {}
            Delta::Text(text) if text.is_empty() => {}
            Delta::Text(text) => return vec![Piece::Text(text)],
            Delta::Thinking(text) if text.is_empty() => {}
            Delta::Thinking(text) => return vec![Piece::Thinking(text)],
            Delta::ToolCallStarted { index, id, tool, .. } => {
                if self.calls.is_one_too_many(index, &id) {
                    self.enough();
                    return Vec::new();
                }
                return self.calls.begin(index, id, tool.0);
            }
            Delta::ToolCallArguments { index, fragment } => return self.calls.extend(index, fragment),
        }
        Vec::new()
    }

    /// Only one call was asked for, and it is whole: the next one began.
    fn enough(&mut self) {
        self.end = Some(End::Finished(FinishReason::ToolCalls));
        self.cancel = {
            let fresh = CancellationToken::new();
            // The guard that is replaced stops the model as it goes.
            fresh.drop_guard()
        };
    }

    fn close(&mut self) -> Vec<Result<Piece, ApiError>> {
        let end = self.end.replace(End::Told);
        let finish = match end {
            Some(End::Finished(finish)) => finish,
            Some(End::Told) | None => FinishReason::Failed,
        };
        let mut pieces: Vec<Result<Piece, ApiError>> = Vec::new();
        match finish {
            FinishReason::Stop | FinishReason::ToolCalls => pieces.extend(self.calls.complete().map(Ok)),
            FinishReason::Length
            | FinishReason::Filtered
            | FinishReason::Cancelled
            | FinishReason::Failed => {}
        }
        pieces.push(match finish {
            FinishReason::Failed => Err(broke_off()),
            FinishReason::Stop
            | FinishReason::ToolCalls
            | FinishReason::Length
            | FinishReason::Filtered
            | FinishReason::Cancelled => Ok(Piece::Done { finish, usage: self.usage }),
        });
        pieces
    }
}

/// The model stopped in the middle.
pub fn broke_off() -> ApiError {
    ApiError::failed(axum::http::StatusCode::BAD_GATEWAY, "answer_broke_off", "the model's reply broke off")
}

/// The calls of one answer.
pub struct Calls {
    used: HashSet<ToolCallId>,
    slots: Vec<Slot>,
    /// Where the calls stand that the model tells apart by its own numbers.
    by_index: HashMap<u32, usize>,
    parallel: bool,
}

struct Slot {
    /// As the model named it; tells a repeated start from a new call.
    named: ToolCallId,
    empty: bool,
}

impl Calls {
    /// For an answer to these messages.
    pub fn new(messages: &[Message], parallel: bool) -> Self {
        let used = messages.iter().flat_map(|message| match message {
            Message::Assistant(assistant) => {
                assistant.tool_calls().map(|call| call.id.clone()).collect::<Vec<_>>()
            }
            Message::User(_) | Message::Tool(_) => Vec::new(),
        });
        Self { used: used.collect(), slots: Vec::new(), by_index: HashMap::new(), parallel }
    }

    fn slot(&mut self, index: u32) -> Option<(u32, &mut Slot)> {
        let at = *self.by_index.get(&index)?;
        Some((u32::try_from(at).ok()?, self.slots.get_mut(at)?))
    }

    /// Whether it is a second call where only one was asked for.
    fn is_one_too_many(&mut self, index: u32, id: &ToolCallId) -> bool {
        let known = self.slot(index).is_some_and(|(_, slot)| slot.named == *id);
        !self.parallel && !known && !self.slots.is_empty()
    }

    /// A call begins; nothing when it is only named again.
    pub fn begin(&mut self, index: u32, id: ToolCallId, tool: String) -> Vec<Piece> {
        if self.slot(index).is_some_and(|(_, slot)| slot.named == id) {
            return Vec::new();
        }
        let number = self.slots.len();
        self.by_index.insert(index, number);
        self.slots.push(Slot { named: id.clone(), empty: true });
        let good = !id.as_str().is_empty() && id.as_str().len() <= 64 && !self.used.contains(&id);
        let id = if good { id } else { ToolCallId(format!("call_{}", uuid::Uuid::new_v4().simple())) };
        self.used.insert(id.clone());
        vec![Piece::Call { index: u32::try_from(number).unwrap_or(u32::MAX), id, tool }]
    }

    /// More of the arguments; what belongs to no call is left out.
    pub fn extend(&mut self, index: u32, fragment: String) -> Vec<Piece> {
        let Some((number, slot)) = self.slot(index).filter(|_| !fragment.is_empty()) else {
            return Vec::new();
        };
        slot.empty &= fragment.trim().is_empty();
        vec![Piece::Arguments { index: number, fragment }]
    }

    /// Clients parse the arguments as JSON; nothing at all is none.
    pub fn complete(&mut self) -> impl Iterator<Item = Piece> + use<> {
        let empty = self.slots.iter_mut().enumerate();
        let empty = empty.filter_map(|(number, slot)| std::mem::take(&mut slot.empty).then_some(number));
        let numbers: Vec<usize> = empty.collect();
        numbers.into_iter().map(|number| Piece::Arguments {
            index: u32::try_from(number).unwrap_or(u32::MAX),
            fragment: "{}".to_owned(),
        })
    }
}
