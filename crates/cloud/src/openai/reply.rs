//! Reads a reply of an OpenAI-compatible endpoint.
//!
//! Invariant: pure. Whatever is sound of a chunk counts; an end that is none, or not known, is never taken for a good one.

use lectern_core::{Delta, FinishReason, Usage};
use serde_json::{Map, Value, json};

use super::calls::Calls;
use super::reasoning::Reasoning;
use super::think::{Said as Piece, Splitter};
use super::wire::{Call, Choice, Chunk, Said, Timings};
use crate::documents;
use crate::fault::{Fault, FaultKind, says_something};
use crate::names::Names;
use crate::outcome::Ending;
use crate::reply::{Reader, Taken, Verdict, too_long, unknown_end, withheld};

/// Reads one reply.
pub(crate) struct Reply {
    calls: Calls,
    tags: Splitter,
    /// Text came, told or not.
    has_content: bool,
    has_text: bool,
    has_thoughts: bool,
    /// Something of it came in pieces.
    in_pieces: bool,
    refused: bool,
    /// Parts that can't be shown, told once.
    unshown: bool,
    done: bool,
    finish: Option<Ending>,
    /// The server's own word for it.
    pub(crate) finish_word: Option<String>,
    pub(crate) usage: Map<String, Value>,
    pub(crate) model: Option<String>,
    timings: Timings,
    reasoning: Reasoning,
}

impl Reply {
    /// `origin` is what the message keeps of where its thoughts came from.
    pub(crate) fn new(names: Names, origin: &str) -> Self {
        Self {
            calls: Calls::new(names),
            tags: Splitter::default(),
            has_content: false,
            has_text: false,
            has_thoughts: false,
            in_pieces: false,
            refused: false,
            unshown: false,
            done: false,
            finish: None,
            finish_word: None,
            usage: Map::new(),
            model: None,
            timings: Timings::default(),
            reasoning: Reasoning::new(origin),
        }
    }

    fn choice(&mut self, choice: Choice, out: &mut Vec<Delta>) -> Result<(), Fault> {
        if let Some(delta) = choice.delta {
            self.said(delta, out);
            self.in_pieces |= self.has_content || self.has_thoughts || self.calls.any();
        }
        if let Some(message) = choice.message {
            self.message(message, out);
        }
        if let Some(word) = choice.finish_reason.filter(|word| !word.is_empty()) {
            let finish = Ending::meant(&word);
            // Some say that all is well once more behind the reason.
            if self.finish.is_none() || !finish.is_good() {
                self.finish = Some(finish);
                self.finish_word = Some(word);
            }
        }
        match choice.error.filter(|error| says_something(error, false)) {
            Some(error) => Err(Fault::from_stream(&json!({ "error": error }))),
            None => Ok(()),
        }
    }

    /// The whole message. Behind its pieces it says them once more.
    fn message(&mut self, mut message: Said, out: &mut Vec<Delta>) {
        if self.in_pieces {
            if self.has_content {
                (message.content, message.refusal) = (None, None);
            }
            if self.has_thoughts {
                (message.reasoning_content, message.reasoning, message.reasoning_details) =
                    (None, None, None);
            }
            if self.calls.any() {
                message.tool_calls.clear();
                message.function_call = None;
            }
        }
        self.said(message, out);
    }

    fn said(&mut self, said: Said, out: &mut Vec<Delta>) {
        let thinking = self.reasoning.take(&said);
        if !thinking.is_empty() {
            let before = self.tags.settle();
            self.tell(before, out);
            self.tell(Some(Piece::Thought(thinking)), out);
        }
        self.content(said.content, out);
        let refusal = words(said.refusal.as_ref());
        if !refusal.is_empty() {
            (self.has_content, self.refused) = (true, true);
            self.tell(Some(Piece::Text(refusal)), out);
        }
        if [&said.images, &said.audio].into_iter().flatten().any(|data| says_something(data, true)) {
            self.not_shown(out);
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

    fn call(&mut self, call: Call, out: &mut Vec<Delta>) {
        let before = self.tags.settle();
        self.tell(before, out);
        self.calls.take(call, out);
    }

    fn not_shown(&mut self, out: &mut Vec<Delta>) {
        if !std::mem::replace(&mut self.unshown, true) {
            let message = "the model sent a part that is neither text nor a call; it is not shown";
            out.push(Delta::Notice { code: "part_not_shown".to_owned(), message: message.to_owned() });
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
                    if text.is_empty() && !thought && !matches!(kind, "" | "text" | "output_text") {
                        self.not_shown(out);
                    }
                    self.tell(Some(if thought { Piece::Thought(text) } else { Piece::Text(text) }), out);
                }
            }
            Some(Value::String(text)) => {
                self.has_content |= !text.is_empty();
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
                (self.has_content, self.has_text) = (true, true);
                self.calls.settle(out);
                out.push(Delta::Text(text));
            }
            Some(Piece::Thought(text)) if !text.is_empty() => {
                self.has_thoughts = true;
                self.calls.settle(out);
                out.push(Delta::Thinking(text));
            }
            Some(Piece::Text(_) | Piece::Thought(_)) | None => {}
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

/// A text, or a list of parts with texts.
pub(super) fn words(value: Option<&Value>) -> String {
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

impl Reader for Reply {
    fn document(&mut self, json: &[u8], out: &mut Vec<Delta>) -> Result<Taken, Fault> {
        let Some(chunk) = documents::read::<Chunk>(json) else { return Ok(Taken::NoDocument) };
        let alone = chunk.choices.is_empty() && chunk.usage.is_none();
        // Errors without a field of their own: vLLM once, Mistral, FastAPI, LM Studio's `event: error`. Behind a reply
        // that is over, or beside its counts, such a word is none.
        let has_words =
            [&chunk.detail, &chunk.message].into_iter().flatten().any(|words| says_something(words, false));
        let bare = chunk.object.as_ref().is_some_and(|object| object == "error")
            || (alone && self.finish.is_none() && has_words);
        if let Some(model) = chunk.model.filter(|_| self.model.is_none()) {
            self.tags.of_model(&model);
            self.model = Some(model);
        }
        let mut failed = Ok(());
        for choice in chunk.choices {
            // One reply is asked for.
            if choice.index.is_none_or(|index| index == 0) {
                failed = failed.and(self.choice(choice, out));
            }
        }
        if self.calls.are_too_long() {
            return Err(too_long());
        }
        self.timings = chunk.timings.unwrap_or(std::mem::take(&mut self.timings));
        if let Some(usage) = chunk.usage.or(chunk.x_groq.and_then(|groq| groq.usage)) {
            self.usage(usage, out);
        }
        // Last: what came with an error counts too.
        if let Some(error) = chunk.error.filter(|error| says_something(error, alone)) {
            let whole = documents::read::<Value>(json).filter(|_| !error.is_object() && !error.is_array());
            return Err(Fault::from_stream(&whole.unwrap_or_else(|| json!({ "error": error }))));
        }
        failed?;
        if bare {
            return Err(Fault::from_stream(&documents::read(json).unwrap_or_default()));
        }
        Ok(Taken::Read)
    }

    fn is_end_mark(&self, data: &[u8]) -> bool {
        data == b"[DONE]"
    }

    fn verdict(&mut self) -> Verdict {
        let mut held = Vec::new();
        let rest = self.tags.settle();
        self.tell(rest, &mut held);
        self.calls.finish(&mut held);
        if self.calls.any() {
            held.extend(self.reasoning.as_data().map(Delta::ProviderData));
        }
        let word = self.finish_word.as_deref().unwrap_or_default();
        let nothing = !self.has_text && !self.calls.any();
        let (end, again) = self.ended(nothing, word);
        let runs_calls = match &end {
            Ok(FinishReason::Filtered) => {
                held.push(withheld(if self.refused { "refusal" } else { word }));
                false
            }
            Ok(FinishReason::Stop) if matches!(self.finish, Some(Ending::Other(_))) => {
                held.push(unknown_end(word));
                true
            }
            Ok(_) => true,
            Err(_) => false,
        };
        let verdict = Verdict { again, ..Verdict::stands(end, held) };
        if runs_calls { verdict } else { verdict.without_calls() }
    }

    fn end_mark(&mut self) {
        self.done = true;
    }
}

impl Reply {
    /// What the end means: the outcome, and why it may be worth asking once more.
    fn ended(&self, nothing: bool, word: &str) -> (Result<FinishReason, Fault>, Option<Fault>) {
        let spoken = if self.calls.any() { FinishReason::ToolCalls } else { FinishReason::Stop };
        let empty = || Fault::of(FaultKind::Empty);
        match &self.finish {
            Some(Ending::ContentFilter) if self.has_text => (Ok(FinishReason::Filtered), None),
            Some(Ending::ContentFilter) => {
                (Err(Fault::of(FaultKind::Filtered { finish: Ending::ContentFilter })), None)
            }
            // What came is kept; the error itself stood beside it, or was never told.
            Some(Ending::Failed) => {
                let fault = Fault::of(FaultKind::Overloaded);
                (Err(fault.clone()), nothing.then_some(fault))
            }
            Some(Ending::Length | Ending::ModelLength) => (Ok(FinishReason::Length), None),
            Some(_) if self.refused => (Ok(FinishReason::Filtered), None),
            // Nobody knows whether the calls of such a reply are to run.
            Some(Ending::Other(_)) if nothing || self.calls.any() => {
                let fault = Fault::of(FaultKind::UnknownEnd { word: word.to_owned() });
                (Err(fault), nothing.then(empty))
            }
            // A part that can't be shown is an answer all the same.
            Some(Ending::Stop | Ending::ToolCalls | Ending::FunctionCall) if nothing && !self.unshown => {
                (Err(empty()), Some(empty()))
            }
            Some(Ending::Stop | Ending::ToolCalls | Ending::FunctionCall | Ending::Other(_)) => {
                (Ok(spoken), None)
            }
            None if nothing && !self.unshown => (Err(empty()), Some(empty())),
            // Servers that give no reason close properly at least.
            None if self.done => (Ok(spoken), None),
            None => {
                let why = "it ended without a reason".to_owned();
                (Err(Fault::of(FaultKind::Broken { why })), None)
            }
        }
    }
}
