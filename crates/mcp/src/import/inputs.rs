//! What a file wants to ask its user: VS Code's `inputs`.
//!
//! Invariant: an input that the file does not describe is taken for a secret.

use serde_json::Value;

use crate::config::ServerConfig;
use crate::placeholder::{Reference, references};

/// A value that the user is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    /// Its id, as in `${input:ID}`.
    pub id: String,
    /// What it is for; untrusted text.
    pub description: String,
    /// Whether it is a secret.
    pub password: bool,
    /// What holds when nothing is answered.
    pub default: Option<String>,
    /// What may be chosen; anything when empty.
    pub options: Vec<String>,
    /// Whether several values may be given, one a line; as an argument of its own it becomes several.
    pub multiple: bool,
}

impl Input {
    /// An input that nothing is known of.
    pub fn unknown(id: &str) -> Self {
        Self {
            id: id.to_owned(),
            description: String::new(),
            password: true,
            default: None,
            options: Vec::new(),
            multiple: false,
        }
    }

    /// As VS Code writes it.
    pub fn to_value(&self) -> Value {
        let kind = if self.options.is_empty() { "promptString" } else { "pickString" };
        let mut value = serde_json::json!({"id": self.id, "type": kind, "description": self.description});
        if !self.options.is_empty() {
            value["options"] = self.options.clone().into();
        }
        if self.password {
            value["password"] = true.into();
        }
        if let Some(default) = &self.default {
            value["default"] = default.clone().into();
        }
        value
    }
}

/// Reads a list of inputs; what has no id is left out.
pub fn read(inputs: &[Value]) -> Vec<Input> {
    inputs.iter().filter_map(input).collect()
}

/// The inputs of one server, described where there is a description.
pub fn of_server(config: &ServerConfig, described: &[Input]) -> Vec<Input> {
    let ids = references(config).into_iter().filter_map(|reference| match reference {
        Reference::Input(id) => Some(id),
        Reference::Secret(_)
        | Reference::Variable { .. }
        | Reference::UserHome
        | Reference::PathSeparator => None,
    });
    ids.map(|id| {
        let known = described.iter().find(|input| input.id == id);
        known.cloned().unwrap_or_else(|| Input::unknown(&id))
    })
    .collect()
}

fn input(value: &Value) -> Option<Input> {
    let text = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    let options = value.get("options").and_then(Value::as_array).into_iter().flatten();
    let options = options.filter_map(|option| {
        // VS Code also writes {"label": …, "value": …}.
        option.as_str().or_else(|| option.get("value")?.as_str()).map(str::to_owned)
    });
    Some(Input {
        id: text("id").filter(|id| !id.is_empty())?,
        description: text("description").unwrap_or_default(),
        password: value.get("password").and_then(Value::as_bool) == Some(true),
        default: text("default"),
        options: options.collect(),
        multiple: false,
    })
}
