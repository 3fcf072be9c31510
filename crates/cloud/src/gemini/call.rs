//! One call of Gemini, as far as it has come.
//!
//! Invariant: pure. Arguments that did not come whole, or that can't be read, never look like whole ones.

use lectern_core::{Delta, arguments_of};
use serde_json::{Map, Value, json};

use super::partial;
use super::wire::FunctionCall;
use crate::names::Names;

/// A call.
#[derive(Debug, Default)]
pub(super) struct Call {
    name: String,
    id: Option<String>,
    arguments: Map<String, Value>,
    signature: Option<String>,
    /// More of its arguments is to follow.
    open: bool,
    /// A piece of its arguments can't be read.
    lost: bool,
    /// What stands in the place of its arguments and is none.
    odd: Option<String>,
}

impl Call {
    /// Whether more of it is to follow.
    pub(super) fn is_open(&self) -> bool {
        self.open
    }

    /// Whether this is a piece of it.
    pub(super) fn is_continued_by(&self, piece: &FunctionCall) -> bool {
        let name = piece.name.as_deref().filter(|name| !name.is_empty());
        let same_name = name.is_none_or(|name| name == self.name);
        // Pieces of several calls may take turns: then their ids tell them apart.
        let same_id = match (piece.id.as_deref().filter(|id| !id.is_empty()), self.id.as_deref()) {
            (Some(theirs), Some(ours)) => theirs == ours,
            (Some(_), None) => name.is_none(),
            (None, _) => true,
        };
        self.open && same_name && same_id
    }

    /// Takes a piece of it in, or all of it.
    pub(super) fn take(&mut self, piece: FunctionCall, signature: Option<String>) {
        if self.name.is_empty() {
            self.name = piece.name.unwrap_or_default();
        }
        self.id = self.id.take().or(piece.id.filter(|id| !id.is_empty()));
        if let Some(arguments) = piece.args {
            self.take_arguments(arguments);
        }
        for part in &piece.partial_args {
            self.lost |= !partial::put(&mut self.arguments, part);
        }
        self.signature = self.signature.take().or(signature);
        self.open = piece.will_continue == Some(true);
    }

    fn take_arguments(&mut self, arguments: Value) {
        let text = match arguments {
            Value::Object(fields) => return self.arguments.extend(fields),
            Value::Null => return,
            Value::String(text) => text,
            other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_)) => other.to_string(),
        };
        match arguments_of(&text) {
            Some(fields) => self.arguments.extend(fields),
            None => self.odd = Some(text),
        }
    }

    /// The call as it is told.
    pub(super) fn deltas(self, index: u32, model: &str, names: &Names) -> [Delta; 2] {
        let mut data = json!({ "model": model });
        if let Some(signature) = self.signature {
            data["signature"] = Value::String(signature);
        }
        if let Some(id) = &self.id {
            data["id"] = Value::String(id.clone());
        }
        let mut fragment = Value::Object(self.arguments).to_string();
        if self.open || self.lost {
            // Without its end it is no JSON, and no tool runs with it.
            fragment.truncate(fragment.len() - 1);
        }
        let started = Delta::ToolCallStarted {
            index,
            // The core gives an id where the provider gave none.
            id: self.id.unwrap_or_default().into(),
            tool: names.tool(&self.name),
            provider_data: Some(json!({ "gemini": data })),
        };
        [started, Delta::ToolCallArguments { index, fragment: self.odd.unwrap_or(fragment) }]
    }
}
