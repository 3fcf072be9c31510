//! Reads a reply of Gemini.
//!
//! Invariant: pure. A call is told when it is whole; calls wait until text follows them or the reply ends, because a
//! reply may end with the word that its calls are none. A call that did not come whole is told as one that can't be read.
//! Each signature stays with the part it came on.

use lectern_core::{Delta, FinishReason, Usage};
use serde_json::{Map, Value, json};

use super::call::Call;
use super::layout::{Kind, Layout};
use super::wire::{Candidate, Chunk, FunctionCall, Part};
use crate::documents;
use crate::fault::{Fault, FaultKind, Said, says_something};
use crate::names::Names;
use crate::outcome::{BlockReason, Finish};
use crate::reply::{Reader, Taken, Verdict, unknown_end, withheld};

/// Reads one reply.
pub(crate) struct Reply {
    model: String,
    names: Names,
    /// Calls that were not told yet, in the order in which they began.
    waiting: Vec<Call>,
    /// Calls that were told.
    told: u32,
    has_calls: bool,
    layout: Layout,
    /// Parts that can't be shown, told once.
    unshown: bool,
    has_text: bool,
    block: Option<(BlockReason, Option<String>)>,
    finish: Option<Finish>,
    /// The provider's own word for it.
    pub(crate) finish_word: Option<String>,
    finish_message: Option<String>,
    pub(crate) usage: Map<String, Value>,
    pub(crate) model_version: Option<String>,
}

impl Reply {
    pub(crate) fn new(model: &str, names: Names) -> Self {
        Self {
            model: model.to_owned(),
            names,
            waiting: Vec::new(),
            told: 0,
            has_calls: false,
            layout: Layout::default(),
            unshown: false,
            has_text: false,
            block: None,
            finish: None,
            finish_word: None,
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
            let finish = Finish::of(&word);
            // Some say that all is well once more behind the reason.
            if finish != Finish::Stop || self.finish.is_none() {
                self.finish = Some(finish);
                self.finish_word = Some(word);
                self.finish_message = candidate.finish_message;
            }
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
        let whole = self.waiting.iter().take_while(|call| !call.is_open()).count();
        self.tell_calls(whole, out);
        if is_thought {
            out.push(Delta::Thinking(text));
        } else {
            self.has_text = true;
            out.push(Delta::Text(text));
        }
    }

    fn call(&mut self, call: FunctionCall, signature: Option<String>) {
        let at = match self.waiting.iter().rposition(|known| known.is_continued_by(&call)) {
            Some(at) => at,
            // The mark behind the last piece of a call that is closed already.
            None if call.is_empty() => return,
            None => {
                self.has_calls = true;
                self.layout.call();
                self.waiting.push(Call::default());
                self.waiting.len() - 1
            }
        };
        self.waiting[at].take(call, signature);
    }

    /// Tells the first calls that wait.
    fn tell_calls(&mut self, count: usize, out: &mut Vec<Delta>) {
        for call in self.waiting.drain(..count) {
            out.extend(call.deltas(self.told, &self.model, &self.names));
            self.told += 1;
        }
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

    /// What the end means: the outcome, and why it may be worth asking once more.
    fn ended(&self, finish: &Finish) -> (Result<FinishReason, Fault>, Option<Fault>) {
        let has_calls = self.has_calls;
        let nothing = !self.has_text && !has_calls;
        let spoken = if has_calls { FinishReason::ToolCalls } else { FinishReason::Stop };
        let fails = |kind: FaultKind| {
            let fault = self.fault(kind);
            (Err(fault.clone()), Some(fault))
        };
        match finish {
            // A part that can't be shown is an answer all the same.
            Finish::Stop if nothing && !self.unshown => fails(FaultKind::Empty),
            Finish::Stop => (Ok(spoken), None),
            Finish::MaxTokens => (Ok(FinishReason::Length), None),
            Finish::UnexpectedCall | Finish::TooManyCalls => {
                let fault = self.fault(FaultKind::MalformedCall { finish: finish.clone() });
                // In the end the calls are given to the turn, which tells the model what is wrong with them.
                (if has_calls { Ok(spoken) } else { Err(fault.clone()) }, Some(fault))
            }
            Finish::MalformedCall => fails(FaultKind::MalformedCall { finish: finish.clone() }),
            Finish::MalformedResponse => {
                let why = format!("the provider can't read what the model wrote ({})", finish.as_str());
                fails(FaultKind::Broken { why })
            }
            Finish::MissingSignature => (Err(self.fault(FaultKind::BadRequest)), None),
            // Nobody knows whether the calls of such a reply are to run.
            Finish::Other(word) if has_calls || nothing => {
                let again = nothing.then(|| self.fault(FaultKind::Empty));
                (Err(self.fault(FaultKind::UnknownEnd { word: word.clone() })), again)
            }
            Finish::Other(_) => (Ok(FinishReason::Stop), None),
            Finish::NotTold if nothing => {
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
            | Finish::ModelArmor
            | Finish::ImageSafety
            | Finish::ImageProhibited
            | Finish::ImageRecitation
            | Finish::ImageNotTold
            | Finish::NoImage => {
                let withheld = || self.fault(FaultKind::Withheld { finish: finish.clone() });
                (if self.has_text { Ok(FinishReason::Filtered) } else { Err(withheld()) }, None)
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
    fn document(&mut self, json: &[u8], out: &mut Vec<Delta>) -> Result<Taken, Fault> {
        let Some(chunk) = documents::read::<Chunk>(json) else { return Ok(Taken::NoDocument) };
        let says_nothing = chunk.candidates.is_empty() && chunk.usage_metadata.is_none();
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
        match chunk.error.filter(|error| says_something(error, says_nothing)) {
            Some(error) => Err(Fault::from_stream(&json!({ "error": error }))),
            None => Ok(Taken::Read),
        }
    }

    fn is_end_mark(&self, data: &[u8]) -> bool {
        data == b"[DONE]"
    }

    fn verdict(&mut self) -> Verdict {
        let mut held = Vec::new();
        self.tell_calls(self.waiting.len(), &mut held);
        if let Some(layout) = self.layout.as_data(&self.model) {
            held.push(Delta::ProviderData(layout));
        }
        let (end, again) = match (self.blocked(), &self.finish) {
            // Whatever stands beside it.
            (Some(fault), _) => (Err(fault), None),
            (None, Some(finish)) => self.ended(finish),
            (None, None) => {
                let nothing = !self.has_text && !self.has_calls;
                let kind = if nothing { FaultKind::Empty } else { unfinished() };
                let fault = self.fault(kind);
                (Err(fault.clone()), Some(fault))
            }
        };
        let word = self.finish_word.as_deref().unwrap_or_default();
        let runs_calls = match &end {
            Ok(FinishReason::Filtered) => {
                held.push(withheld(word));
                false
            }
            Ok(FinishReason::Stop) if matches!(self.finish, Some(Finish::Other(_))) => {
                held.push(unknown_end(word));
                true
            }
            Ok(_) => true,
            Err(_) => false,
        };
        let verdict = Verdict { end, held, again, unmade: Vec::new() };
        if runs_calls { verdict } else { verdict.without_calls() }
    }
}

fn unfinished() -> FaultKind {
    FaultKind::Broken { why: "it ended without a reason".to_owned() }
}
