//! Tools in the history: the words in which a template tells of tools, moved into questions.
//!
//! Most templates tell of tools before everything else; there another choice of tools breaks the whole evaluated
//! history. A few have them at the last question already. Of the others the words are found by rendering a probe with
//! and without a tool; where they are woven into the template they stay out, and the tools are described around the
//! template's own form of a call. Invariant: what stands before a question does not depend on the tools that it tells of.

use serde_json::{Value, json};

use super::prompt::Renderer;
use super::told::Telling;
use crate::prompted::instructions_in;

/// Texts that are looked for in what a template writes. Private-use characters, like the mark of typed tokens.
const SYSTEM: &str = "\u{10ff03}";
const QUESTION: &str = "\u{10ff04}";
const ANSWER: &str = "\u{10ff05}";
const LATER: &str = "\u{10ff06}";
/// Names in a call that is rendered for its form.
const TOOL: &str = "name_of_the_tool";

/// Where a template tells of tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// At the last question, or at a place that cannot be told.
    AsItIs,
    /// At the end of the instructions; a message of instructions is followed by this text.
    InSystem(String),
    /// In the first question, before its words; the same.
    InQuestion(String),
    /// Elsewhere. Its form of a call.
    Elsewhere(String),
}

impl Renderer<'_> {
    /// Whether tools can be told in any question.
    pub(super) fn can_tell_anywhere(&self) -> bool {
        *self.told.get_or_init(|| self.find_told()) != Told::AsItIs
    }

    /// The messages with these tools, in the order of the tellings, in the questions that tell of them. None when the
    /// template tells of them.
    pub(super) fn with_tellings(
        &self,
        messages: &[Value],
        told: &[Telling],
        mut tools: &[Value],
    ) -> Option<Vec<Value>> {
        if told.is_empty() {
            return None;
        }
        let mut out = messages.to_vec();
        for one in told {
            let (of_this, rest) = tools.split_at_checked(one.tools.len())?;
            tools = rest;
            let question = out.get(one.place)?["content"].as_str()?;
            out[one.place]["content"] = Value::String(self.with_words(question, of_this)?);
        }
        Some(out)
    }

    /// A question that tells of tools.
    fn with_words(&self, question: &str, tools: &[Value]) -> Option<String> {
        let (words, first) = match self.told.get_or_init(|| self.find_told()) {
            Told::AsItIs => return None,
            Told::InSystem(between) => (self.words_in_system(between, tools)?, false),
            Told::InQuestion(between) => (self.words_in_question(between, tools)?, true),
            Told::Elsewhere(form) => (instructions_in(form, tools), false),
        };
        let (words, question) = (words.trim(), question.trim());
        Some(if first { format!("{words}\n\n{question}") } else { format!("{question}\n\n{words}") })
    }

    fn find_told(&self) -> Told {
        let probe = [json!({
            "type": "function",
            "function": {
                "name": TOOL,
                "description": "A probe.",
                "parameters": { "type": "object", "properties": { "argument": { "type": "string" } } },
            },
        })];
        if self.tells_last(&probe).unwrap_or(true) {
            return Told::AsItIs;
        }
        if let Some(between) = self.between(&[]) {
            let (in_question, in_system) =
                (Told::InQuestion(between.clone()), Told::InSystem(between.clone()));
            if self.words_in_question(&between, &probe).is_some() {
                return in_question;
            }
            if self.words_in_system(&between, &probe).is_some() {
                return in_system;
            }
        }
        self.form_of_call().map_or(Told::AsItIs, Told::Elsewhere)
    }

    /// Whether the history before the last question is the same with and without tools.
    fn tells_last(&self, tools: &[Value]) -> Option<bool> {
        let messages = json!([
            { "role": "system", "content": SYSTEM },
            { "role": "user", "content": QUESTION },
            { "role": "assistant", "content": ANSWER },
            { "role": "user", "content": LATER },
        ]);
        let (with, without) = (self.rendered_probe(&messages, tools)?, self.rendered_probe(&messages, &[])?);
        let history = |text: &str| Some(text.split_once(ANSWER)?.0.to_owned());
        Some(history(&with)? == history(&without)?)
    }

    /// What a template writes between instructions and a question.
    fn between(&self, tools: &[Value]) -> Option<String> {
        let messages =
            json!([{ "role": "system", "content": SYSTEM }, { "role": "user", "content": QUESTION }]);
        let rendered = self.rendered_probe(&messages, tools)?;
        let (_, rest) = rendered.split_once(SYSTEM)?;
        rest.split_once(QUESTION).map(|(between, _)| between.to_owned())
    }

    fn words_in_system(&self, usual: &str, tools: &[Value]) -> Option<String> {
        let words = self.between(tools)?.strip_suffix(usual)?.to_owned();
        self.are_words(&words, usual, tools).then_some(words)
    }

    fn words_in_question(&self, usual: &str, tools: &[Value]) -> Option<String> {
        let words = self.between(tools)?.strip_prefix(usual)?.to_owned();
        self.are_words(&words, usual, tools).then_some(words)
    }

    /// Whether a text tells of the tools, and ends no message.
    fn are_words(&self, words: &str, between: &str, tools: &[Value]) -> bool {
        let named = |tool: &Value| {
            tool.pointer("/function/name").and_then(Value::as_str).is_some_and(|name| words.contains(name))
        };
        let ends = |marker: &String| between.contains(marker.as_str()) && words.contains(marker.as_str());
        tools.iter().all(named) && !self.markers.iter().any(ends)
    }

    /// How the template writes a call.
    fn form_of_call(&self) -> Option<String> {
        let asked = json!({ "role": "user", "content": QUESTION });
        let call = json!([{
            "id": "call00000",
            "type": "function",
            "function": { "name": TOOL, "arguments": "{\"argument\": \"value\"}" },
        }]);
        let rendered = |reply: Value| {
            let messages = json!([asked, reply, { "role": "user", "content": LATER }]);
            let text = self.rendered_probe(&messages, &[])?;
            let (_, rest) = text.split_once(QUESTION)?;
            rest.split_once(LATER).map(|(reply, _)| reply.to_owned())
        };
        let said = rendered(json!({ "role": "assistant", "content": ANSWER }))?;
        let called = rendered(json!({ "role": "assistant", "content": "", "tool_calls": call }))?;
        let (before, after) = said.split_once(ANSWER)?;
        let after = after.trim_start();
        let begin = common(before.chars(), called.chars());
        let rest = called.get(begin..)?;
        let end = common(after.chars().rev(), rest.chars().rev());
        let form = rest.get(..rest.len() - end)?.trim();
        (form.contains(TOOL) && form.contains("argument")).then(|| form.to_owned())
    }

    fn rendered_probe(&self, messages: &Value, tools: &[Value]) -> Option<String> {
        let body = json!({
            "messages": messages,
            "tools": tools,
            "tool_choice": "none",
            "add_generation_prompt": false,
            "enable_thinking": false,
        });
        self.templates.apply(&body).ok().map(|(applied, _)| applied.prompt)
    }
}

/// Bytes that both begin with.
fn common(left: impl Iterator<Item = char>, right: impl Iterator<Item = char>) -> usize {
    left.zip(right).take_while(|(left, right)| left == right).map(|(left, _)| left.len_utf8()).sum()
}
