//! What the worker is asked for: a request of the core in the worker's words.
//!
//! Invariant: pure; the same request gives the same words.

use lectern_core::{AnswerForm, Purpose, Sampling, ToolChoice, ToolPlacement};

use super::ReplyTask;
use crate::format::CallForm;
use crate::images::images_of;
use crate::messages::{Form, messages_of, readable, tools_of};
use crate::protocol::{Answer, Choice, Generate, SamplingOptions, Thinking};

impl ReplyTask {
    pub(super) fn generate(&self, job: u64) -> Generate {
        let tools = tools_of(&self.request.tools, &self.names);
        let choice = match &self.request.tool_choice {
            ToolChoice::Auto => Choice::Auto,
            ToolChoice::None => Choice::None,
            ToolChoice::Required => Choice::Required,
            ToolChoice::Tool(name) => Choice::Tool(self.names.alias(name.as_str()).to_owned()),
        };
        let (tools, described, form) = match self.form {
            Form::Native => (tools, Vec::new(), CallForm::default()),
            Form::Prompted(form) => (Vec::new(), tools, form),
        };
        let must_call = matches!(choice, Choice::Required | Choice::Tool(_)) && !described.is_empty();
        let answer = match &self.request.answer {
            AnswerForm::JsonSchema(schema) => Answer::JsonSchema(readable(schema.clone())),
            AnswerForm::Grammar(grammar) => Answer::Grammar(grammar.clone()),
            AnswerForm::Free if must_call => Answer::Call,
            AnswerForm::Free => Answer::Free,
        };
        let thinking = self.request.thinking;
        let sees = self.shared.projector.is_some();
        Generate {
            job,
            conversation: self.request.conversation.0.clone(),
            side: self.request.purpose == Purpose::Side,
            messages: messages_of(&self.request, self.form, sees, &self.names),
            images: if sees { images_of(&self.request) } else { Vec::new() },
            tools,
            choice,
            described,
            form,
            tools_last: self.request.tool_placement == ToolPlacement::LastUser,
            answer,
            thinking: Thinking { enabled: thinking.enabled, budget: thinking.budget },
            sampling: sampling_of(&self.request.sampling, self.stops()),
        }
    }

    /// Texts that end this reply: the request's, the model's, and what begins an invented result.
    fn stops(&self) -> Vec<String> {
        let mut stop = self.request.sampling.stop.clone();
        stop.extend(self.shared.format.stop.iter().cloned());
        if matches!(self.form, Form::Prompted(_)) && !self.request.tools.is_empty() {
            stop.push("<tool_response>".to_owned());
        }
        stop
    }
}

fn sampling_of(given: &Sampling, stop: Vec<String>) -> SamplingOptions {
    SamplingOptions {
        temperature: given.temperature,
        top_p: given.top_p,
        top_k: given.top_k,
        min_p: given.min_p,
        repeat_penalty: given.repeat_penalty,
        frequency_penalty: given.frequency_penalty,
        presence_penalty: given.presence_penalty,
        seed: given.seed,
        max_tokens: given.max_tokens,
        stop,
    }
}
