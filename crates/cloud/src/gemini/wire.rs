//! What Gemini answers (`GenerateContentResponse`), as far as it is read.
//!
//! Invariant: whatever may be missing or null is optional; what is not known is skipped.

use serde::Deserialize;
use serde_json::{Map, Number, Value};

use crate::loose::{Shape, if_right, list, object, text};

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Chunk {
    #[serde(deserialize_with = "list")]
    pub candidates: Vec<Candidate>,
    #[serde(deserialize_with = "object")]
    pub prompt_feedback: Option<Feedback>,
    #[serde(deserialize_with = "if_right")]
    pub usage_metadata: Option<Map<String, Value>>,
    #[serde(deserialize_with = "text")]
    pub model_version: Option<String>,
    pub error: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Candidate {
    #[serde(deserialize_with = "if_right")]
    pub index: Option<u32>,
    #[serde(deserialize_with = "object")]
    pub content: Option<Content>,
    #[serde(deserialize_with = "text")]
    pub finish_reason: Option<String>,
    #[serde(deserialize_with = "text")]
    pub finish_message: Option<String>,
}

impl Shape for Candidate {}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Content {
    #[serde(deserialize_with = "list")]
    pub parts: Vec<Part>,
}

impl Shape for Content {
    fn of_text(text: String) -> Option<Self> {
        Some(Self { parts: Part::of_text(text).into_iter().collect() })
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Part {
    #[serde(deserialize_with = "text")]
    pub text: Option<String>,
    #[serde(deserialize_with = "if_right")]
    pub thought: Option<bool>,
    #[serde(deserialize_with = "text")]
    pub thought_signature: Option<String>,
    #[serde(deserialize_with = "object")]
    pub function_call: Option<FunctionCall>,
    pub inline_data: Option<Value>,
    pub file_data: Option<Value>,
    pub executable_code: Option<Value>,
    pub code_execution_result: Option<Value>,
}

impl Shape for Part {
    fn of_text(text: String) -> Option<Self> {
        Some(Self { text: Some(text), ..Self::default() })
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct FunctionCall {
    #[serde(deserialize_with = "text")]
    pub id: Option<String>,
    #[serde(deserialize_with = "text")]
    pub name: Option<String>,
    /// An object; whatever else stands there makes the call one that can't be read.
    pub args: Option<Value>,
    #[serde(deserialize_with = "list")]
    pub partial_args: Vec<PartialArg>,
    #[serde(deserialize_with = "if_right")]
    pub will_continue: Option<bool>,
}

impl Shape for FunctionCall {
    /// A call that can't be read is one all the same.
    fn of_text(text: String) -> Option<Self> {
        Some(Self { args: Some(Value::String(text)), ..Self::default() })
    }
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
#[serde(transparent)]
pub(super) struct PartialArg(Map<String, Value>);

impl Shape for PartialArg {
    /// What is no piece is one that can't be read.
    fn of_text(text: String) -> Option<Self> {
        Some(Self(Map::from_iter([("text".to_owned(), Value::String(text))])))
    }
}

/// What a piece holds.
#[derive(Debug, PartialEq)]
pub(super) enum Piece {
    /// A value.
    Value(Value),
    /// Nothing: it marks the end of its argument.
    Mark,
    /// Something that can't be read.
    Unknown,
}

impl PartialArg {
    /// Where it belongs.
    pub(super) fn json_path(&self) -> Option<&str> {
        self.0.get("jsonPath")?.as_str()
    }

    /// What it holds.
    pub(super) fn piece(&self) -> Piece {
        let mut found = Piece::Mark;
        for (name, value) in &self.0 {
            found = match (name.as_str(), value) {
                ("jsonPath" | "willContinue", _) => continue,
                // Present, with the value null or `NULL_VALUE`, when the argument is null.
                ("nullValue", _) => Piece::Value(Value::Null),
                (_, Value::Null) => continue,
                ("stringValue", Value::String(text)) => Piece::Value(Value::String(text.clone())),
                ("boolValue", Value::Bool(truth)) => Piece::Value(Value::Bool(*truth)),
                ("numberValue", Value::Number(number)) => Piece::Value(Value::Number(whole(number))),
                // Protobuf may write a number as a text.
                ("numberValue", Value::String(text)) => match text.trim().parse::<Number>() {
                    Ok(number) => Piece::Value(Value::Number(whole(&number))),
                    Err(_) => return Piece::Unknown,
                },
                _ => return Piece::Unknown,
            };
        }
        found
    }
}

/// A double that is a whole number: `5.0` is meant as 5.
fn whole(number: &Number) -> Number {
    match number.as_f64() {
        Some(double) if double.fract() == 0.0 && double.abs() < 9.0e15 => (double as i64).into(),
        _ => number.clone(),
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Feedback {
    #[serde(deserialize_with = "text")]
    pub block_reason: Option<String>,
    #[serde(deserialize_with = "text")]
    pub block_reason_message: Option<String>,
}

impl Shape for Feedback {}
