//! Checks what was set, before it is kept and again when it is read: a file can be written by hand.
//!
//! Invariant: pure. An error names the setting, what was given and what it may be.

use lectern_core::validate;
use serde_json::{Map, Value, json};

use crate::view::{Problem, SettingKey, SettingKind};

/// Bytes of one text of several.
const LONGEST_OF_SEVERAL: usize = 256;

/// The value as it is kept.
pub fn value(
    key: SettingKey,
    value: &Value,
    trained: Option<u32>,
    presets: &[String],
) -> Result<Value, Problem> {
    match key.kind(trained, presets) {
        SettingKind::Number { min, max, whole, .. } => number(key, value, min, max, whole),
        SettingKind::Flag => value.as_bool().map(Value::Bool).ok_or_else(|| bad(key, value, "true or false")),
        SettingKind::Choice { choices } => choice(key, value, &choices),
        SettingKind::Text { max_bytes } => text(key, value, max_bytes),
        SettingKind::Texts { max } => texts(key, value, max),
        SettingKind::Object => schema(key, value),
    }
}

/// All changes at once, null where something is to be unset; the first mistake is told.
pub fn changes(
    changes: &Map<String, Value>,
    trained: Option<u32>,
    presets: &[String],
) -> Result<Vec<(SettingKey, Option<Value>)>, Problem> {
    let one = |(name, given): (&String, &Value)| {
        let key = SettingKey::named(name).ok_or_else(|| unknown(name))?;
        match given {
            Value::Null => Ok((key, None)),
            given => Ok((key, Some(value(key, given, trained, presets)?))),
        }
    };
    let checked: Vec<(SettingKey, Option<Value>)> =
        changes.iter().map(one).collect::<Result<_, Problem>>()?;
    let sets = |wanted| checked.iter().any(|(key, value)| *key == wanted && value.is_some());
    if sets(SettingKey::JsonSchema) && sets(SettingKey::Grammar) {
        return Err(Problem::new("bad_setting", "`json_schema` and `grammar` can't both bind the answer")
            .hint("Set one of them."));
    }
    Ok(checked)
}

/// A value that was typed, e.g. after `key=`.
pub fn typed(key: SettingKey, text: &str) -> Value {
    match key.kind(None, &[]) {
        SettingKind::Number { .. } | SettingKind::Flag | SettingKind::Object => {
            serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
        }
        SettingKind::Texts { .. } => match serde_json::from_str(text) {
            Ok(Value::Array(texts)) => Value::Array(texts),
            Ok(_) | Err(_) => json!([text]),
        },
        SettingKind::Choice { .. } | SettingKind::Text { .. } => Value::String(text.to_owned()),
    }
}

/// There is no such setting.
pub fn unknown(name: &str) -> Problem {
    let names: Vec<String> = SettingKey::ALL.into_iter().map(SettingKey::name).collect();
    Problem::new("unknown_setting", format!("there is no setting `{name}`"))
        .hint(format!("There are: {}.", names.join(", ")))
}

fn number(key: SettingKey, value: &Value, min: f64, max: f64, whole: bool) -> Result<Value, Problem> {
    let range = || {
        let what = if whole { "a whole number" } else { "a number" };
        format!("{what} from {min} to {max}")
    };
    let number = value.as_f64().filter(|number| (min..=max).contains(number));
    let number = number.ok_or_else(|| bad(key, value, &range()))?;
    if !whole {
        return Ok(json!(number));
    }
    let rounded = format!("{number:.0}").parse::<u64>().ok().filter(|_| number.fract() == 0.0);
    rounded.map(Value::from).ok_or_else(|| bad(key, value, &range()))
}

fn choice(key: SettingKey, value: &Value, choices: &[String]) -> Result<Value, Problem> {
    let text = value
        .as_str()
        .map(|text| if key == SettingKey::Preset { text.to_owned() } else { text.replace('-', "_") });
    let known = text.filter(|text| choices.contains(text));
    known.map(Value::String).ok_or_else(|| {
        let names = if choices.is_empty() { "nothing yet".to_owned() } else { choices.join(", ") };
        bad(key, value, &format!("one of: {names}"))
    })
}

fn text(key: SettingKey, value: &Value, max_bytes: u32) -> Result<Value, Problem> {
    let fits =
        |text: &&str| !text.trim().is_empty() && text.len() <= max_bytes as usize && !text.contains('\0');
    let text = value.as_str().filter(fits);
    let text = text.ok_or_else(|| bad(key, value, &format!("a text of at most {max_bytes} bytes")))?;
    if key == SettingKey::Grammar && !text.contains("::=") {
        return Err(bad(key, value, "a grammar in GBNF, e.g. root ::= \"yes\" | \"no\""));
    }
    if key == SettingKey::Template && !is_template(text) {
        return Err(bad(key, value, "the text of a chat template (Jinja), which has {{ or {% in it")
            .hint("On the command line a file is named as template=@FILE; its text is kept."));
    }
    Ok(Value::String(text.to_owned()))
}

/// Whether a text can be a chat template at all: one without any of these says the same whatever the user asks.
pub fn is_template(text: &str) -> bool {
    text.contains("{{") || text.contains("{%")
}

fn texts(key: SettingKey, value: &Value, max: u32) -> Result<Value, Problem> {
    let fits = |one: &Value| {
        one.as_str()
            .is_some_and(|text| !text.is_empty() && text.len() <= LONGEST_OF_SEVERAL && !text.contains('\0'))
    };
    let list = value.as_array().filter(|list| list.len() <= max as usize && list.iter().all(fits));
    list.cloned().map(Value::Array).ok_or_else(|| {
        bad(key, value, &format!("a list of at most {max} texts of 1 to {LONGEST_OF_SEVERAL} bytes"))
    })
}

fn schema(key: SettingKey, value: &Value) -> Result<Value, Problem> {
    if !value.is_object() {
        return Err(bad(key, value, "a JSON Schema, which is an object"));
    }
    match validate::validate(value, &json!({})) {
        Ok(_) => Ok(value.clone()),
        Err(fault) => Err(bad(key, value, &format!("a JSON Schema that can be read ({fault})"))),
    }
}

/// What was given is none of what the setting may be.
fn bad(key: SettingKey, given: &Value, wanted: &str) -> Problem {
    let given: String = given.to_string().chars().take(80).collect();
    Problem::new("bad_setting", format!("`{}` can't be {given}: it is {wanted}", key.name()))
}
