//! What OpenAI-compatible endpoints answer, as far as it is read.
//!
//! Invariant: whatever may be missing, null, or of another type at some server is read as what it means.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::loose::{if_right, or_default};

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Chunk {
    #[serde(deserialize_with = "or_default")]
    pub choices: Vec<Choice>,
    #[serde(deserialize_with = "if_right")]
    pub usage: Option<Map<String, Value>>,
    #[serde(deserialize_with = "if_right")]
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
    pub delta: Option<Said>,
    /// In an answer that is no stream.
    pub message: Option<Said>,
    #[serde(deserialize_with = "if_right")]
    pub finish_reason: Option<String>,
}

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
    #[serde(deserialize_with = "or_default")]
    pub tool_calls: Vec<Call>,
    /// Before there were tools.
    pub function_call: Option<Function>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Call {
    #[serde(deserialize_with = "if_right")]
    pub index: Option<i64>,
    /// Text; a number at some servers.
    pub id: Option<Value>,
    pub function: Option<Function>,
    /// Gemini's signature behind its OpenAI-compatible address.
    pub extra_content: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Function {
    #[serde(deserialize_with = "if_right")]
    pub name: Option<String>,
    /// A text of JSON; the object itself at some servers.
    pub arguments: Option<Value>,
}
