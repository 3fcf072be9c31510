//! How tools are described to a model whose template knows none.

use serde_json::{Map, Value, json};

use crate::format::CallForm;

const JSON_FORM: &str = "<tool_call>\n{\"name\": \"the tool's name\", \"arguments\": {\"argument\": \"value\"}}\n\
                         </tool_call>";
const JSON_END: &str = "Then stop and wait for the result. Several calls may follow each other.";
const PYTHONIC_FORM: &str = "[name_of_the_tool(argument='value', other_argument=1)]";
const PYTHONIC_END: &str = "Then stop and wait for the result. Several calls stand in the same brackets, with commas \
                            between them.";
const OTHER_END: &str = "Then stop and wait for the result.";

/// The instructions that list the tools and the form of a call.
pub fn instructions(tools: &[Value], form: CallForm) -> String {
    match form {
        CallForm::Json => described(JSON_FORM, JSON_END, tools),
        CallForm::Pythonic => described(PYTHONIC_FORM, PYTHONIC_END, tools),
    }
}

/// The same for a form that an example shows.
pub(crate) fn instructions_in(form: &str, tools: &[Value]) -> String {
    described(form, OTHER_END, tools)
}

fn described(form: &str, end: &str, tools: &[Value]) -> String {
    let mut out = format!(
        "You can use tools. To call a tool, answer with nothing but the call, in this form:\n{form}\n{end} When you \
         know enough, answer in plain text.\n\nThe tools:\n"
    );
    for tool in tools {
        if let Some(function) = tool.get("function") {
            out.push_str(&function.to_string());
            out.push('\n');
        }
    }
    out
}

/// Calls as the instructions want them written: names and arguments.
pub fn written_calls(calls: &[(&str, &Map<String, Value>)], form: CallForm) -> String {
    match form {
        CallForm::Json => {
            let one = |(name, arguments): &(&str, &Map<String, Value>)| {
                format!("<tool_call>\n{}\n</tool_call>", json!({ "name": name, "arguments": arguments }))
            };
            calls.iter().map(one).collect::<Vec<_>>().join("\n")
        }
        CallForm::Pythonic => {
            let one = |(name, arguments): &(&str, &Map<String, Value>)| {
                let arguments: Vec<String> =
                    arguments.iter().map(|(key, value)| format!("{key}={}", written_value(value))).collect();
                format!("{name}({})", arguments.join(", "))
            };
            format!("[{}]", calls.iter().map(one).collect::<Vec<_>>().join(", "))
        }
    }
}

/// A value as Python writes it.
pub(crate) fn written_value(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => quoted(text),
        Value::Array(items) => {
            format!("[{}]", items.iter().map(written_value).collect::<Vec<_>>().join(", "))
        }
        Value::Object(fields) => {
            let one = |(key, value): (&String, &Value)| format!("{}: {}", quoted(key), written_value(value));
            format!("{{{}}}", fields.iter().map(one).collect::<Vec<_>>().join(", "))
        }
    }
}

fn quoted(text: &str) -> String {
    let mut out = String::from("'");
    for letter in text.chars() {
        match letter {
            '\'' => out.push_str("\\'"),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            letter if letter.is_control() => out.push_str(&format!("\\u{:04x}", u32::from(letter))),
            letter => out.push(letter),
        }
    }
    out.push('\'');
    out
}
