//! The forms of MCP elicitation: flat objects of texts, numbers, switches and choices (MCP 2025-11-25, Elicitation,
//! "Requested Schema").
//!
//! Invariant: pure. What a form can't express is refused when it is read, never guessed; an answer fits or is refused.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use ts_rs::TS;

use crate::message::JsonObject;
use crate::validate::{ValidationError, validate_with_formats};

/// Fields of one form at most.
const MOST_FIELDS: usize = 100;

/// Choices of one field at most.
const MOST_CHOICES: usize = 1_000;

/// One field of a form.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "core/form.ts")]
pub struct FormField {
    /// Its key in the answer.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// What it means.
    pub description: Option<String>,
    /// Whether an answer must have it.
    pub required: bool,
    /// What may stand in it.
    pub kind: FieldKind,
    /// What stands in it until the user changes it; fits the field.
    #[ts(type = "unknown | null")]
    pub default: Option<Value>,
}

/// What may stand in a field.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "type", rename_all = "snake_case")]
#[ts(export, export_to = "core/form.ts")]
pub enum FieldKind {
    /// A text.
    Text {
        /// `email`, `uri`, `date`, `date-time`, or another one that is not checked.
        format: Option<String>,
        /// Characters at least.
        min_length: Option<u32>,
        /// Characters at most.
        max_length: Option<u32>,
        /// A regular expression that it matches.
        pattern: Option<String>,
    },
    /// A number.
    Number {
        /// Whether it is whole.
        integer: bool,
        /// At least.
        minimum: Option<f64>,
        /// At most.
        maximum: Option<f64>,
    },
    /// Yes or no.
    Toggle,
    /// One of these.
    Choice {
        /// In the server's order.
        options: Vec<FormChoice>,
    },
    /// Some of these.
    Choices {
        /// In the server's order.
        options: Vec<FormChoice>,
        /// So many at least.
        min_items: Option<u32>,
        /// So many at most.
        max_items: Option<u32>,
    },
}

/// One choice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "core/form.ts")]
pub struct FormChoice {
    /// What is answered.
    pub value: String,
    /// What is shown; the value itself when the server gives no other.
    pub title: String,
}

/// A schema that is no form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FormFault(pub String);

/// Reads the fields of a form, in the server's order.
pub fn read(schema: &Value) -> Result<Vec<FormField>, FormFault> {
    let fault = |text: &str| Err(FormFault(text.to_owned()));
    if schema.get("type").is_some_and(|kind| kind != "object") {
        return fault("the requested schema is not of type object");
    }
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return fault("the requested schema has no properties");
    };
    if properties.len() > MOST_FIELDS {
        return fault("the requested schema has too many properties");
    }
    let required: Vec<&str> = texts(schema.get("required"));
    properties.iter().map(|(name, value)| field(name, value, required.contains(&name.as_str()))).collect()
}

/// What stands in the form before the user changes anything.
pub fn defaults(fields: &[FormField]) -> JsonObject {
    let set = fields.iter().filter_map(|field| Some((field.name.clone(), field.default.clone()?)));
    set.collect()
}

/// The required fields that no default fills.
pub fn without_default(fields: &[FormField]) -> impl Iterator<Item = &FormField> {
    fields.iter().filter(|field| field.required && field.default.is_none())
}

/// The answer without what the form did not ask for: nothing else is ever sent to a server.
pub fn only_asked(fields: &[FormField], mut answer: JsonObject) -> JsonObject {
    answer.retain(|name, _| fields.iter().any(|field| field.name == *name));
    answer
}

/// What is wrong with an answer; empty when it fits.
pub fn faults(fields: &[FormField], answer: &JsonObject) -> Vec<ValidationError> {
    let missing = fields.iter().filter(|field| field.required && !answer.contains_key(&field.name));
    let missing = missing.map(|field| ValidationError {
        path: format!("/{}", field.name),
        expected: "an answer".to_owned(),
        got: "none".to_owned(),
    });
    let wrong = fields.iter().filter_map(|field| Some((field, answer.get(&field.name)?)));
    let wrong = wrong.flat_map(|(field, value)| field.faults(value));
    missing.chain(wrong).collect()
}

impl FormField {
    /// What is wrong with a value of this field; empty when it fits.
    pub fn faults(&self, value: &Value) -> Vec<ValidationError> {
        // A pattern that can't be read checks nothing: the server will say what it wants.
        let found = validate_with_formats(&self.kind.schema(), value).unwrap_or_default();
        let at = |fault: ValidationError| ValidationError { path: format!("/{}", self.name), ..fault };
        found.into_iter().map(at).collect()
    }

    /// Its name for people.
    pub fn label(&self) -> &str {
        self.title.as_deref().unwrap_or(&self.name)
    }
}

impl FieldKind {
    fn schema(&self) -> Value {
        let values = |options: &[FormChoice]| -> Vec<Value> {
            options.iter().map(|option| option.value.clone().into()).collect()
        };
        let mut schema = match self {
            Self::Text { format, min_length, max_length, pattern } => json!({
                "type": "string", "format": format, "minLength": min_length, "maxLength": max_length,
                "pattern": pattern
            }),
            Self::Number { integer, minimum, maximum } => json!({
                "type": if *integer { "integer" } else { "number" }, "minimum": minimum, "maximum": maximum
            }),
            Self::Toggle => json!({"type": "boolean"}),
            Self::Choice { options } => json!({"type": "string", "enum": values(options)}),
            Self::Choices { options, min_items, max_items } => json!({
                "type": "array", "items": {"type": "string", "enum": values(options)},
                "uniqueItems": true, "minItems": min_items, "maxItems": max_items
            }),
        };
        if let Value::Object(entries) = &mut schema {
            entries.retain(|_, entry| !entry.is_null());
        }
        schema
    }
}

fn field(name: &str, value: &Value, required: bool) -> Result<FormField, FormFault> {
    let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    let mut field = FormField {
        name: name.to_owned(),
        title: text("title").filter(|title| !title.is_empty()),
        description: text("description"),
        required,
        kind: kind(name, value)?,
        default: None,
    };
    // A default that does not fit its own field is none.
    field.default = value.get("default").filter(|value| field.faults(value).is_empty()).cloned();
    Ok(field)
}

fn kind(name: &str, value: &Value) -> Result<FieldKind, FormFault> {
    let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    let count = |key: &str| value.get(key).and_then(Value::as_u64).and_then(|n| u32::try_from(n).ok());
    let number = |key: &str| value.get(key).and_then(Value::as_f64);
    if let Some(options) = choices(name, value)? {
        return Ok(FieldKind::Choice { options });
    }
    match value.get("type").and_then(Value::as_str) {
        Some("string") => Ok(FieldKind::Text {
            format: text("format"),
            min_length: count("minLength"),
            max_length: count("maxLength"),
            pattern: text("pattern"),
        }),
        Some(kind @ ("number" | "integer")) => Ok(FieldKind::Number {
            integer: kind == "integer",
            minimum: number("minimum"),
            maximum: number("maximum"),
        }),
        Some("boolean") => Ok(FieldKind::Toggle),
        Some("array") => {
            let of = value.get("items").map(|items| choices(name, items)).transpose()?.flatten();
            let none =
                || FormFault(format!("the property `{name}` is a list of something else than choices"));
            let options = of.ok_or_else(none)?;
            Ok(FieldKind::Choices { options, min_items: count("minItems"), max_items: count("maxItems") })
        }
        Some(other) => Err(FormFault(format!("the property `{name}` is of type {other}, which no form has"))),
        None => Err(FormFault(format!("the property `{name}` has no type"))),
    }
}

/// The choices of a property, when it has some: `oneOf` or `anyOf` with titles, `enum` with or without `enumNames`.
fn choices(name: &str, value: &Value) -> Result<Option<Vec<FormChoice>>, FormFault> {
    let titled = value.get("oneOf").or_else(|| value.get("anyOf")).and_then(Value::as_array);
    let options = if let Some(titled) = titled {
        titled.iter().map(titled_choice).collect()
    } else if let Some(values) = value.get("enum").and_then(Value::as_array) {
        let names = texts(value.get("enumNames"));
        let choice = |(at, value): (usize, &Value)| {
            let value = value.as_str()?.to_owned();
            let title = names.get(at).map_or_else(|| value.clone(), |name| (*name).to_owned());
            Some(FormChoice { value, title })
        };
        values.iter().enumerate().map(choice).collect::<Option<Vec<_>>>()
    } else {
        return Ok(None);
    };
    match options {
        Some(options) if !options.is_empty() && options.len() <= MOST_CHOICES => Ok(Some(options)),
        Some(_) | None => Err(FormFault(format!("the choices of the property `{name}` are not texts"))),
    }
}

fn titled_choice(option: &Value) -> Option<FormChoice> {
    let value = option.get("const")?.as_str()?.to_owned();
    let title = option.get("title").and_then(Value::as_str).map_or_else(|| value.clone(), str::to_owned);
    Some(FormChoice { value, title })
}

fn texts(value: Option<&Value>) -> Vec<&str> {
    value.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema() -> Value {
        json!({"type": "object", "required": ["name", "colour"], "properties": {
            "name": {"type": "string", "title": "Your name", "minLength": 2, "maxLength": 5},
            "mail": {"type": "string", "format": "email", "default": "me@example.org"},
            "age": {"type": "integer", "minimum": 0, "maximum": 150, "default": 30},
            "share": {"type": "number", "default": "much"},
            "sure": {"type": "boolean", "default": true},
            "colour": {"type": "string", "oneOf": [{"const": "r", "title": "Red"}, {"const": "b", "title": "Blue"}]},
            "size": {"type": "string", "enum": ["s", "l"], "enumNames": ["Small", "Large"], "default": "l"},
            "days": {"type": "array", "minItems": 1, "items": {"type": "string", "enum": ["mon", "tue"]}, "default": ["tue"]},
            "tags": {"type": "array", "maxItems": 1, "items": {"anyOf": [{"const": "x", "title": "X!"}, {"const": "y", "title": "Y!"}]}}
        }})
    }

    #[test]
    fn every_kind_of_field_is_read() {
        let fields = read(&schema()).unwrap();
        let names: Vec<(&str, bool)> = fields.iter().map(|f| (f.label(), f.required)).collect();
        assert_eq!(names[..3], [("Your name", true), ("mail", false), ("age", false)]);
        let choice = |value: &str, title: &str| FormChoice { value: value.into(), title: title.into() };
        assert_eq!(
            fields[5].kind,
            FieldKind::Choice { options: vec![choice("r", "Red"), choice("b", "Blue")] }
        );
        assert_eq!(
            fields[6].kind,
            FieldKind::Choice { options: vec![choice("s", "Small"), choice("l", "Large")] }
        );
        assert!(
            matches!(&fields[8].kind, FieldKind::Choices { options, max_items: Some(1), .. } if options.len() == 2)
        );
        assert_eq!(
            Value::Object(defaults(&fields)),
            json!({"mail": "me@example.org", "age": 30, "sure": true, "size": "l", "days": ["tue"]}),
            "a default that does not fit is none"
        );
        assert_eq!(without_default(&fields).map(|f| f.name.as_str()).collect::<Vec<_>>(), ["name", "colour"]);
    }

    fn wrong(answer: Value) -> Vec<String> {
        let Value::Object(answer) = answer else { panic!("no object") };
        faults(&read(&schema()).unwrap(), &answer).into_iter().map(|fault| fault.path).collect()
    }

    #[test]
    fn an_answer_that_does_not_fit_is_refused_by_field() {
        assert_eq!(
            wrong(json!({"name": "Ada", "colour": "r", "days": ["mon", "tue"]})),
            Vec::<String>::new()
        );
        assert_eq!(wrong(json!({})), ["/name", "/colour"]);
        let bad = json!({"name": "x", "colour": "Red", "mail": "no mail", "age": 1.5, "sure": "yes", "days": [],
                         "tags": ["x", "y"]});
        assert_eq!(wrong(bad), ["/name", "/mail", "/age", "/sure", "/colour", "/days", "/tags"]);
    }

    #[test]
    fn only_what_was_asked_is_answered() {
        let fields = read(&schema()).unwrap();
        let Value::Object(answer) = json!({"name": "Ada", "password": "x"}) else { panic!("no object") };
        assert_eq!(Value::Object(only_asked(&fields, answer)), json!({"name": "Ada"}));
    }

    #[test]
    fn what_no_form_has_is_refused() {
        for (bad, word) in [
            (json!({"type": "array"}), "object"),
            (json!({"type": "object"}), "properties"),
            (json!({"properties": {"a": {"type": "object"}}}), "`a`"),
            (json!({"properties": {"a": {"type": "array", "items": {"type": "string"}}}}), "`a`"),
            (json!({"properties": {"a": {"enum": [1, 2]}}}), "`a`"),
            (json!({"properties": {"a": true}}), "`a`"),
        ] {
            assert!(read(&bad).unwrap_err().to_string().contains(word), "{bad}");
        }
    }
}
