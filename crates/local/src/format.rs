//! What a user may override about a model's format: its template, how it writes calls, what ends a reply.

use serde::{Deserialize, Serialize};

/// Overrides of one model's format; what is unset is the file's own, or the usual.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FormatOptions {
    /// The text of a chat template (Jinja) in place of the file's.
    pub template: Option<String>,
    /// How calls are written when tools are described in the prompt.
    pub call_form: Option<CallForm>,
    /// Texts that end every reply of this model, besides those of a request.
    pub stop: Vec<String>,
}

/// How a model writes calls when its template knows none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallForm {
    /// `<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>`.
    #[default]
    Json,
    /// `[f(a=1, b='x'), g()]`.
    Pythonic,
}
