//! From a request to the tokens of the prompt, with the grammar and the parser of the reply.

use std::cell::OnceCell;
use std::collections::{BTreeMap, HashSet};

use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::token::LlamaToken;
use llama_cpp_2::token_type::LlamaTokenAttr;
use serde_json::{Map, Value, json};

use super::calls::json_force;
use super::images::{Images, Stretch};
use super::placed::Told;
use super::protect::{Protector, cut};
use super::schemas::{Detail, with_detail};
use super::slots::Slot;
use super::switches::words;
use super::told::{Telling, tellings};
use crate::grammar::{Bound, for_value};
use crate::native::{Applied, Format, NativeError, Templates};
use crate::protocol::{Answer, Choice, Generate, WorkerError};

/// Renders and tokenizes for one model.
pub(super) struct Renderer<'model> {
    pub(super) model: &'model LlamaModel,
    pub(super) templates: Templates,
    protector: Protector,
    /// Texts that mean more than themselves.
    pub(super) markers: Vec<String>,
    /// Where the template tells of tools; found when somebody wants them elsewhere.
    pub(super) told: OnceCell<Told>,
    /// The images that prompts may name.
    pub(super) images: Images<'model>,
}

/// A prompt, and how to go on from it.
pub(super) struct Prompt {
    pub(super) tokens: Vec<LlamaToken>,
    pub(super) format: Format,
    pub(super) stops: Vec<String>,
    /// Special tokens whose text the parser needs.
    pub(super) preserved: HashSet<LlamaToken>,
    /// What the model is held to, when it must call.
    pub(super) force: Option<Force>,
    /// A grammar for calls, in place of that of the format.
    pub(super) calls: Option<String>,
    /// What begins that grammar where the format has no trigger.
    pub(super) trigger: Option<String>,
    /// The rule it then begins with.
    pub(super) lazy_root: Option<String>,
    /// How thinking begins, and how it may end.
    pub(super) thinking: (String, Vec<String>),
    /// Tools whose grammar allows more than their schema, and where.
    pub(super) open: BTreeMap<String, String>,
    /// What the user is to know about how the reply is held.
    pub(super) notes: Vec<String>,
    /// The text that the tokens stand for, up to the place where the reply begins.
    pub(super) base: String,
    /// Which questions tell of which tools.
    pub(super) told: Vec<Telling>,
}

impl Prompt {
    /// Whether a special token is a part of the text: in the template's own form only.
    pub(super) fn shows(&self, token: LlamaToken) -> bool {
        let foreign = matches!(self.force, Some(Force::Json(_) | Force::Answer(_)));
        !foreign && self.preserved.contains(&token)
    }

    pub(super) fn hold(&mut self, bound: Bound) {
        self.note(&bound);
        self.calls = Some(bound.text);
    }

    /// What a grammar could not be held to.
    pub(super) fn note(&mut self, bound: &Bound) {
        for name in &bound.loose {
            self.notes
                .push(format!("no grammar can be made of the schema of `{name}`; any arguments are taken"));
        }
        for (name, open) in &bound.open {
            let open = open.iter().map(String::as_str).collect::<Vec<_>>().join("; ");
            tracing::debug!(tool = name, open, "the grammar allows more than the schema");
            self.open.insert(name.clone(), open);
        }
    }
}

/// How a call is forced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Force {
    /// In the form of the template: with this rule of its grammar.
    Rule(String),
    /// As JSON: with this grammar.
    Json(String),
    /// No call: an answer of this grammar.
    Answer(String),
}

/// Marks the reply whose end is looked for. A private-use character, like the mark of typed tokens.
const REPLY_MARK: char = '\u{10ff02}';

impl<'model> Renderer<'model> {
    /// For a model, with a template in place of its own.
    pub(super) fn new(
        model: &'model LlamaModel,
        template: Option<&str>,
        images: Images<'model>,
    ) -> Result<Self, NativeError> {
        let templates = Templates::of_model(model, template)?;
        let markers = marker_texts(model, &templates.source);
        let protector = Protector::new(markers.iter().cloned());
        Ok(Self { model, templates, protector, markers, told: OnceCell::new(), images })
    }

    /// The prompt of a request. Where it continues the reply that `slot` holds, it begins with the very tokens
    /// that were generated, not with their text rendered again.
    pub(super) fn prompt(
        &self,
        request: &Generate,
        slot: &Slot,
        detail: Detail,
    ) -> Result<Prompt, WorkerError> {
        let offered = !request.tools.is_empty() && request.choice != Choice::None;
        let forced = offered && matches!(request.choice, Choice::Required | Choice::Tool(_));
        let mut messages = request.messages.clone();
        messages.iter_mut().for_each(|message| self.protector.protect_message(message));
        let answers = matches!(request.answer, Answer::JsonSchema(_) | Answer::Grammar(_));
        // A model that must call or answer in a form at once has no time to think.
        let thinks = request.thinking.enabled.unwrap_or(true) && !forced && !answers;
        let words = words(&self.templates.source, self.templates.knows_effort(), thinks, request.thinking);
        let body =
            |tools: &[Value], choice: &str| self.body(&messages, tools, choice, forced, (thinks, &words));
        let told = self.tellings(request, slot);
        let listed: Vec<Value> = told.iter().flat_map(|one| one.tools.iter().cloned()).collect();
        let listed = if told.is_empty() { &request.tools } else { &listed };
        let shown = |tools: &[Value]| match self.with_tellings(&messages, &told, tools) {
            Some(messages) => self.body(&messages, &[], "none", forced, (thinks, &words)),
            None => body(tools, "none"),
        };
        // The grammar comes later: what llama.cpp says of a schema is not to change the prompt.
        let (tools, applied, format) = self.rendered(listed, shown)?;
        let tokens = self.tokens(&applied.prompt, &shown(&tools), request, slot);
        let base =
            applied.prompt.strip_suffix(&applied.generation_prompt).unwrap_or(&applied.prompt).to_owned();
        let mut prompt = self.with_format(tokens, base, &applied, format);
        prompt.told.clone_from(&told);
        match &request.answer {
            Answer::Free if forced => self.force(&mut prompt, request, detail, body)?,
            Answer::Free if offered => self.offer(&mut prompt, request, detail, body)?,
            Answer::Free => self.offer_described(&mut prompt, request, detail),
            Answer::Call => json_force(&mut prompt, request)?,
            Answer::JsonSchema(schema) => prompt.force = Some(Force::Answer(json_grammar(schema)?)),
            Answer::Grammar(grammar) => prompt.force = Some(Force::Answer(grammar.clone())),
        }
        if answers {
            self.open_answer(&mut prompt, &applied, shown(&tools));
        }
        prompt.stops.extend(request.sampling.stop.iter().cloned());
        Ok(prompt)
    }

    /// Which questions tell of which tools, when tools are not told before the history.
    fn tellings(&self, request: &Generate, slot: &Slot) -> Vec<Telling> {
        if request.tools_last && self.can_tell_anywhere() {
            tellings(request, &slot.history.told)
        } else {
            Vec::new()
        }
    }

    /// Renders with the tools as detailed as the template takes them.
    fn rendered(
        &self,
        tools: &[Value],
        body: impl Fn(&[Value]) -> Value,
    ) -> Result<(Vec<Value>, Applied, Format), WorkerError> {
        let mut refused = None;
        for detail in Detail::ALL {
            let mut given = with_detail(tools, detail);
            for tool in &mut given {
                self.protector.protect_tool(tool);
            }
            match self.apply(&body(&given)) {
                Ok((applied, format)) => return Ok((given, applied, format)),
                Err(error) if tools.is_empty() => return Err(error),
                Err(error) => refused = refused.or(Some(error)),
            }
        }
        Err(refused.unwrap_or(WorkerError::Cancelled))
    }

    fn body(
        &self,
        messages: &[Value],
        tools: &[Value],
        choice: &str,
        forced: bool,
        (thinks, words): (bool, &Map<String, Value>),
    ) -> Value {
        let mut body = json!({
            "messages": messages,
            "tools": tools,
            "tool_choice": choice,
            "parallel_tool_calls": !forced && self.templates.knows_parallel_calls(),
            "enable_thinking": thinks,
        });
        if !words.is_empty() {
            body["kwargs"] = Value::Object(words.clone());
        }
        body
    }

    /// Lets the prompt end where the template begins an answer: behind an empty thought, in the channel for answers.
    fn open_answer(&self, prompt: &mut Prompt, applied: &Applied, mut body: Value) {
        if let Some(messages) = body["messages"].as_array_mut() {
            messages.push(json!({ "role": "assistant", "content": REPLY_MARK.to_string() }));
        }
        body["add_generation_prompt"] = Value::Bool(false);
        let Ok((answered, _)) = self.templates.apply(&body) else { return };
        let opening = answered
            .prompt
            .strip_prefix(&prompt.base)
            .and_then(|rest| rest.split_once(REPLY_MARK))
            .map(|(opening, _)| opening);
        let generation = self.tokenize(&applied.generation_prompt);
        if let Some(opening) = opening
            && opening != applied.generation_prompt
            && prompt.tokens.ends_with(&generation)
        {
            prompt.tokens.truncate(prompt.tokens.len() - generation.len());
            prompt.tokens.extend(self.tokenize(opening));
        }
    }

    fn with_format(
        &self,
        tokens: Vec<LlamaToken>,
        base: String,
        applied: &Applied,
        format: Format,
    ) -> Prompt {
        let preserved = self.single_tokens(&applied.preserved_tokens);
        Prompt {
            tokens,
            format,
            stops: applied.additional_stops.clone(),
            preserved,
            force: None,
            calls: None,
            trigger: None,
            lazy_root: None,
            thinking: (applied.thinking_start_tag.trim().to_owned(), applied.thinking_end_tags.clone()),
            open: BTreeMap::new(),
            notes: Vec::new(),
            base,
            told: Vec::new(),
        }
    }

    pub(super) fn apply(&self, body: &Value) -> Result<(Applied, Format), WorkerError> {
        self.templates.apply(body).map_err(|error| WorkerError::Refused {
            reason: format!("the model's chat template refuses the conversation: {error}"),
        })
    }

    fn tokens(&self, rendered: &str, body: &Value, request: &Generate, slot: &Slot) -> Vec<LlamaToken> {
        let continued = slot.continued_at(&request.messages);
        if let Some((place, base, written)) = continued
            && let Some((written, new)) = self.after_reply(body, place, base, written)
        {
            return written.iter().copied().chain(self.tokenize(&new)).collect();
        }
        let vocab = self.model.vocab();
        let bos = vocab.should_add_bos().then(|| vocab.bos()).filter(|bos| bos.0 >= 0);
        bos.into_iter().chain(self.tokenize(rendered)).collect()
    }

    /// What the template writes after a reply that stands in the cache, and the tokens that stand before it.
    ///
    /// The end of the reply is found by rendering once more with a mark in it. None when the template now writes
    /// something else before the reply, or leaves its reasoning out: then the whole is tokenized again.
    fn after_reply<'tokens>(
        &self,
        body: &Value,
        place: usize,
        base: &str,
        written: &'tokens [LlamaToken],
    ) -> Option<(&'tokens [LlamaToken], String)> {
        let mut marked = body.clone();
        let reply = marked["messages"].get_mut(place)?;
        let call_length = mark(reply)?;
        let reasoning = reply["reasoning_content"].as_str().unwrap_or_default().trim().to_owned();
        let rendered = self.templates.apply(&marked).ok()?.0.prompt;
        // Some templates name the tool again with its result: the first mark is the one in the call.
        let (own, rest) = rendered.strip_prefix(base)?.split_once(REPLY_MARK)?;
        if !own.contains(&reasoning) {
            return None;
        }
        let (written, end) = self.end_of_message(rest, written)?;
        // An end that lies farther off is that of a later message.
        let next =
            marked["messages"].get(place + 1).and_then(|next| next["content"].as_str()).unwrap_or_default();
        let next_at = rest.find(next.trim()).filter(|_| !next.trim().is_empty()).unwrap_or(rest.len());
        (end <= next_at && end <= 2 * call_length + 128).then(|| (written, rest[end..].to_owned()))
    }

    /// Where the rest of the template's text goes on from the tokens that stand: behind the end token if the
    /// model wrote it, or before it when it wrote none or another than the template's.
    fn end_of_message<'tokens>(
        &self,
        rest: &str,
        written: &'tokens [LlamaToken],
    ) -> Option<(&'tokens [LlamaToken], usize)> {
        let vocab = self.model.vocab();
        let end_of = |token| {
            let text = String::from_utf8(vocab.token_to_piece(token, true, None)).ok()?;
            let at = rest.find(&text).filter(|_| !text.is_empty())?;
            Some((at, at + text.len()))
        };
        let first = vocab.tokens().filter(|token| vocab.is_eog(*token)).filter_map(end_of).min()?;
        let (last, before) = written.split_last()?;
        match (vocab.is_eog(*last), end_of(*last)) {
            (true, Some(own)) if own == first => Some((written, own.1)),
            (true, _) => Some((before, first.0)),
            (false, _) => Some((written, first.0)),
        }
    }

    /// Tokens of a rendered text; typed special tokens stay text.
    pub(super) fn tokenize(&self, rendered: &str) -> Vec<LlamaToken> {
        let vocab = self.model.vocab();
        let mut out = Vec::new();
        for stretch in self.images.stretches(rendered) {
            match stretch {
                Stretch::Text(text) => {
                    cut(text)
                        .iter()
                        .for_each(|piece| out.extend(vocab.tokenize(piece.as_bytes(), false, true)));
                }
                Stretch::Image(tokens) => out.extend(tokens),
            }
        }
        out
    }

    /// Tokens of a text that a user typed.
    pub(super) fn tokenize_typed(&self, text: &str) -> Vec<LlamaToken> {
        self.tokenize(&self.protector.protect(text))
    }

    pub(super) fn single_tokens(&self, texts: &[String]) -> HashSet<LlamaToken> {
        let vocab = self.model.vocab();
        let tokens = texts.iter().map(|text| vocab.tokenize(text.as_bytes(), false, true));
        tokens.filter(|tokens| tokens.len() == 1).flatten().collect()
    }
}

/// Puts the mark into a reply, behind everything that may hold text of its own but the arguments of the last
/// call. Gives the length of those.
fn mark(reply: &mut Value) -> Option<usize> {
    let last = reply.get_mut("tool_calls").and_then(Value::as_array_mut).and_then(|calls| calls.last_mut());
    match last {
        Some(call) => {
            let length = call["function"]["arguments"].as_str().map_or(0, str::len);
            let name = call["function"]["name"].as_str()?;
            call["function"]["name"] = Value::String(format!("{name}{REPLY_MARK}"));
            Some(length)
        }
        None => {
            let content = reply["content"].as_str()?;
            reply["content"] = Value::String(format!("{content}{REPLY_MARK}"));
            Some(0)
        }
    }
}

fn json_grammar(schema: &Value) -> Result<String, WorkerError> {
    for_value(schema).ok_or_else(|| WorkerError::Refused {
        reason: "no value fits the schema of the answer, so no grammar can be made of it".to_owned(),
    })
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
    use crate::worker::calls::call_rule;

    #[test]
    fn a_forced_call_begins_with_the_call() {
        let templates = Templates::of_text(CHATML_TOOLS, "", "").unwrap();
        let tool = json!({ "type": "function", "function": { "name": "notes__now", "description": "", "parameters": {
                "type": "object", "properties": {} } } });
        let apply = |choice: &str| {
            let messages = json!([{ "role": "user", "content": "Hello" }]);
            templates
                .apply(&json!({ "messages": messages, "tools": [tool.clone()], "tool_choice": choice }))
                .unwrap()
                .0
        };
        let (lazy, strict) = (apply("auto"), apply("required"));
        let rule = call_rule(&lazy, &strict);
        assert_eq!(rule.as_deref(), Some("tool-call"));
    }
}
