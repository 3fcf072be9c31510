//! How calls are held to the tools: by the template's own grammar with our rules in it, or as JSON.
//!
//! Invariant: what stands in the prompt does not depend on this; where no grammar can be had the reply is free, and the
//! core checks the arguments.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::prompt::{Force, Prompt, Renderer};
use super::schemas::{Detail, with_detail};
use crate::format::CallForm;
use crate::grammar::{
    bind, bind_tagged, one_json_call, pythonic_calls, pythonic_trigger, tagged_json_calls, with_plain_types,
};
use crate::names::Writing;
use crate::native::{Applied, Format, Templates};
use crate::protocol::{Choice, Generate, WorkerError};

/// How a call begins in formats that are nothing but JSON: at the start of the reply.
/// Llama's tag may stand before it, as a token or as text.
const JSON_CALL: &str = r#"^\s*(?:<\|python_tag\|>\s*)?(\{\s*"(?:name|type)"\s*:)"#;

impl Renderer<'_> {
    /// Holds the reply to a call. The prompt itself stays as it is, with all tools.
    pub(super) fn force(
        &self,
        prompt: &mut Prompt,
        request: &Generate,
        detail: Detail,
        body: impl Fn(&[Value], &str) -> Value,
    ) -> Result<(), WorkerError> {
        let callable = callable(&request.tools, &request.choice);
        let stubs = with_stubs(&callable);
        let (lazy, _) = self.apply(&body(&stubs, "auto"))?;
        let (strict, format) = self.apply(&body(&stubs, "required"))?;
        let bound = bind(&strict.grammar, &with_detail(&callable, detail));
        match (bound, call_rule(&lazy, &strict)) {
            (Some(bound), Some(rule)) => {
                prompt.hold(bound);
                prompt.force = Some(Force::Rule(rule));
                prompt.preserved = self.single_tokens(&strict.preserved_tokens);
                (prompt.format, prompt.stops) = (format, strict.additional_stops);
            }
            (Some(_), None) => json_force(prompt, request)?,
            (None, _) => match self.tagged_force(prompt, &callable, &body) {
                Some(rule) => prompt.force = Some(Force::Rule(rule)),
                None => json_force(prompt, request)?,
            },
        }
        Ok(())
    }

    /// The same in a format that writes arguments between tags.
    fn tagged_force(
        &self,
        prompt: &mut Prompt,
        callable: &[Value],
        body: impl Fn(&[Value], &str) -> Value,
    ) -> Option<String> {
        let (plain, json) = (with_plain_types(callable, false), with_plain_types(callable, true));
        let (lazy, _) = self.apply(&body(&plain, "auto")).ok()?;
        let (strict, format) = self.apply(&body(&plain, "required")).ok()?;
        let (around, _) = self.apply(&body(&json, "required")).ok()?;
        let bound = bind_tagged(&strict.grammar, &around.grammar, callable)?;
        let rule = call_rule(&lazy, &strict)?;
        prompt.hold(bound);
        self.take_format(prompt, &strict, format);
        Some(rule)
    }

    /// Holds calls to the tools, once the model begins one.
    pub(super) fn offer(
        &self,
        prompt: &mut Prompt,
        request: &Generate,
        detail: Detail,
        body: impl Fn(&[Value], &str) -> Value,
    ) -> Result<(), WorkerError> {
        let tools = with_detail(&request.tools, detail);
        let stubs = with_stubs(&tools);
        let (lazy, format) = self.apply(&body(&stubs, "auto"))?;
        // A grammar that nothing begins would wait for ever.
        let begins = lazy.triggers > 0;
        if let Some(bound) = bind(&lazy.grammar, &tools).filter(|_| begins) {
            prompt.hold(bound);
            self.take_format(prompt, &lazy, format);
            return Ok(());
        }
        if !begins {
            // The template tells no beginning of a call apart from text; its calls are JSON at the start.
            let (strict, _) = self.apply(&body(&stubs, "required"))?;
            if let (Some(bound), Some(rule)) = (bind(&strict.grammar, &tools), call_rule(&lazy, &strict)) {
                prompt.hold(bound);
                (prompt.lazy_root, prompt.trigger) = (Some(rule), Some(JSON_CALL.to_owned()));
                self.take_format(prompt, &lazy, format);
                return Ok(());
            }
        }
        // In other formats the parser has to know the types of the arguments.
        let (plain, json) = (with_plain_types(&request.tools, false), with_plain_types(&request.tools, true));
        if let (Ok((lazy, format)), Ok((around, _))) =
            (self.apply(&body(&plain, "auto")), self.apply(&body(&json, "auto")))
            && let Some(bound) = bind_tagged(&lazy.grammar, &around.grammar, &request.tools)
        {
            prompt.hold(bound);
            self.take_format(prompt, &lazy, format);
            return Ok(());
        }
        let (lazy, format) = self.apply(&body(&tools, "auto"))?;
        self.take_format(prompt, &lazy, format);
        Ok(())
    }

    /// The same for tools that the messages describe.
    pub(super) fn offer_described(&self, prompt: &mut Prompt, request: &Generate, detail: Detail) {
        if request.choice == Choice::None {
            return;
        }
        let tools = with_detail(&request.described, detail);
        let (bound, trigger) = match request.form {
            CallForm::Json => {
                (tagged_json_calls(&tools, "<tool_call>", "</tool_call>"), "(<tool_call>)".to_owned())
            }
            CallForm::Pythonic => (pythonic_calls(&tools), pythonic_trigger(&tools)),
        };
        match bound {
            Some(bound) => {
                prompt.hold(bound);
                prompt.trigger = Some(trigger);
            }
            None if tools.is_empty() => {}
            None => prompt
                .notes
                .push("no grammar can be made for calls of these tools; any text is taken".to_owned()),
        }
    }

    fn take_format(&self, prompt: &mut Prompt, applied: &Applied, format: Format) {
        prompt.preserved = self.single_tokens(&applied.preserved_tokens);
        (prompt.format, prompt.stops) = (format, applied.additional_stops.clone());
    }
}

/// How calls in the form of a template write their arguments: seen by what llama.cpp makes a rule for.
pub(crate) fn writing(templates: &Templates) -> Writing {
    let schema = json!({ "type": "object", "properties": { "a": { "type": "string" } }, "required": ["a"] });
    let function = json!({ "name": "probe", "description": "", "parameters": schema });
    let body = json!({
        "messages": [{ "role": "user", "content": "Hello" }],
        "tools": [{ "type": "function", "function": function }],
        "tool_choice": "required",
    });
    match templates.apply(&body) {
        Ok((applied, _)) if applied.grammar.contains("tool-probe-schema ::=") => Writing::Json,
        Ok(_) => Writing::Apart,
        Err(_) => Writing::Json,
    }
}

/// The tools that may be called when a call is forced.
fn callable(tools: &[Value], choice: &Choice) -> Vec<Value> {
    let Choice::Tool(name) = choice else { return tools.to_vec() };
    let named = |tool: &&Value| tool.pointer("/function/name").and_then(Value::as_str) == Some(name);
    tools.iter().filter(named).cloned().collect()
}

/// Holds any model to one call, written as JSON.
pub(super) fn json_force(prompt: &mut Prompt, request: &Generate) -> Result<(), WorkerError> {
    let tools = if request.tools.is_empty() { &request.described } else { &request.tools };
    let bound = one_json_call(&callable(tools, &request.choice));
    let bound = bound.ok_or_else(|| WorkerError::Refused {
        reason: "the tool that must be called is not offered".to_owned(),
    })?;
    prompt.note(&bound);
    prompt.force = Some(Force::Json(bound.text));
    Ok(())
}

/// The tools without arguments: what is around the arguments does not depend on them.
fn with_stubs(tools: &[Value]) -> Vec<Value> {
    let mut seen = HashSet::new();
    let mut out = tools.to_vec();
    out.retain(|tool| seen.insert(tool.pointer("/function/name").cloned()));
    for parameters in out.iter_mut().filter_map(|tool| tool.pointer_mut("/function/parameters")) {
        *parameters = json!({ "type": "object", "properties": {} });
    }
    out
}

/// The rule for a call itself, without text before it: one of those that a lazy grammar begins with, the one for a
/// single call first. None when the reply begins inside the model's reasoning, which has to end first.
pub(super) fn call_rule(lazy: &Applied, strict: &Applied) -> Option<String> {
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
    let root = |applied: &Applied| {
        applied.grammar.lines().find_map(|line| line.strip_prefix("root ::= ").map(str::to_owned))
    };
    let Some(begins) = root(lazy) else {
        // A format without a trigger: the call stands at the end of what must be said.
        let whole = root(strict)?;
        return whole.split_whitespace().next_back().filter(is_name).filter(defined).map(str::to_owned);
    };
    let rules = begins.split('|').map(str::trim);
    rules.filter(is_name).filter(defined).min_by_key(|rule| rule.len()).map(str::to_owned)
}

/// Whether calls that the model makes by itself are held to our rules.
#[cfg(test)]
pub(super) fn is_held(source: &str) -> Option<bool> {
    let schema = json!({
        "type": "object",
        "properties": {
            "text": { "type": "string" },
            "kind": { "enum": ["a", "b"] },
            "n": { "type": "integer", "maximum": 9, "minimum": 2 },
            "list": { "type": "array", "items": { "type": "string" } },
        },
        "required": ["kind"],
    });
    let function = json!({ "name": "notes__find", "description": "Finds", "parameters": schema });
    let tools = [json!({ "type": "function", "function": function })];
    let templates = Templates::of_text(source, "", "").ok()?;
    let grammar = |tools: &[Value], choice: &str| {
        let messages = json!([{ "role": "user", "content": "Hello" }]);
        let body = json!({ "messages": messages, "tools": tools, "tool_choice": choice });
        templates.apply(&body).ok().map(|(applied, _)| applied.grammar)
    };
    let stubs = with_stubs(&tools);
    let native = grammar(&stubs, "auto")?;
    let json_only = || bind(&grammar(&stubs, "required").unwrap_or_default(), &tools).is_some();
    let tagged = || {
        let around = grammar(&with_plain_types(&tools, true), "auto").unwrap_or_default();
        let plain = grammar(&with_plain_types(&tools, false), "auto").unwrap_or_default();
        bind_tagged(&plain, &around, &tools).is_some()
    };
    templates
        .knows_tools()
        .then(|| bind(&native, &tools).is_some() || (native.is_empty() && json_only()) || tagged())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::samples::real_templates;

    #[test]
    fn calls_of_nearly_all_templates_are_held_to_our_rules() {
        let known: Vec<(String, bool)> = real_templates()
            .into_iter()
            .filter_map(|(name, source)| Some((name, is_held(&source)?)))
            .collect();
        let not: Vec<&str> = known.iter().filter(|(_, held)| !held).map(|(name, _)| name.as_str()).collect();
        println!("{} templates know tools; llama.cpp's own rules hold {not:?}", known.len());
        assert!(not.len() * 5 <= known.len(), "{not:?}");
    }
}
