//! Reads a reply of an OpenAI-compatible endpoint.
//!
//! Invariant: pure. Every piece of every call finds its call, whether servers count them, name them, or do neither.

use lectern_core::{Delta, FinishReason, Usage};
use serde_json::{Map, Value, json};

use super::think::{Said as Piece, Splitter};
use super::wire::{Call, Choice, Chunk, Function, Said, Timings};
use crate::fault::{Fault, FaultKind};
use crate::names::Names;
use crate::outcome::Ending;
use crate::reply::{Reader, Verdict, no_answer};

/// Reads one reply.
pub(crate) struct Reply {
    names: Names,
    calls: Vec<CallState>,
    tags: Splitter,
    has_text: bool,
    has_thoughts: bool,
    refused: bool,
    done: bool,
    pub(crate) finish: Option<Ending>,
    pub(crate) usage: Map<String, Value>,
    pub(crate) model: Option<String>,
    timings: Timings,
}

/// A call as far as it has come.
#[derive(Default)]
struct CallState {
    index: Option<i64>,
    id: Option<String>,
    name: Option<String>,
    /// What came before the name.
    waiting: String,
    extra: Option<Value>,
    arguments: String,
}

impl Reply {
    pub(crate) fn new(names: Names) -> Self {
        Self {
            names,
            calls: Vec::new(),
            tags: Splitter::default(),
            has_text: false,
            has_thoughts: false,
            refused: false,
            done: false,
            finish: None,
            usage: Map::new(),
            model: None,
            timings: Timings::default(),
        }
    }

    fn choice(&mut self, choice: Choice, out: &mut Vec<Delta>) {
        if let Some(said) = choice.delta.or(choice.message) {
            self.said(said, out);
        }
        if let Some(word) = choice.finish_reason.filter(|word| !word.is_empty()) {
            self.finish = Some(Ending::of(&word));
        }
    }

    fn said(&mut self, said: Said, out: &mut Vec<Delta>) {
        // Some servers send both names with the same words.
        let reasoning = said.reasoning_content.filter(|value| !value.is_null()).or(said.reasoning);
        let mut thinking = words(reasoning.as_ref());
        if thinking.is_empty() {
            thinking = words(said.reasoning_details.as_ref());
        }
        if !thinking.is_empty() {
            let before = self.tags.settle();
            self.tell(before, out);
            self.tell(Some(Piece::Thought(thinking)), out);
        }
        self.content(said.content, out);
        let refusal = words(said.refusal.as_ref());
        if !refusal.is_empty() {
            (self.has_text, self.refused) = (true, true);
            out.push(Delta::Text(refusal));
        }
        // llama-cpp-python writes the same call in both forms.
        let old_form = said.function_call.filter(|_| said.tool_calls.is_empty());
        for call in said.tool_calls {
            self.call(call, out);
        }
        if let Some(function) = old_form {
            self.call(Call { index: Some(0), function: Some(function), ..Call::default() }, out);
        }
    }

    /// Text, or parts of which some may be thoughts.
    fn content(&mut self, content: Option<Value>, out: &mut Vec<Delta>) {
        match content {
            Some(Value::Array(parts)) => {
                for part in parts {
                    let kind = part.get("type").and_then(Value::as_str).unwrap_or_default();
                    let thought = matches!(kind, "thinking" | "reasoning" | "thought");
                    let text = words(Some(&part));
                    self.tell(Some(if thought { Piece::Thought(text) } else { Piece::Text(text) }), out);
                }
            }
            Some(Value::String(text)) => {
                for piece in self.tags.push(text) {
                    self.tell(Some(piece), out);
                }
            }
            other => self.tell(Some(Piece::Text(words(other.as_ref()))), out),
        }
    }

    fn tell(&mut self, piece: Option<Piece>, out: &mut Vec<Delta>) {
        match piece {
            Some(Piece::Text(text)) if !text.is_empty() => {
                self.has_text = true;
                out.push(Delta::Text(text));
            }
            Some(Piece::Thought(text)) if !text.is_empty() => {
                self.has_thoughts = true;
                out.push(Delta::Thinking(text));
            }
            Some(Piece::Text(_) | Piece::Thought(_)) | None => {}
        }
    }

    fn call(&mut self, call: Call, out: &mut Vec<Delta>) {
        let before = self.tags.settle();
        self.tell(before, out);
        let Call { index, id, function, extra_content } = call;
        let id = match id {
            // Mistral once wrote the word.
            Some(Value::String(id)) => Some(id).filter(|id| !id.is_empty() && id != "null"),
            Some(Value::Number(id)) => Some(id.to_string()),
            Some(Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_)) | None => None,
        };
        let Function { name, arguments } = function.unwrap_or_default();
        let name = name.filter(|name| !name.is_empty());
        let piece = argument_text(arguments);
        let place = self.place(index, id.as_deref(), name.as_deref(), &piece);
        let number = u32::try_from(place).unwrap_or(u32::MAX);
        let state = &mut self.calls[place];
        state.index = state.index.or(index);
        state.id = state.id.take().or(id);
        state.extra = state.extra.take().or(extra_content);
        let begins = state.name.is_none() && name.is_some();
        state.name = state.name.take().or(name);
        state.arguments.push_str(&piece);
        if begins {
            out.push(start(number, state, &self.names));
            let waiting = std::mem::take(&mut state.waiting);
            push_arguments(number, waiting, out);
        }
        if state.name.is_some() {
            push_arguments(number, piece, out);
        } else {
            state.waiting.push_str(&piece);
        }
    }

    /// The call that a piece belongs to; a new one if it begins one.
    fn place(&mut self, index: Option<i64>, id: Option<&str>, name: Option<&str>, piece: &str) -> usize {
        let last = self.calls.len().checked_sub(1);
        // Of the same number, the last one counts: servers that number every call 0 tell them apart by their ids.
        let known = match (index, id) {
            (Some(index), _) => self.calls.iter().rposition(|call| call.index == Some(index)),
            (None, Some(id)) => self.calls.iter().rposition(|call| call.id.as_deref() == Some(id)),
            // A name begins a call, unless the last one still waits for its name.
            (None, None) => last.filter(|last| name.is_none() || self.calls[*last].name.is_none()),
        };
        let other = |place: &usize| {
            let call = &self.calls[*place];
            let other_name = matches!((call.name.as_deref(), name), (Some(here), Some(name)) if here != name);
            // Most pieces have no name. Arguments are read only where it matters: they may be long, and their pieces many.
            let named = |new: bool| name.is_some() && new;
            let other_id = named(matches!((call.id.as_deref(), id), (Some(here), Some(id)) if here != id));
            // Servers that make a new id for each piece go on with arguments that are not whole.
            let goes_on =
                || !call.arguments.is_empty() && !begins_object(piece) && !is_whole(&call.arguments);
            // Without ids, a second whole call of the same name and number can only be told by its arguments.
            let begins = named(id.is_none() && begins_object(piece));
            other_name || other_id && !goes_on() || begins && is_whole(&call.arguments)
        };
        match known.filter(|place| !other(place)) {
            Some(place) => place,
            None if index.is_none() && id.is_some() && name.is_none() && last.is_some() => last.unwrap_or(0),
            None => {
                self.calls.push(CallState::default());
                self.calls.len() - 1
            }
        }
    }

    fn usage(&mut self, usage: Map<String, Value>, out: &mut Vec<Delta>) {
        self.usage.extend(usage.into_iter().filter(|(_, value)| !value.is_null()));
        let whole = Value::Object(self.usage.clone());
        let count = |pointer: &str| {
            let count = whole.pointer(pointer).and_then(Value::as_u64)?;
            Some(u32::try_from(count).unwrap_or(u32::MAX))
        };
        let millis =
            |ms: Option<f64>| ms.filter(|ms| ms.is_finite() && *ms >= 0.0).map(|ms| ms.round() as u32);
        out.push(Delta::Usage(Usage {
            prompt_tokens: count("/prompt_tokens").unwrap_or(0),
            reused_tokens: count("/prompt_tokens_details/cached_tokens")
                .or_else(|| count("/prompt_cache_hit_tokens"))
                .unwrap_or(0),
            generated_tokens: count("/completion_tokens").unwrap_or(0),
            thinking_tokens: count("/completion_tokens_details/reasoning_tokens"),
            prompt_ms: millis(self.timings.prompt_ms),
            generation_ms: millis(self.timings.predicted_ms),
            ..Usage::default()
        }));
    }
}

fn start(index: u32, call: &CallState, names: &Names) -> Delta {
    Delta::ToolCallStarted {
        index,
        // The core gives an id where the server gave none.
        id: call.id.clone().unwrap_or_default().into(),
        tool: names.tool(call.name.as_deref().unwrap_or_default()),
        provider_data: call.extra.as_ref().map(|extra| json!({ "openai": { "extra_content": extra } })),
    }
}

fn push_arguments(index: u32, fragment: String, out: &mut Vec<Delta>) {
    if !fragment.is_empty() {
        out.push(Delta::ToolCallArguments { index, fragment });
    }
}

/// A text, or a list of parts with texts.
fn words(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => parts.iter().map(|part| words(Some(part))).collect(),
        Some(Value::Object(part)) => {
            let names = ["text", "content", "thinking", "reasoning", "summary"];
            words(names.iter().find_map(|name| part.get(*name)))
        }
        Some(Value::Null | Value::Bool(_) | Value::Number(_)) | None => String::new(),
    }
}

fn begins_object(piece: &str) -> bool {
    piece.trim_start().starts_with('{')
}

fn is_whole(arguments: &str) -> bool {
    serde_json::from_str::<Map<String, Value>>(arguments).is_ok()
}

fn argument_text(arguments: Option<Value>) -> String {
    match arguments {
        Some(Value::String(text)) => text,
        None | Some(Value::Null) => String::new(),
        Some(other) => other.to_string(),
    }
}

impl Reader for Reply {
    fn document(&mut self, json: &[u8], out: &mut Vec<Delta>) -> Result<(), Fault> {
        let chunk: Chunk = match serde_json::from_slice(json) {
            Ok(chunk) => chunk,
            // Bytes that are no UTF-8 cost a few characters, not the reply.
            Err(_) => serde_json::from_str(&String::from_utf8_lossy(json)).map_err(|_| no_answer(json))?,
        };
        // Errors without a field of their own: vLLM once, Mistral, FastAPI, LM Studio's `event: error`.
        let bare = chunk.object.as_ref().is_some_and(|object| object == "error")
            || (chunk.choices.is_empty() && (chunk.detail.is_some() || chunk.message.is_some()));
        self.model = chunk.model.or(self.model.take());
        for choice in chunk.choices {
            // One reply is asked for.
            if choice.index.is_none_or(|index| index == 0) {
                self.choice(choice, out);
            }
        }
        self.timings = chunk.timings.unwrap_or(std::mem::take(&mut self.timings));
        if let Some(usage) = chunk.usage.or(chunk.x_groq.and_then(|groq| groq.usage)) {
            self.usage(usage, out);
        }
        // Last: what came with an error counts too.
        if let Some(error) = chunk.error.filter(|error| !error.is_null()) {
            return Err(Fault::from_stream(&json!({ "error": error })));
        }
        if bare {
            return Err(Fault::from_stream(&serde_json::from_slice(json).unwrap_or_default()));
        }
        Ok(())
    }

    fn is_end_mark(&self, data: &[u8]) -> bool {
        data == b"[DONE]"
    }

    fn verdict(&mut self) -> Verdict {
        let mut held = Vec::new();
        let rest = self.tags.settle();
        self.tell(rest, &mut held);
        for (place, call) in self.calls.iter_mut().enumerate() {
            // A call that never got a name is told all the same: the model hears that there is no such tool.
            if call.name.is_none() && !call.arguments.is_empty() {
                let index = u32::try_from(place).unwrap_or(u32::MAX);
                held.push(start(index, call, &self.names));
                push_arguments(index, std::mem::take(&mut call.waiting), &mut held);
            }
        }
        let has_calls = !self.calls.is_empty();
        let nothing = !self.has_text && !has_calls;
        let spoken = if has_calls { FinishReason::ToolCalls } else { FinishReason::Stop };
        let empty = Fault::of(FaultKind::Empty);
        let filtered = Fault::of(FaultKind::Filtered { finish: Ending::ContentFilter });
        match &self.finish {
            Some(Ending::ContentFilter) if self.has_text => Verdict::stands(Ok(FinishReason::Filtered), held),
            Some(Ending::ContentFilter) => Verdict::stands(Err(filtered), Vec::new()),
            // What came is kept; the error itself stood beside it, or was never told.
            Some(Ending::Failed) => {
                Verdict::stands(Err(Fault::of(FaultKind::Overloaded)), held).without_calls()
            }
            Some(Ending::Length | Ending::ModelLength) => Verdict::stands(Ok(FinishReason::Length), held),
            Some(_) if self.refused => Verdict::stands(Ok(FinishReason::Filtered), held),
            Some(Ending::Stop | Ending::ToolCalls | Ending::FunctionCall | Ending::Other(_)) if nothing => {
                let again = (!self.has_thoughts).then_some(empty);
                Verdict { again, ..Verdict::stands(Ok(FinishReason::Stop), held) }
            }
            Some(Ending::Stop | Ending::ToolCalls | Ending::FunctionCall | Ending::Other(_)) => {
                Verdict::stands(Ok(spoken), held)
            }
            None if nothing => Verdict { again: Some(empty.clone()), ..Verdict::stands(Err(empty), held) },
            // Servers that give no reason close properly at least.
            None if self.done => Verdict::stands(Ok(spoken), held),
            None => {
                let why = "it ended without a reason".to_owned();
                Verdict::stands(Err(Fault::of(FaultKind::Broken { why })), held).without_calls()
            }
        }
    }

    fn end_mark(&mut self) {
        self.done = true;
    }
}
