//! From the history to Gemini's `contents`.
//!
//! Invariant: pure. Each step of the model is one content with the role `model`, its results are one content with the
//! role `user`, one to one and in call order; signatures and ids are those that came. A call that this model did not make
//! says so with the sentinel, so that the model can be changed within a conversation.

use lectern_core::{
    AssistantMessage, Blob, ChatRequest, Content, Message, Part, ToolCall, ToolOutcome, ToolResult,
    UserMessage, history,
};
use serde_json::{Value, json};

use super::layout::{Kind, pieces};
use crate::names::Names;

/// Stands for a signature that there never was ("Thought signatures", calls of other models).
pub(super) const SENTINEL: &str = "skip_thought_signature_validator";

/// What the model is, as far as the history depends on it.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a> {
    pub model: &'a str,
    pub names: &'a Names,
    /// It signs its calls and wants them signed, and takes images in results.
    pub signs: bool,
}

/// The contents of a request.
pub(super) fn contents(request: &ChatRequest, reader: Reader<'_>) -> Vec<Value> {
    let mut out: Vec<Value> = Vec::new();
    let mut calls: Vec<ToolCall> = Vec::new();
    let mut results: Vec<ToolResult> = Vec::new();
    let messages = history::for_request(request.messages.clone());
    for message in &messages {
        match message {
            Message::Tool(result) => {
                results.push(result.clone());
                if results.len() == calls.len() {
                    let parts = response_parts(&calls, &std::mem::take(&mut results), reader);
                    out.push(json!({ "role": "user", "parts": parts }));
                }
            }
            Message::User(user) => out.push(json!({ "role": "user", "parts": user_parts(user) })),
            Message::Assistant(said) => {
                calls = said.tool_calls().cloned().collect();
                push_model(&mut out, model_parts(said, reader));
            }
        }
    }
    if let Some(tail) = request.tail.as_deref().filter(|tail| !tail.trim().is_empty()) {
        push_tail(&mut out, messages.last(), tail);
    }
    // A conversation begins with the user, also where its beginning was left out.
    if out.first().is_none_or(|first| first["role"] == "model") {
        out.insert(0, json!({ "role": "user", "parts": [{ "text": "…" }] }));
    }
    out
}

/// Two steps without anything between them are one content: roles take turns.
fn push_model(out: &mut Vec<Value>, parts: Vec<Value>) {
    if parts.is_empty() {
        return;
    }
    match out.last_mut() {
        Some(last) if last["role"] == "model" => {
            if let Some(all) = last["parts"].as_array_mut() {
                all.extend(parts);
            }
        }
        Some(_) | None => out.push(json!({ "role": "model", "parts": parts })),
    }
}

fn push_tail(out: &mut Vec<Value>, last: Option<&Message>, tail: &str) {
    let part = json!({ "text": tail });
    let with_user = matches!(last, Some(Message::User(_)));
    match out.last_mut().and_then(|last| last["parts"].as_array_mut()).filter(|_| with_user) {
        Some(parts) => parts.push(part),
        None => out.push(json!({ "role": "user", "parts": [part] })),
    }
}

fn user_parts(user: &UserMessage) -> Vec<Value> {
    let mut parts: Vec<Value> = user
        .parts
        .iter()
        .filter_map(|part| match part {
            Part::Text { text } if text.trim().is_empty() => None,
            Part::Text { text } => Some(json!({ "text": text })),
            Part::Image(blob) => Some(inline(blob)),
            Part::Resource(resource) => {
                let text = resource.text.as_deref().unwrap_or("(not embedded)");
                Some(json!({ "text": format!("[{}]\n{text}", resource.uri) }))
            }
            Part::Thinking(_) | Part::ToolCall(_) => None,
        })
        .collect();
    if let Some(context) = user.context.as_deref().map(str::trim).filter(|context| !context.is_empty()) {
        parts.push(json!({ "text": format!("({context})") }));
    }
    if parts.is_empty() {
        parts.push(json!({ "text": " " }));
    }
    parts
}

/// Images and documents stand in the request itself.
fn inline(blob: &Blob) -> Value {
    json!({ "inlineData": { "mimeType": blob.mime, "data": blob.base64 } })
}

fn model_parts(said: &AssistantMessage, reader: Reader<'_>) -> Vec<Value> {
    let mut calls = said.tool_calls();
    let mut first_call = true;
    let mut parts = Vec::new();
    for piece in pieces(said, reader.model) {
        let mut part = match piece.kind {
            // Without a signature thoughts are for people only.
            Kind::Thought if piece.signature.is_none() => continue,
            Kind::Thought => json!({ "text": piece.text, "thought": true }),
            Kind::Text if piece.text.is_empty() && piece.signature.is_none() => continue,
            Kind::Text => json!({ "text": piece.text }),
            Kind::Call => match calls.next() {
                Some(call) => call_part(call, std::mem::take(&mut first_call), reader),
                None => continue,
            },
        };
        if let Some(signature) = piece.signature {
            part["thoughtSignature"] = Value::String(signature);
        }
        parts.push(part);
    }
    parts
}

/// What Gemini gave with a call, if this model made it.
fn own_data<'a>(call: &'a ToolCall, reader: Reader<'_>) -> Option<&'a Value> {
    let data = call.provider_data.as_ref()?.get("gemini")?;
    (data.get("model")?.as_str()? == reader.model).then_some(data)
}

fn call_part(call: &ToolCall, first: bool, reader: Reader<'_>) -> Value {
    let own = own_data(call, reader);
    let mut function = json!({ "name": reader.names.alias(&call.tool), "args": call.arguments });
    if let Some(id) = own.and_then(|data| data.get("id")) {
        function["id"] = id.clone();
    }
    let mut part = json!({ "functionCall": function });
    let signature = own.and_then(|data| data.get("signature")).cloned();
    let foreign = own.is_none() || reader.signs;
    let signature = signature.or_else(|| (first && foreign).then(|| Value::String(SENTINEL.to_owned())));
    if let Some(signature) = signature {
        part["thoughtSignature"] = signature;
    }
    part
}

fn response_parts(calls: &[ToolCall], results: &[ToolResult], reader: Reader<'_>) -> Vec<Value> {
    let mut parts = Vec::new();
    let mut beside = Vec::new();
    for (call, result) in calls.iter().zip(results) {
        let images: Vec<Value> = result.content.iter().filter_map(image).collect();
        let mut response = json!({ "name": reader.names.alias(&call.tool), "response": response(result) });
        if let Some(id) = own_data(call, reader).and_then(|data| data.get("id")) {
            response["id"] = id.clone();
        }
        if reader.signs && !images.is_empty() {
            response["parts"] = Value::Array(images);
        } else {
            beside.extend(images);
        }
        // A response takes pictures and documents, no sounds.
        beside.extend(result.content.iter().filter_map(sound));
        parts.push(json!({ "functionResponse": response }));
    }
    parts.extend(beside);
    parts
}

fn image(content: &Content) -> Option<Value> {
    match content {
        Content::Image(blob) => Some(inline(blob)),
        Content::Text { .. } | Content::Audio(_) | Content::Resource(_) => None,
    }
}

fn sound(content: &Content) -> Option<Value> {
    match content {
        Content::Audio(blob) => Some(inline(blob)),
        Content::Text { .. } | Content::Image(_) | Content::Resource(_) => None,
    }
}

/// `output` and `error` are the keys that Gemini knows (`FunctionResponse.response`).
fn response(result: &ToolResult) -> Value {
    let text = result.text();
    match result.outcome {
        ToolOutcome::Succeeded => match &result.structured {
            Some(structured) if text.is_empty() => json!({ "output": structured }),
            Some(_) | None => json!({ "output": text }),
        },
        ToolOutcome::Failed | ToolOutcome::Denied | ToolOutcome::Cancelled => json!({ "error": text }),
    }
}
