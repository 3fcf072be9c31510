//! What Gemini answers (`GenerateContentResponse`), as far as it is read.
//!
//! Invariant: whatever may be missing or null is optional; what is not known is skipped.

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::loose::{if_right, or_default};

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Chunk {
    #[serde(deserialize_with = "or_default")]
    pub candidates: Vec<Candidate>,
    pub prompt_feedback: Option<Feedback>,
    #[serde(deserialize_with = "if_right")]
    pub usage_metadata: Option<Map<String, Value>>,
    #[serde(deserialize_with = "if_right")]
    pub model_version: Option<String>,
    pub error: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Candidate {
    #[serde(deserialize_with = "if_right")]
    pub index: Option<u32>,
    pub content: Option<Content>,
    #[serde(deserialize_with = "if_right")]
    pub finish_reason: Option<String>,
    #[serde(deserialize_with = "if_right")]
    pub finish_message: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Content {
    #[serde(deserialize_with = "or_default")]
    pub parts: Vec<Part>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Part {
    pub text: Option<String>,
    #[serde(deserialize_with = "if_right")]
    pub thought: Option<bool>,
    pub thought_signature: Option<String>,
    pub function_call: Option<FunctionCall>,
    pub inline_data: Option<Value>,
    pub file_data: Option<Value>,
    pub executable_code: Option<Value>,
    pub code_execution_result: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct FunctionCall {
    #[serde(deserialize_with = "if_right")]
    pub id: Option<String>,
    #[serde(deserialize_with = "if_right")]
    pub name: Option<String>,
    #[serde(deserialize_with = "if_right")]
    pub args: Option<Map<String, Value>>,
    #[serde(deserialize_with = "or_default")]
    pub partial_args: Vec<PartialArg>,
    #[serde(deserialize_with = "if_right")]
    pub will_continue: Option<bool>,
}

impl FunctionCall {
    /// Whether it says nothing at all.
    pub(super) fn is_empty(&self) -> bool {
        let Self { id, name, args, partial_args, will_continue: _ } = self;
        id.is_none()
            && name.as_ref().is_none_or(String::is_empty)
            && args.is_none()
            && partial_args.is_empty()
    }
}

/// A piece of an argument (`PartialArg`). Pieces of one text have the same path; its `willContinue` says nothing more.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct PartialArg {
    pub json_path: Option<String>,
    pub string_value: Option<String>,
    pub number_value: Option<serde_json::Number>,
    pub bool_value: Option<bool>,
    /// Present, with the value null or `NULL_VALUE`, when the argument is null.
    #[serde(deserialize_with = "present")]
    pub null_value: bool,
}

fn present<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    serde::de::IgnoredAny::deserialize(from).map(|_| true)
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Feedback {
    #[serde(deserialize_with = "if_right")]
    pub block_reason: Option<String>,
    #[serde(deserialize_with = "if_right")]
    pub block_reason_message: Option<String>,
}
