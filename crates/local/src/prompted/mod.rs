//! Tools for models whose chat template knows none: described in the instructions, read out of the free text.
//!
//! Four forms are understood: pythonic `[f(a=1, b='x')]`, Hermes `<tool_call>{...}</tool_call>`, Llama's
//! `{"name": ..., "parameters": ...}`, and either of them in a fence. Invariant: pure; the text of a model is
//! never executed, and what is not a whole call stays text.

mod instructions;
mod json;
mod pythonic;
mod scan;
mod stream;

pub use instructions::{instructions, written_calls};
pub(crate) use instructions::{instructions_in, written_value};
pub(crate) use scan::before_tag;
pub use stream::{FreeText, FreeTextPiece, parse_free_text};

/// A call that was read out of text.
#[derive(Clone, Debug, PartialEq)]
pub struct TextCall {
    /// The tool's name, as it was written.
    pub name: String,
    /// The arguments.
    pub arguments: serde_json::Map<String, serde_json::Value>,
}
