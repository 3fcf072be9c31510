//! The body of `POST /v1/chat/completions`, read and checked as a whole before anything is done.
//!
//! Invariant: what would change the answer and is not served here is refused by name; only hints are passed over.

use lectern_core::{
    AnswerForm, ChatRequest, ConversationId, Sampling, ThinkingOptions, ToolChoice, ToolSpec,
};
use serde_json::Value;

use super::form::{answer_form, sampling};
use super::messages::{History, history};
use super::tools::{Offered, offered};
use crate::error::ApiError;
use crate::fields::{Fields, missing};

/// A request that can be served.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The model; none for the one that answers by itself.
    pub model: Option<String>,
    /// What was said so far.
    pub history: History,
    /// The client's own tools, and what it says about calling.
    pub offered: Offered,
    /// Whether more than one call may be made in one answer.
    pub parallel_calls: bool,
    /// The form of the answer.
    pub answer: AnswerForm,
    /// How tokens are chosen; what is unset is the model's own.
    pub sampling: Sampling,
    /// Whether the model thinks first; none for the model's own.
    pub thinking: Option<bool>,
    /// Whether the answer comes in pieces.
    pub stream: bool,
    /// Whether the last piece but the end tells what it cost.
    pub include_usage: bool,
}

/// Hints and accounts of OpenAI's own service; the answer is the same without them.
const HINTS: [&str; 11] = [
    "metadata",
    "moderation",
    "prediction",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "safety_identifier",
    "service_tier",
    "store",
    "user",
    "verbosity",
];

impl Asked {
    /// Reads a body.
    pub fn read(body: Value) -> Result<Self, ApiError> {
        let mut fields = Fields::of("", body)?;
        let asked = Self::take(&mut fields)?;
        fields.end()?;
        Ok(asked)
    }

    /// Reads what is OpenAI's; what is left in the fields is for others.
    pub fn take(fields: &mut Fields) -> Result<Self, ApiError> {
        fields.ignore(&HINTS);
        refuse(fields)?;
        let model = fields.string("model")?;
        let messages = fields.list("messages")?.ok_or_else(|| missing("messages".to_owned()))?;
        let offered = offered(fields)?;
        let stream = fields.boolean("stream")?.unwrap_or(false);
        Ok(Self {
            model: model.filter(|model| !model.is_empty()),
            history: history(messages)?,
            offered,
            parallel_calls: fields.boolean("parallel_tool_calls")?.unwrap_or(true),
            answer: answer_form(fields)?,
            sampling: sampling(fields)?,
            thinking: thinking(fields)?,
            include_usage: stream_options(fields, stream)?,
            stream,
        })
    }

    /// The same for the core, over what is set for the model.
    pub fn to_core(
        &self,
        conversation: ConversationId,
        set: &Sampling,
        thinking: ThinkingOptions,
    ) -> ChatRequest {
        ChatRequest {
            conversation,
            system: self.history.system.clone(),
            messages: self.history.messages.clone(),
            tools: self.tools().to_vec(),
            tool_choice: self.tool_choice(),
            answer: self.answer.clone(),
            sampling: self.sampling_over(set),
            thinking: ThinkingOptions { enabled: self.thinking.or(thinking.enabled), ..thinking },
            ..ChatRequest::default()
        }
    }

    /// The client's own tools.
    pub fn tools(&self) -> &[ToolSpec] {
        &self.offered.tools
    }

    /// Whether the model must, may or must not call.
    pub fn tool_choice(&self) -> ToolChoice {
        if self.offered.tools.is_empty() { ToolChoice::None } else { self.offered.choice.choice.clone() }
    }

    /// The request's values where it has any, else those that are set for the model.
    pub fn sampling_over(&self, set: &Sampling) -> Sampling {
        let (own, set) = (self.sampling.clone(), set.clone());
        Sampling {
            temperature: own.temperature.or(set.temperature),
            top_p: own.top_p.or(set.top_p),
            top_k: own.top_k.or(set.top_k),
            min_p: own.min_p.or(set.min_p),
            repeat_penalty: own.repeat_penalty.or(set.repeat_penalty),
            frequency_penalty: own.frequency_penalty.or(set.frequency_penalty),
            presence_penalty: own.presence_penalty.or(set.presence_penalty),
            seed: own.seed.or(set.seed),
            max_tokens: own.max_tokens.or(set.max_tokens),
            stop: if own.stop.is_empty() { set.stop } else { own.stop },
        }
    }
}

/// What would change the answer and can't be had here.
fn refuse(fields: &mut Fields) -> Result<(), ApiError> {
    if fields.integer("n", 1..=128)?.is_some_and(|n| n != 1) {
        return Err(ApiError::unsupported("n", "one answer is given to a request; `n` can only be 1"));
    }
    if fields.boolean("logprobs")?.unwrap_or(false) {
        return Err(ApiError::unsupported("logprobs", "log probabilities are not given"));
    }
    if fields.integer("top_logprobs", 0..=20)?.is_some_and(|n| n > 0) {
        return Err(ApiError::unsupported("top_logprobs", "log probabilities are not given"));
    }
    if fields.object("logit_bias")?.is_some_and(|bias| bias.end().is_err()) {
        return Err(ApiError::unsupported("logit_bias", "tokens can't be weighted"));
    }
    for (name, instead) in [("functions", "tools"), ("function_call", "tool_choice")] {
        if fields.value(name).is_some() {
            return Err(ApiError::unsupported(name, format!("`{name}` is not served; use `{instead}`")));
        }
    }
    for name in ["audio", "web_search_options"] {
        if fields.value(name).is_some() {
            return Err(ApiError::unsupported(name, format!("`{name}` is not served")));
        }
    }
    let modalities = fields.list("modalities")?.unwrap_or_default();
    if modalities.iter().any(|modality| modality != "text") {
        return Err(ApiError::unsupported("modalities", "answers are text only"));
    }
    Ok(())
}

fn thinking(fields: &mut Fields) -> Result<Option<bool>, ApiError> {
    const EFFORTS: [&str; 7] = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];
    let effort = fields.word("reasoning_effort", &EFFORTS)?;
    Ok(effort.map(|effort| !matches!(effort, "none" | "minimal")))
}

fn stream_options(fields: &mut Fields, stream: bool) -> Result<bool, ApiError> {
    let Some(mut options) = fields.object("stream_options")? else { return Ok(false) };
    if !stream {
        let message = "`stream_options` is only for requests with `stream: true`";
        return Err(ApiError::invalid("invalid_value", "stream_options", message));
    }
    let usage = options.boolean("include_usage")?;
    options.boolean("include_obfuscation")?;
    options.end()?;
    Ok(usage.unwrap_or(false))
}
