//! From a request of the core to the body of `chat/completions`.
//!
//! Invariant: pure. What the user did not set is not sent; each call has its result right behind its message.

use lectern_core::{
    AnswerForm, AssistantMessage, Blob, ChatRequest, Content, Message, Part, Sampling, ToolCall, ToolChoice,
    ToolMode, ToolResult, UserMessage, history,
};
use serde_json::{Map, Value, json};

use super::OpenAiOptions;
use super::reasoning::put_back;
use crate::fault::{Fault, FaultKind};
use crate::gemini::decimal;
use crate::names::{Alphabet, Names};

pub(super) struct Prepared {
    pub body: Value,
    pub names: Names,
}

pub(super) fn prepare(
    request: &ChatRequest,
    model: &str,
    options: &OpenAiOptions,
    origin: &str,
) -> Result<Prepared, Fault> {
    let names = Names::new(Alphabet::OpenAi, &request.tools, &request.messages);
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(model));
    body.insert("messages".to_owned(), Value::Array(messages(request, &names, options, origin)));
    body.insert("stream".to_owned(), json!(true));
    if options.stream_usage {
        body.insert("stream_options".to_owned(), json!({ "include_usage": true }));
    }
    let offers = match request.tool_mode {
        ToolMode::Off => false,
        ToolMode::Native | ToolMode::Prompted => !request.tools.is_empty(),
    };
    if offers {
        body.insert("tools".to_owned(), tools(request, &names));
        if let Some(choice) = choice(&request.tool_choice, &names) {
            body.insert("tool_choice".to_owned(), choice);
        }
    }
    settings(&mut body, request, options);
    match &request.answer {
        AnswerForm::Free => {}
        AnswerForm::JsonSchema(schema) => {
            let format = json!({"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}});
            body.insert("response_format".to_owned(), format);
        }
        AnswerForm::Grammar(_) => {
            let why = format!("`{model}` takes no grammar for its answers");
            return Err(Fault::of(FaultKind::CannotAsk { why }));
        }
    }
    Ok(Prepared { body: Value::Object(body), names })
}

fn settings(body: &mut Map<String, Value>, request: &ChatRequest, options: &OpenAiOptions) {
    let Sampling {
        temperature,
        top_p,
        top_k,
        min_p,
        repeat_penalty,
        frequency_penalty,
        presence_penalty,
        seed,
        max_tokens,
        stop,
    } = &request.sampling;
    let mut set = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            body.insert(name.to_owned(), value);
        }
    };
    set("temperature", temperature.map(decimal));
    set("top_p", top_p.map(decimal));
    set("frequency_penalty", frequency_penalty.map(decimal));
    set("presence_penalty", presence_penalty.map(decimal));
    set("seed", seed.map(Value::from));
    set("stop", (!stop.is_empty()).then(|| json!(stop)));
    let limit = if options.completion_tokens { "max_completion_tokens" } else { "max_tokens" };
    set(limit, max_tokens.map(Value::from));
    if options.extended {
        // llama-server, vLLM, LM Studio and Ollama know these; OpenAI refuses them.
        set("top_k", top_k.map(Value::from));
        set("min_p", min_p.map(decimal));
        // llama-server, LM Studio and Ollama; vLLM and OpenRouter have another name for it.
        set("repeat_penalty", repeat_penalty.map(decimal));
        set("repetition_penalty", repeat_penalty.map(decimal));
        let thinking = request.thinking.enabled.map(|enabled| json!({ "enable_thinking": enabled }));
        set("chat_template_kwargs", thinking);
    }
    set("reasoning_effort", options.reasoning_effort.as_ref().map(|effort| json!(effort)));
}

fn tools(request: &ChatRequest, names: &Names) -> Value {
    let one = |spec: &lectern_core::ToolSpec| {
        // A schema has to be an object; the turn checks the arguments in any case.
        let parameters = match &spec.input_schema {
            Value::Object(fields) if fields.contains_key("type") => spec.input_schema.clone(),
            Value::Object(fields) => {
                let mut fields = fields.clone();
                fields.insert("type".to_owned(), json!("object"));
                Value::Object(fields)
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                json!({ "type": "object", "properties": {} })
            }
        };
        json!({
            "type": "function",
            "function": {
                "name": names.alias(&spec.name),
                "description": spec.description,
                "parameters": parameters,
            },
        })
    };
    request.tools.iter().map(one).collect()
}

fn choice(choice: &ToolChoice, names: &Names) -> Option<Value> {
    match choice {
        ToolChoice::Auto => None,
        ToolChoice::None => Some(json!("none")),
        ToolChoice::Required => Some(json!("required")),
        ToolChoice::Tool(tool) => {
            Some(json!({ "type": "function", "function": { "name": names.alias(tool) } }))
        }
    }
}

fn messages(request: &ChatRequest, names: &Names, options: &OpenAiOptions, origin: &str) -> Vec<Value> {
    let mut out = Vec::new();
    if let Some(system) = request.system.as_deref().filter(|system| !system.trim().is_empty()) {
        out.push(json!({ "role": "system", "content": system }));
    }
    let history = history::for_request(request.messages.clone());
    let last_user = history.iter().rposition(|message| matches!(message, Message::User(_)));
    let tail = request.tail.as_deref().filter(|tail| !tail.trim().is_empty());
    let mut images = Vec::new();
    for (place, message) in history.iter().enumerate() {
        // Results take text only; what they show comes behind the last of them.
        if !matches!(message, Message::Tool(_)) && !images.is_empty() {
            out.push(shown(std::mem::take(&mut images)));
        }
        match message {
            Message::User(user) => {
                out.push(json!({"role": "user", "content": user_content(user, tail.filter(|_| Some(place) == last_user))}));
            }
            Message::Assistant(said) => {
                let mut message = assistant(said, names);
                // The thoughts of the turn that runs; those of earlier ones are of no use any more.
                if last_user.is_none_or(|last| place > last) {
                    put_back(&mut message, said, origin);
                }
                out.push(message);
            }
            Message::Tool(result) => {
                out.push(json!({"role": "tool", "tool_call_id": result.call.as_str(), "content": result_text(result)}));
                if options.images {
                    images.extend(result.content.iter().filter_map(|content| match content {
                        Content::Image(blob) => Some(image(blob)),
                        Content::Text { .. } | Content::Audio(_) | Content::Resource(_) => None,
                    }));
                }
            }
        }
    }
    if !images.is_empty() {
        out.push(shown(images));
    }
    if let (None, Some(tail)) = (last_user, tail) {
        out.push(json!({ "role": "user", "content": tail }));
    }
    out
}

fn shown(images: Vec<Value>) -> Value {
    let mut parts = vec![json!({ "type": "text", "text": "(what the tools returned as images)" })];
    parts.extend(images);
    json!({ "role": "user", "content": parts })
}

/// Text alone is a text, for servers that know no parts.
fn user_content(user: &UserMessage, tail: Option<&str>) -> Value {
    let mut text = String::new();
    let mut parts = Vec::new();
    let flush = |text: &mut String, parts: &mut Vec<Value>| {
        if !text.trim().is_empty() {
            parts.push(json!({ "type": "text", "text": text }));
        }
        text.clear();
    };
    for part in &user.parts {
        match part {
            Part::Text { text: more } => text.push_str(more),
            Part::Resource(resource) => {
                let body = resource.text.as_deref().unwrap_or("(not embedded)");
                text.push_str(&format!("\n\n[{}]\n{body}\n\n", resource.uri));
            }
            Part::Image(blob) => {
                flush(&mut text, &mut parts);
                parts.push(image(blob));
            }
            Part::Thinking(_) | Part::ToolCall(_) => {}
        }
    }
    let context = user.context.as_deref().map(|context| format!("({})", context.trim()));
    for more in context.iter().map(String::as_str).chain(tail) {
        text.push_str("\n\n");
        text.push_str(more);
    }
    if parts.is_empty() {
        return Value::String(text);
    }
    flush(&mut text, &mut parts);
    Value::Array(parts)
}

/// A picture as a data URL; a document as a file.
fn image(blob: &Blob) -> Value {
    let url = format!("data:{};base64,{}", blob.mime, blob.base64);
    if blob.mime == "application/pdf" {
        return json!({ "type": "file", "file": { "filename": "document.pdf", "file_data": url } });
    }
    json!({ "type": "image_url", "image_url": { "url": url } })
}

fn assistant(said: &AssistantMessage, names: &Names) -> Value {
    let text = said.text();
    let calls: Vec<Value> = said.tool_calls().map(|call| call_of(call, names)).collect();
    // An empty text beside calls, not null: llama-cpp-python refuses null, and nobody refuses the text.
    let mut out = json!({ "role": "assistant", "content": text });
    if !calls.is_empty() {
        out["tool_calls"] = Value::Array(calls);
    }
    out
}

fn call_of(call: &ToolCall, names: &Names) -> Value {
    let arguments = match &call.malformed {
        // Servers parse the arguments of the history; what is no JSON makes them fail.
        Some(text) => json!({ "malformed": text }).to_string(),
        None => Value::Object(call.arguments.clone()).to_string(),
    };
    let mut out = json!({
        "id": call.id.as_str(),
        "type": "function",
        "function": { "name": names.alias(&call.tool), "arguments": arguments },
    });
    if let Some(extra) = call.provider_data.as_ref().and_then(|data| data.pointer("/openai/extra_content")) {
        out["extra_content"] = extra.clone();
    }
    out
}

fn result_text(result: &ToolResult) -> String {
    let mut text = result.text();
    if let Some(structured) = result.structured.as_ref().filter(|_| text.is_empty()) {
        text = structured.to_string();
    }
    // What can't be sent is said, so that the model does not take the result for an empty one.
    if result.content.iter().any(|content| matches!(content, Content::Audio(_))) {
        let line_break = if text.is_empty() { "" } else { "\n" };
        text.push_str(line_break);
        text.push_str("[a sound, which can't be sent to this model]");
    }
    text
}
