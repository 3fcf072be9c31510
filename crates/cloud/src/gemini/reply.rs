//! Reads a reply of Gemini.
//!
//! Invariant: pure. A call is told when it is whole; calls wait until text follows them or the reply ends, because a
//! reply may end with the word that its calls are none. Each signature stays with the part it came on.

use lectern_core::{Delta, FinishReason, Usage};
use serde_json::{Map, Value, json};

use super::layout::{Kind, Layout};
use super::partial;
use super::wire::{Candidate, Chunk, FunctionCall, Part};
use crate::fault::{Fault, FaultKind, Said};
use crate::names::Names;
use crate::outcome::{BlockReason, Finish};
use crate::reply::{Reader, Verdict, no_answer};

/// Reads one reply.
pub(crate) struct Reply {
    model: String,
    names: Names,
    held: Vec<Delta>,
    open: Option<OpenCall>,
    calls: u32,
    layout: Layout,
    /// Parts that can't be shown, told once.
    unshown: bool,
    has_text: bool,
    has_thoughts: bool,
    block: Option<(BlockReason, Option<String>)>,
    pub(crate) finish: Option<Finish>,
    finish_message: Option<String>,
    pub(crate) usage: Map<String, Value>,
    pub(crate) model_version: Option<String>,
}

/// A call whose arguments are still coming.
struct OpenCall {
    name: String,
    id: Option<String>,
    arguments: Map<String, Value>,
    signature: Option<String>,
}

impl Reply {
    pub(crate) fn new(model: &str, names: Names) -> Self {
        Self {
            model: model.to_owned(),
            names,
            held: Vec::new(),
            open: None,
            calls: 0,
            layout: Layout::default(),
            unshown: false,
            has_text: false,
            has_thoughts: false,
            block: None,
            finish: None,
            finish_message: None,
            usage: Map::new(),
            model_version: None,
        }
    }

    /// Why the prompt was blocked.
    pub(crate) fn block(&self) -> Option<&BlockReason> {
        self.block.as_ref().map(|(reason, _)| reason)
    }

    fn candidate(&mut self, candidate: Candidate, out: &mut Vec<Delta>) {
        for part in candidate.content.unwrap_or_default().parts {
            self.part(part, out);
        }
        if let Some(word) = candidate.finish_reason.filter(|word| word != "FINISH_REASON_UNSPECIFIED") {
            self.finish = Some(Finish::of(&word));
            self.finish_message = candidate.finish_message;
        }
    }

    fn part(&mut self, part: Part, out: &mut Vec<Delta>) {
        if let Some(call) = part.function_call {
            self.call(call, part.thought_signature);
            return;
        }
        let unshown =
            [&part.inline_data, &part.file_data, &part.executable_code, &part.code_execution_result];
        if unshown.iter().any(|data| data.is_some()) && !std::mem::replace(&mut self.unshown, true) {
            let message = "the model sent a part that is neither text nor a call; it is not shown";
            out.push(Delta::Notice { code: "part_not_shown".to_owned(), message: message.to_owned() });
        }
        let text = part.text.unwrap_or_default();
        if text.is_empty() && part.thought_signature.is_none() {
            return;
        }
        let is_thought = part.thought == Some(true);
        let kind = if is_thought { Kind::Thought } else { Kind::Text };
        self.layout.say(kind, text.len(), part.thought_signature);
        if text.is_empty() {
            return;
        }
        self.close_call();
        out.append(&mut self.held);
        if is_thought {
            self.has_thoughts = true;
            out.push(Delta::Thinking(text));
        } else {
            self.has_text = true;
            out.push(Delta::Text(text));
        }
    }

    fn call(&mut self, call: FunctionCall, signature: Option<String>) {
        let continues = self.open.as_ref().is_some_and(|open| {
            let same_name = call.name.as_ref().is_none_or(|name| name.is_empty() || *name == open.name);
            let same_id = call.id.is_none() || call.id == open.id;
            same_name && same_id
        });
        if !continues {
            // The mark behind the last piece of a call that is closed already.
            if call.is_empty() {
                return;
            }
            self.close_call();
            self.open = Some(OpenCall {
                name: call.name.unwrap_or_default(),
                id: call.id.filter(|id| !id.is_empty()),
                arguments: Map::new(),
                signature: None,
            });
        }
        let Some(open) = &mut self.open else { return };
        open.arguments.extend(call.args.unwrap_or_default());
        for piece in &call.partial_args {
            partial::put(&mut open.arguments, piece);
        }
        open.signature = open.signature.take().or(signature);
        if call.will_continue != Some(true) {
            self.close_call();
        }
    }

    fn close_call(&mut self) {
        let Some(call) = self.open.take() else { return };
        let mut data = json!({ "model": self.model });
        if let Some(signature) = call.signature {
            data["signature"] = Value::String(signature);
        }
        if let Some(id) = &call.id {
            data["id"] = Value::String(id.clone());
        }
        let index = self.calls;
        self.calls += 1;
        self.layout.call();
        self.held.push(Delta::ToolCallStarted {
            index,
            // The core gives an id where the provider gave none.
            id: call.id.unwrap_or_default().into(),
            tool: self.names.tool(&call.name),
            provider_data: Some(json!({ "gemini": data })),
        });
        let fragment = Value::Object(call.arguments).to_string();
        self.held.push(Delta::ToolCallArguments { index, fragment });
    }

    fn usage(&mut self, usage: Map<String, Value>, out: &mut Vec<Delta>) {
        let counts = usage.into_iter().filter(|(name, count)| name.ends_with("TokenCount") && count.is_u64());
        self.usage.extend(counts);
        let count = |name: &str| {
            let count = self.usage.get(name).and_then(Value::as_u64)?;
            Some(u32::try_from(count).unwrap_or(u32::MAX))
        };
        let thoughts = count("thoughtsTokenCount");
        // What tools of the provider's own put into the prompt is a part of it for the bill.
        let sum = |one: Option<u32>, other: Option<u32>| one.unwrap_or(0).saturating_add(other.unwrap_or(0));
        let prompt = sum(count("promptTokenCount"), count("toolUsePromptTokenCount"));
        out.push(Delta::Usage(Usage {
            prompt_tokens: prompt,
            reused_tokens: count("cachedContentTokenCount").unwrap_or(0),
            generated_tokens: sum(count("candidatesTokenCount"), thoughts),
            thinking_tokens: thoughts,
            ..Usage::default()
        }));
    }

    fn ended(&mut self, finish: &Finish) -> (Result<FinishReason, Fault>, Option<Fault>) {
        let has_calls = self.calls > 0;
        let nothing = !self.has_text && !has_calls;
        let spoken = if has_calls { FinishReason::ToolCalls } else { FinishReason::Stop };
        match finish {
            Finish::Stop if nothing && !self.has_thoughts => (Ok(spoken), Some(self.fault(FaultKind::Empty))),
            Finish::Stop => (Ok(spoken), None),
            Finish::MaxTokens => (Ok(FinishReason::Length), None),
            Finish::UnexpectedCall | Finish::TooManyCalls => {
                let fault = self.fault(FaultKind::MalformedCall { finish: finish.clone() });
                // In the end the calls are given to the turn, which tells the model what is wrong with them.
                (if has_calls { Ok(spoken) } else { Err(fault.clone()) }, Some(fault))
            }
            Finish::MalformedCall => {
                let fault = self.fault(FaultKind::MalformedCall { finish: finish.clone() });
                (Err(fault.clone()), Some(fault))
            }
            Finish::Other(_) if !nothing => (Ok(spoken), None),
            Finish::Other(_) | Finish::NotTold if nothing => {
                let fault = self.fault(FaultKind::Withheld { finish: finish.clone() });
                (Err(fault), Some(self.fault(FaultKind::Empty)))
            }
            Finish::Safety
            | Finish::Recitation
            | Finish::Language
            | Finish::NotTold
            | Finish::Blocklist
            | Finish::ProhibitedContent
            | Finish::PersonalData
            | Finish::ImageSafety
            | Finish::ImageProhibited
            | Finish::ImageRecitation
            | Finish::ImageNotTold
            | Finish::NoImage
            | Finish::Other(_) => {
                let end = if self.has_text {
                    Ok(FinishReason::Filtered)
                } else {
                    Err(self.fault(FaultKind::Withheld { finish: finish.clone() }))
                };
                (end, None)
            }
        }
    }

    fn fault(&self, kind: FaultKind) -> Fault {
        let said = self.finish_message.as_ref().map(|message| {
            let message = Some(message.chars().take(2_000).collect());
            Box::new(Said { message, ..Said::default() })
        });
        Fault { said, ..Fault::of(kind) }
    }

    fn blocked(&self) -> Option<Fault> {
        let (reason, message) = self.block.as_ref()?;
        let said = Said { message: message.clone(), ..Said::default() };
        Some(Fault { said: Some(Box::new(said)), ..Fault::of(FaultKind::Blocked { reason: reason.clone() }) })
    }
}

impl Reader for Reply {
    fn document(&mut self, json: &[u8], out: &mut Vec<Delta>) -> Result<(), Fault> {
        let chunk: Chunk = match serde_json::from_slice(json) {
            Ok(chunk) => chunk,
            // Bytes that are no UTF-8 cost a few characters, not the reply.
            Err(_) => serde_json::from_str(&String::from_utf8_lossy(json)).map_err(|_| no_answer(json))?,
        };
        if let Some(feedback) = chunk.prompt_feedback
            && let Some(reason) = feedback.block_reason.filter(|reason| reason != "BLOCK_REASON_UNSPECIFIED")
        {
            self.block = Some((BlockReason::of(&reason), feedback.block_reason_message));
        }
        self.model_version = chunk.model_version.or(self.model_version.take());
        for candidate in chunk.candidates {
            // One reply is asked for.
            if candidate.index.is_none_or(|index| index == 0) {
                self.candidate(candidate, out);
            }
        }
        if let Some(usage) = chunk.usage_metadata {
            self.usage(usage, out);
        }
        // Last: what came with it counts too.
        match chunk.error.filter(|error| !error.is_null()) {
            Some(error) => Err(Fault::from_stream(&json!({ "error": error }))),
            None => Ok(()),
        }
    }

    fn is_end_mark(&self, data: &[u8]) -> bool {
        data == b"[DONE]"
    }

    fn verdict(&mut self) -> Verdict {
        self.close_call();
        let mut held = std::mem::take(&mut self.held);
        if let Some(layout) = self.layout.as_data(&self.model) {
            held.push(Delta::ProviderData(layout));
        }
        let (end, again) = match self.finish.clone() {
            Some(finish) => self.ended(&finish),
            None if self.block.is_some() => {
                (Err(self.blocked().unwrap_or_else(|| Fault::of(FaultKind::Empty))), None)
            }
            None => {
                let nothing = !self.has_text && self.calls == 0;
                let kind = if nothing { FaultKind::Empty } else { unfinished() };
                let fault = self.fault(kind);
                (Err(fault.clone()), Some(fault))
            }
        };
        if let (Some(finish), Ok(FinishReason::Filtered)) = (&self.finish, &end) {
            let message = format!("the provider withheld the rest of the answer ({})", finish.as_str());
            held.push(Delta::Notice {
                code: format!("withheld_{}", finish.as_str().to_lowercase()),
                message,
            });
        }
        let verdict = Verdict { end, held, again, unmade: Vec::new() };
        if verdict.end.is_err() { verdict.without_calls() } else { verdict }
    }
}

fn unfinished() -> FaultKind {
    FaultKind::Broken { why: "it ended without a reason".to_owned() }
}
