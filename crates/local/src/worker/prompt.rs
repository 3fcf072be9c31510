//! From a request to the tokens of the prompt, with the grammar and the parser of the reply.

use std::collections::HashSet;

use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::token::LlamaToken;
use llama_cpp_2::token_type::LlamaTokenAttr;
use serde_json::{Value, json};

use super::protect::{Protector, cut};
use super::slots::Slot;
use crate::native::{Applied, Format, NativeError, Templates};
use crate::protocol::{Choice, Generate, WorkerError};

/// Renders and tokenizes for one model.
pub(super) struct Renderer<'model> {
    model: &'model LlamaModel,
    pub(super) templates: Templates,
    protector: Protector,
}

/// A prompt, and how to go on from it.
pub(super) struct Prompt {
    pub(super) tokens: Vec<LlamaToken>,
    pub(super) format: Format,
    pub(super) stops: Vec<String>,
    /// Special tokens whose text the parser needs.
    pub(super) preserved: HashSet<LlamaToken>,
    /// The rule of the grammar to begin with.
    pub(super) root: Option<String>,
}

/// The text after the end of a message is short: a line break, perhaps a separator.
const LONGEST_TAIL: usize = 64;

impl<'model> Renderer<'model> {
    pub(super) fn new(model: &'model LlamaModel) -> Result<Self, NativeError> {
        let templates = Templates::of_model(model)?;
        let protector = Protector::new(marker_texts(model, &templates.source));
        Ok(Self { model, templates, protector })
    }

    /// The prompt of a request. Where it continues the reply that `slot` holds, it begins with the very tokens
    /// that were generated, not with their text rendered again.
    pub(super) fn prompt(&self, request: &Generate, slot: &Slot) -> Result<Prompt, WorkerError> {
        let forced =
            matches!(request.choice, Choice::Required | Choice::Tool(_)) && !request.tools.is_empty();
        let mut messages = request.messages.clone();
        messages.iter_mut().for_each(|message| self.protector.protect_message(message));
        let mut tools = request.tools.clone();
        let protected = tools.iter_mut().fold(false, |any, tool| self.protector.protect_tool(tool) || any);
        let body = |tools: &[Value], choice: &str| {
            let mut body = json!({
                "messages": messages,
                "tools": tools,
                "tool_choice": choice,
                "parallel_tool_calls": !forced && self.templates.knows_parallel_calls(),
                "enable_thinking": !forced,
            });
            if let Some(schema) = &request.json_schema {
                body["json_schema"] = schema.clone();
            }
            body
        };
        let choice = if request.choice == Choice::None { "none" } else { "auto" };
        let (applied, mut format) = self.apply(&body(&tools, choice))?;
        let tokens = self.tokens(&applied.prompt, &messages, &body(&tools, choice), request, slot)?;
        let (mut root, mut preserved, mut stops) =
            (None, applied.preserved_tokens.clone(), applied.additional_stops.clone());
        if forced {
            let callable = callable(&request.tools, &request.choice);
            let (lazy, _) = self.apply(&body(&callable, "auto"))?;
            let (strict, strict_format) = self.apply(&body(&callable, "required"))?;
            root = call_rule(&lazy, &strict);
            (format, preserved, stops) = (strict_format, strict.preserved_tokens, strict.additional_stops);
        } else if protected {
            // Grammar and parser must know the tools as they are.
            (_, format) = self.apply(&body(&request.tools, choice))?;
        }
        stops.extend(request.sampling.stop.iter().cloned());
        Ok(Prompt { tokens, format, stops, preserved: self.single_tokens(&preserved), root })
    }

    fn apply(&self, body: &Value) -> Result<(Applied, Format), WorkerError> {
        self.templates.apply(body).map_err(|error| WorkerError::Refused {
            reason: format!("the model's chat template refuses the conversation: {error}"),
        })
    }

    fn tokens(
        &self,
        rendered: &str,
        messages: &[Value],
        body: &Value,
        request: &Generate,
        slot: &Slot,
    ) -> Result<Vec<LlamaToken>, WorkerError> {
        if let Some(place) = slot.continued_at(&request.tools, &request.messages) {
            let mut until = body.clone();
            until["messages"] = Value::Array(messages[..=place].to_vec());
            until["add_generation_prompt"] = Value::Bool(false);
            // A template may refuse a history that ends here; then the whole is tokenized again.
            if let Ok((before, _)) = self.templates.apply(&until)
                && let Some(new) = rendered.strip_prefix(&before.prompt)
                && let Some((written, tail)) = self.end_of_message(&before.prompt, &slot.tokens)
            {
                let mut tokens = written.to_vec();
                tokens.extend(self.tokenize(&format!("{tail}{new}")));
                return Ok(tokens);
            }
        }
        let vocab = self.model.vocab();
        let bos = vocab.should_add_bos().then(|| vocab.bos()).filter(|bos| bos.0 >= 0);
        Ok(bos.into_iter().chain(self.tokenize(rendered)).collect())
    }

    /// How the last message goes on after its text: the tokens that stand, and what the template writes after
    /// them. That is all from the end token on when the model wrote none, or another than the template's.
    fn end_of_message<'text, 'tokens>(
        &self,
        rendered: &'text str,
        written: &'tokens [LlamaToken],
    ) -> Option<(&'tokens [LlamaToken], &'text str)> {
        let vocab = self.model.vocab();
        let short = |at: usize| Some(&rendered[at..]).filter(|tail| tail.len() <= LONGEST_TAIL);
        let end_of = |token| {
            let text = String::from_utf8(vocab.token_to_piece(token, true, None)).ok()?;
            let at = rendered.rfind(&text).filter(|_| !text.is_empty())?;
            Some((at, at + text.len()))
        };
        let (last, before) = written.split_last()?;
        if !vocab.is_eog(*last) {
            let at = vocab.tokens().filter(|token| vocab.is_eog(*token)).filter_map(end_of).max()?.0;
            return Some((written, short(at)?));
        }
        if let Some(tail) = end_of(*last).and_then(|(_, after)| short(after)) {
            return Some((written, tail));
        }
        let at = vocab.tokens().filter(|token| vocab.is_eog(*token)).filter_map(end_of).max()?.0;
        Some((before, short(at)?))
    }

    /// Tokens of a rendered text; typed special tokens stay text.
    pub(super) fn tokenize(&self, rendered: &str) -> Vec<LlamaToken> {
        let vocab = self.model.vocab();
        cut(rendered).iter().flat_map(|piece| vocab.tokenize(piece.as_bytes(), false, true)).collect()
    }

    /// Tokens of a text that a user typed.
    pub(super) fn tokenize_typed(&self, text: &str) -> Vec<LlamaToken> {
        self.tokenize(&self.protector.protect(text))
    }

    fn single_tokens(&self, texts: &[String]) -> HashSet<LlamaToken> {
        let vocab = self.model.vocab();
        let tokens = texts.iter().map(|text| vocab.tokenize(text.as_bytes(), false, true));
        tokens.filter(|tokens| tokens.len() == 1).flatten().collect()
    }
}

/// The tools that may be called when a call is forced.
fn callable(tools: &[Value], choice: &Choice) -> Vec<Value> {
    let Choice::Tool(name) = choice else { return tools.to_vec() };
    let named = |tool: &&Value| tool.pointer("/function/name").and_then(Value::as_str) == Some(name);
    tools.iter().filter(named).cloned().collect()
}

/// The rule for a call itself, without text before it: one of those that a lazy grammar begins with, the one for a
/// single call first. None when the reply begins inside the model's reasoning, which has to end first.
fn call_rule(lazy: &Applied, strict: &Applied) -> Option<String> {
    let start = strict.generation_prompt.trim_end();
    if !strict.thinking_start_tag.is_empty() && start.ends_with(&strict.thinking_start_tag) {
        return None;
    }
    let is_name = |rule: &&str| {
        !rule.is_empty() && rule.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '-')
    };
    let defined = |rule: &&str| {
        strict
            .grammar
            .lines()
            .any(|line| line.strip_prefix(rule).is_some_and(|rest| rest.starts_with(" ::=")))
    };
    let rules =
        lazy.grammar.lines().find_map(|line| line.strip_prefix("root ::= "))?.split('|').map(str::trim);
    rules.filter(is_name).filter(defined).min_by_key(|rule| rule.len()).map(str::to_owned)
}

/// Texts that mean more than themselves: control tokens, and markers that the template uses. Other tokens that a
/// vocabulary defines apart (line breaks, HTML tags) belong to ordinary text.
fn marker_texts(model: &LlamaModel, template: &str) -> Vec<String> {
    let vocab = model.vocab();
    let text_of = |token| vocab.text(token).and_then(|text| text.to_str().ok().map(str::to_owned));
    vocab
        .tokens()
        .filter_map(|token| {
            let attributes = vocab.attr(token);
            let text = text_of(token)?;
            let control =
                attributes.contains(LlamaTokenAttr::Control) || attributes.contains(LlamaTokenAttr::Unknown);
            let used = attributes.contains(LlamaTokenAttr::UserDefined)
                && !text.trim().is_empty()
                && template.contains(&text);
            (control || used).then_some(text)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use lectern_test_gguf::CHATML_TOOLS;

    use super::*;

    #[test]
    fn a_forced_call_begins_with_the_call() {
        let templates = Templates::of_text(CHATML_TOOLS, "", "").unwrap();
        let apply = |choice: &str| {
            let tool = json!({ "type": "function", "function": { "name": "now", "description": "", "parameters": {
                "type": "object", "properties": {} } } });
            let messages = json!([{ "role": "user", "content": "Hello" }]);
            templates
                .apply(&json!({ "messages": messages, "tools": [tool], "tool_choice": choice }))
                .unwrap()
                .0
        };
        let (lazy, strict) = (apply("auto"), apply("required"));
        let rule = call_rule(&lazy, &strict);
        assert_eq!(rule.as_deref(), Some("tool-call"));
    }
}
