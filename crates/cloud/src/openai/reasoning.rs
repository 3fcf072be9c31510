//! The thoughts of a model, as the server sent them, and as they go back to it within the same turn.
//!
//! DeepSeek and Kimi refuse the next step of a turn without the thoughts that led to its calls; OpenRouter's
//! `reasoning_details` carry the signatures of the models behind it. Others do not know such a field: it goes back only to
//! where it came from, under the name that it had.
//!
//! Invariant: pure. What is encrypted or signed goes back untouched and in its order.

use lectern_core::{AssistantMessage, Part};
use serde_json::{Map, Value, json};

use super::reply::words;
use super::wire::Said;

/// Entries of details at most; a stream has one for each piece of a text.
const MOST_DETAILS: usize = 10_000;

/// The thoughts of one reply.
pub(super) struct Reasoning {
    origin: String,
    field: Option<&'static str>,
    details: Vec<Value>,
}

impl Reasoning {
    pub(super) fn new(origin: &str) -> Self {
        Self { origin: origin.to_owned(), field: None, details: Vec::new() }
    }

    /// The thoughts in a piece of the reply. Some servers send the same words under several names.
    pub(super) fn take(&mut self, said: &Said) -> String {
        let fields = [("reasoning_content", &said.reasoning_content), ("reasoning", &said.reasoning)];
        let mut told = fields.into_iter().map(|(name, value)| (name, words(value.as_ref())));
        let told = told.find(|(_, thoughts)| !thoughts.is_empty());
        if let Some(details) = &said.reasoning_details {
            self.take_details(details);
        }
        match told {
            Some((name, thoughts)) => {
                self.field = self.field.or(Some(name));
                thoughts
            }
            None => words(said.reasoning_details.as_ref()),
        }
    }

    fn take_details(&mut self, details: &Value) {
        let items = match details {
            Value::Array(items) => items.as_slice(),
            Value::Object(_) => std::slice::from_ref(details),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => &[],
        };
        for item in items.iter().filter_map(Value::as_object) {
            let joined =
                self.details.last_mut().and_then(Value::as_object_mut).is_some_and(|last| join(last, item));
            if !joined && self.details.len() < MOST_DETAILS {
                self.details.push(Value::Object(item.clone()));
            }
        }
    }

    /// What the message keeps, so that they can go back.
    pub(super) fn as_data(&self) -> Option<Value> {
        let mut data = json!({ "origin": self.origin });
        if let Some(field) = self.field {
            data["reasoning"] = json!(field);
        }
        if !self.details.is_empty() {
            data["reasoning_details"] = Value::Array(self.details.clone());
        }
        (self.field.is_some() || !self.details.is_empty()).then(|| json!({ "openai": data }))
    }
}

/// Joins a piece of a text with the one before it. What is signed is whole.
fn join(last: &mut Map<String, Value>, next: &Map<String, Value>) -> bool {
    let same = |name: &str| last.get(name) == next.get(name);
    let signed = last.get("signature").is_some_and(|signature| !signature.is_null());
    let other_id = next.contains_key("id") && !same("id");
    if signed || other_id || !same("type") || !same("index") {
        return false;
    }
    let Some(field) =
        ["text", "summary"].into_iter().find(|name| next.get(*name).is_some_and(Value::is_string))
    else {
        return false;
    };
    let (Some(Value::String(begun)), Some(more)) =
        (last.get_mut(field), next.get(field).and_then(Value::as_str))
    else {
        return false;
    };
    begun.push_str(more);
    for (name, value) in next.iter().filter(|(name, value)| *name != field && !value.is_null()) {
        last.insert(name.clone(), value.clone());
    }
    true
}

/// Puts the thoughts of a message into what goes back, if it came from there.
pub(super) fn put_back(out: &mut Value, said: &AssistantMessage, origin: &str) {
    let data = said.provider_data.as_ref().and_then(|data| data.get("openai"));
    let Some(data) = data.filter(|data| data.get("origin").and_then(Value::as_str) == Some(origin)) else {
        return;
    };
    let thoughts: String = said
        .parts
        .iter()
        .filter_map(|part| match part {
            Part::Thinking(thinking) => Some(thinking.text.as_str()),
            Part::Text { .. } | Part::ToolCall(_) | Part::Image(_) | Part::Resource(_) => None,
        })
        .collect();
    // Settings and stores are text files: only the two names that there are.
    let field = data.get("reasoning").and_then(Value::as_str);
    if let Some(field @ ("reasoning_content" | "reasoning")) = field {
        out[field] = Value::String(thoughts);
    }
    if let Some(details) = data.get("reasoning_details").filter(|details| details.is_array()) {
        out["reasoning_details"] = details.clone();
    }
}
