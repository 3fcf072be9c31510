//! The prompts of a server, and the completion of what is typed for them (MCP 2025-11-25, Prompts and Completion).
//!
//! Invariant: a prompt is text of the server. It becomes a message of the user's only when the user runs it.

use std::collections::BTreeMap;
use std::sync::Arc;

use lectern_core::{Asker, Content, Nobody, Part};
use serde::Serialize;
use serde_json::{Value, json};

use crate::outcome;
use crate::resources::{Access, AccessError, text};

pub(crate) const LIST: &str = "prompts/list";
const GET: &str = "prompts/get";
/// Values of one completion (the protocol's own limit).
const MOST_VALUES: usize = 100;

/// A prompt as it is listed; untrusted text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Prompt {
    /// Its name.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// What it takes.
    pub arguments: Vec<PromptArgument>,
}

/// What a prompt takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PromptArgument {
    /// Its name.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// What it means.
    pub description: Option<String>,
    /// Whether the prompt needs it.
    pub required: bool,
}

/// A prompt with its arguments filled in.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FilledPrompt {
    /// What it is for.
    pub description: Option<String>,
    /// Its messages, oldest first.
    pub messages: Vec<PromptMessage>,
}

/// One message of a prompt.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PromptMessage {
    /// Whose words they are.
    pub role: PromptRole,
    /// Text, images and resources, in order.
    pub parts: Vec<Part>,
}

/// Whose words a message of a prompt has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PromptRole {
    /// The user's.
    User,
    /// The assistant's.
    Assistant,
}

/// What is to be completed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CompletionOf {
    /// An argument of a prompt.
    Prompt {
        /// The prompt.
        name: String,
    },
    /// A variable of a resource template.
    Template {
        /// The template.
        uri_template: String,
    },
}

/// Suggestions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Completion {
    /// The best first.
    pub values: Vec<String>,
    /// How many there are in all, when the server says it.
    pub total: Option<u64>,
    /// Whether there are more.
    pub has_more: bool,
}

impl FilledPrompt {
    /// All of it as the parts of one message; words of the assistant are marked as such.
    pub fn parts(self) -> Vec<Part> {
        let mut parts = Vec::new();
        for message in self.messages {
            if message.role == PromptRole::Assistant {
                parts.push(Part::Text { text: "\n[assistant:]\n".into() });
            } else if !parts.is_empty() {
                parts.push(Part::Text { text: "\n\n".into() });
            }
            parts.extend(message.parts);
        }
        parts
    }
}

impl Access {
    pub(crate) async fn prompts(&self) -> Result<Vec<Prompt>, AccessError> {
        Ok(self.list(LIST, "prompts", "/prompts").await?.iter().filter_map(prompt).collect())
    }

    pub(crate) async fn prompt(
        &self,
        name: &str,
        arguments: &BTreeMap<String, String>,
        ask: Arc<dyn Asker>,
    ) -> Result<FilledPrompt, AccessError> {
        let result = self.exchange(GET, json!({"name": name, "arguments": arguments}), ask).await?;
        let messages =
            result.get("messages").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        Ok(FilledPrompt {
            description: text(&result, "description"),
            messages: messages.iter().filter_map(message).collect(),
        })
    }

    /// Suggestions for what is being typed; none when the server makes none.
    pub(crate) async fn complete(
        &self,
        of: &CompletionOf,
        argument: &str,
        typed: &str,
        known: &BTreeMap<String, String>,
    ) -> Result<Completion, AccessError> {
        if !self.can_complete() {
            return Ok(Completion::default());
        }
        let reference = match of {
            CompletionOf::Prompt { name } => json!({"type": "ref/prompt", "name": name}),
            CompletionOf::Template { uri_template } => json!({"type": "ref/resource", "uri": uri_template}),
        };
        let mut params = json!({"ref": reference, "argument": {"name": argument, "value": typed}});
        if !known.is_empty() {
            params["context"] = json!({ "arguments": known });
        }
        let result = self.exchange("completion/complete", params, Arc::new(Nobody)).await?;
        let completion = result.get("completion").unwrap_or(&Value::Null);
        let values = completion.get("values").and_then(Value::as_array).into_iter().flatten();
        Ok(Completion {
            values: values.filter_map(Value::as_str).take(MOST_VALUES).map(str::to_owned).collect(),
            total: completion.get("total").and_then(Value::as_u64),
            has_more: completion.get("hasMore").and_then(Value::as_bool).unwrap_or(false),
        })
    }
}

fn prompt(value: &Value) -> Option<Prompt> {
    let arguments = value.get("arguments").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    Some(Prompt {
        name: text(value, "name")?,
        title: text(value, "title"),
        description: text(value, "description"),
        arguments: arguments.iter().filter_map(argument).collect(),
    })
}

fn argument(value: &Value) -> Option<PromptArgument> {
    Some(PromptArgument {
        name: text(value, "name")?,
        title: text(value, "title"),
        description: text(value, "description"),
        required: value.get("required").and_then(Value::as_bool).unwrap_or(false),
    })
}

fn message(value: &Value) -> Option<PromptMessage> {
    let role = match value.get("role").and_then(Value::as_str) {
        Some("assistant") => PromptRole::Assistant,
        _ => PromptRole::User,
    };
    let blocks: Vec<&Value> = match value.get("content")? {
        Value::Array(blocks) => blocks.iter().collect(),
        block => vec![block],
    };
    let parts = blocks.into_iter().map(|block| part(outcome::content_of(block))).collect();
    Some(PromptMessage { role, parts })
}

fn part(content: Content) -> Part {
    match content {
        Content::Text { text } => Part::Text { text },
        Content::Image(blob) => Part::Image(blob),
        Content::Resource(resource) => Part::Resource(resource),
        Content::Audio(_) => Part::Text { text: "[a sound, which can't be shown here]".into() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_becomes_one_message() {
        let one = |role: &str, text: &str| json!({"role": role, "content": {"type": "text", "text": text}});
        let linked = json!({"role": "user", "content": {"type": "resource", "resource": {"uri": "x:///a", "text": "A"}}});
        let messages = [one("user", "Sum up"), linked, one("assistant", "Sure."), json!({"role": "user"})];
        let filled =
            FilledPrompt { description: None, messages: messages.iter().filter_map(message).collect() };
        let text = |text: &str| Part::Text { text: text.into() };
        let parts = filled.parts();
        assert_eq!(parts[0], text("Sum up"));
        assert!(matches!(&parts[2], Part::Resource(resource) if resource.text.as_deref() == Some("A")));
        assert_eq!(parts[3..], [text("\n[assistant:]\n"), text("Sure.")]);
    }
}
