//! What OpenAI-compatible endpoints answer, as far as it is read.
//!
//! Invariant: whatever may be missing, null, or of another type at some server is read as what it means.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::loose::{Shape, if_right, list, object, text};

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Chunk {
    #[serde(deserialize_with = "list")]
    pub choices: Vec<Choice>,
    #[serde(deserialize_with = "if_right")]
    pub usage: Option<Map<String, Value>>,
    #[serde(deserialize_with = "text")]
    pub model: Option<String>,
    pub error: Option<Value>,
    /// `error` where vLLM once wrote errors without a field of their own.
    pub object: Option<Value>,
    /// FastAPI's errors.
    pub detail: Option<Value>,
    /// An error without a field of its own has its words here (Mistral, LM Studio's `event: error`).
    pub message: Option<Value>,
    #[serde(deserialize_with = "if_right")]
    pub timings: Option<Timings>,
    /// Groq's counts, before it had `usage`.
    #[serde(deserialize_with = "if_right")]
    pub x_groq: Option<Groq>,
}

/// llama-server's figures.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Timings {
    pub prompt_ms: Option<f64>,
    pub predicted_ms: Option<f64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Groq {
    pub usage: Option<Map<String, Value>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Choice {
    #[serde(deserialize_with = "if_right")]
    pub index: Option<u32>,
    #[serde(deserialize_with = "object")]
    pub delta: Option<Said>,
    /// In an answer that is no stream; some servers repeat it behind a stream.
    #[serde(deserialize_with = "object")]
    pub message: Option<Said>,
    #[serde(deserialize_with = "text")]
    pub finish_reason: Option<String>,
    /// OpenRouter: the provider behind it failed.
    pub error: Option<Value>,
}

impl Shape for Choice {}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Said {
    /// Text, or a list of parts.
    pub content: Option<Value>,
    /// llama-server, vLLM, DeepSeek, LM Studio.
    pub reasoning_content: Option<Value>,
    /// Ollama, OpenRouter, vLLM of late.
    pub reasoning: Option<Value>,
    /// OpenRouter: the same in parts.
    pub reasoning_details: Option<Value>,
    pub refusal: Option<Value>,
    #[serde(deserialize_with = "list")]
    pub tool_calls: Vec<Call>,
    /// Before there were tools.
    #[serde(deserialize_with = "object")]
    pub function_call: Option<Function>,
    /// OpenRouter: pictures that the model made.
    pub images: Option<Value>,
    pub audio: Option<Value>,
}

impl Shape for Said {
    fn of_text(text: String) -> Option<Self> {
        Some(Self { content: Some(Value::String(text)), ..Self::default() })
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Call {
    #[serde(deserialize_with = "if_right")]
    pub index: Option<i64>,
    /// Text; a number at some servers.
    pub id: Option<Value>,
    #[serde(deserialize_with = "object")]
    pub function: Option<Function>,
    /// Gemini's signature behind its OpenAI-compatible address.
    pub extra_content: Option<Value>,
}

impl Shape for Call {}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Function {
    #[serde(deserialize_with = "text")]
    pub name: Option<String>,
    /// A text of JSON; the object itself at some servers.
    pub arguments: Option<Value>,
}

impl Shape for Function {}
