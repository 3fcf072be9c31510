//! Reads a JSON body field by field, so that an error names the field that is wrong.
//!
//! Invariant: null counts as absent, what is not asked for is an error, nothing is guessed.

use std::fmt::Display;
use std::ops::RangeInclusive;

use serde_json::{Map, Value};

use crate::error::ApiError;

/// The fields of an object that are still to be read.
#[derive(Debug)]
pub struct Fields {
    path: String,
    map: Map<String, Value>,
}

impl Fields {
    /// The object that stands at this place; the place of the body itself is empty.
    pub fn of(path: impl Into<String>, value: Value) -> Result<Self, ApiError> {
        let path = path.into();
        match value {
            Value::Object(map) => Ok(Self { path, map }),
            other => Err(wrong_type(path, "an object", &other)),
        }
    }

    /// Whether a field is there, and says anything.
    pub fn has(&self, name: &str) -> bool {
        self.map.get(name).is_some_and(|value| !value.is_null())
    }

    /// The full name of a field.
    pub fn at(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    /// Any value.
    pub fn value(&mut self, name: &str) -> Option<Value> {
        self.map.shift_remove(name).filter(|value| !value.is_null())
    }

    /// A text.
    pub fn string(&mut self, name: &str) -> Result<Option<String>, ApiError> {
        match self.value(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(wrong_type(self.at(name), "a string", &other)),
        }
    }

    /// A text that has to be there.
    pub fn required_string(&mut self, name: &str) -> Result<String, ApiError> {
        self.string(name)?.ok_or_else(|| missing(self.at(name)))
    }

    /// Yes or no.
    pub fn boolean(&mut self, name: &str) -> Result<Option<bool>, ApiError> {
        match self.value(name) {
            None => Ok(None),
            Some(Value::Bool(value)) => Ok(Some(value)),
            Some(other) => Err(wrong_type(self.at(name), "a boolean", &other)),
        }
    }

    /// A number of this range.
    pub fn number(&mut self, name: &str, range: RangeInclusive<f64>) -> Result<Option<f64>, ApiError> {
        let Some(value) = self.value(name) else { return Ok(None) };
        let number = value.as_f64().ok_or_else(|| wrong_type(self.at(name), "a number", &value))?;
        within(self.at(name), number, &range).map(Some)
    }

    /// A whole number of this range.
    pub fn integer(&mut self, name: &str, range: RangeInclusive<i64>) -> Result<Option<i64>, ApiError> {
        let Some(value) = self.value(name) else { return Ok(None) };
        let number = whole(&value).ok_or_else(|| wrong_type(self.at(name), "an integer", &value))?;
        match i64::try_from(number) {
            Ok(number) => within(self.at(name), number, &range).map(Some),
            Err(_) => Err(out_of_range(self.at(name), range.start(), range.end())),
        }
    }

    /// A list.
    pub fn list(&mut self, name: &str) -> Result<Option<Vec<Value>>, ApiError> {
        match self.value(name) {
            None => Ok(None),
            Some(Value::Array(items)) => Ok(Some(items)),
            Some(other) => Err(wrong_type(self.at(name), "an array", &other)),
        }
    }

    /// An object.
    pub fn object(&mut self, name: &str) -> Result<Option<Self>, ApiError> {
        let path = self.at(name);
        self.value(name).map(|value| Self::of(path, value)).transpose()
    }

    /// An object that has to be there.
    pub fn required_object(&mut self, name: &str) -> Result<Self, ApiError> {
        self.object(name)?.ok_or_else(|| missing(self.at(name)))
    }

    /// One of these words.
    pub fn word(&mut self, name: &str, words: &[&'static str]) -> Result<Option<&'static str>, ApiError> {
        let Some(text) = self.string(name)? else { return Ok(None) };
        match words.iter().find(|word| **word == text) {
            Some(word) => Ok(Some(word)),
            None => Err(not_one_of(self.at(name), &text, words)),
        }
    }

    /// Leaves out fields that mean nothing here, whatever they hold.
    pub fn ignore(&mut self, names: &[&str]) {
        for name in names {
            self.map.shift_remove(*name);
        }
    }

    /// Nothing may be left.
    pub fn end(self) -> Result<(), ApiError> {
        // Null is as good as absent for a field that we never heard of, too.
        match self.map.iter().find(|(_, value)| !value.is_null()) {
            None => Ok(()),
            Some((name, _)) => {
                let param = self.at(&shortened(name));
                Err(ApiError::invalid(
                    "unknown_parameter",
                    param.clone(),
                    format!("unknown parameter `{param}`"),
                ))
            }
        }
    }
}

/// A field is not there.
pub fn missing(param: String) -> ApiError {
    let message = format!("`{param}` is required");
    ApiError::invalid("missing_required_parameter", param, message)
}

/// A field is of another type.
pub fn wrong_type(param: String, wanted: &str, got: &Value) -> ApiError {
    let got = match got {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    };
    let named = if param.is_empty() { "the body".to_owned() } else { format!("`{param}`") };
    ApiError::invalid("invalid_type", param, format!("{named} has to be {wanted}, and is {got}"))
}

/// A word that means nothing here.
pub fn not_one_of(param: String, got: &str, words: &[&str]) -> ApiError {
    let message = format!("`{param}` has to be one of {}, and is `{}`", words.join(", "), shortened(got));
    ApiError::invalid("invalid_value", param, message)
}

/// What a client wrote, short enough for a message.
pub fn shortened(text: &str) -> String {
    const LONGEST: usize = 64;
    if text.chars().count() <= LONGEST {
        return text.to_owned();
    }
    text.chars().take(LONGEST).chain("…".chars()).collect()
}

fn within<T: PartialOrd + Display>(
    param: String,
    value: T,
    range: &RangeInclusive<T>,
) -> Result<T, ApiError> {
    if range.contains(&value) { Ok(value) } else { Err(out_of_range(param, range.start(), range.end())) }
}

fn out_of_range<T: Display>(param: String, from: &T, to: &T) -> ApiError {
    let message = format!("`{param}` has to be between {from} and {to}");
    ApiError::invalid("invalid_value", param, message)
}

/// JSON Schema (2020-12, section 6.1.1) counts `2.0` among the integers, and so do some clients.
fn whole(value: &Value) -> Option<i128> {
    if let Some(number) = value.as_i64() {
        return Some(number.into());
    }
    if let Some(number) = value.as_u64() {
        return Some(number.into());
    }
    let number = value.as_f64().filter(|number| number.fract() == 0.0 && number.abs() < 1e18)?;
    #[expect(clippy::cast_possible_truncation, reason = "it has no fraction and is in range")]
    Some(number as i128)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fields(value: Value) -> Fields {
        Fields::of("a[0]", value).unwrap()
    }

    #[test]
    fn an_error_names_the_field_in_full() {
        let error = fields(json!({"n": "1"})).integer("n", 1..=2).unwrap_err();
        assert_eq!((error.param.as_deref(), error.code), (Some("a[0].n"), "invalid_type"));
        let error = fields(json!({"n": 3})).integer("n", 1..=2).unwrap_err();
        assert_eq!((error.param.as_deref(), error.code), (Some("a[0].n"), "invalid_value"));
        let error = fields(json!({"x": 3})).end().unwrap_err();
        assert_eq!((error.param.as_deref(), error.code), (Some("a[0].x"), "unknown_parameter"));
    }

    #[test]
    fn null_is_absent_and_a_whole_float_is_an_integer() {
        let mut some = fields(json!({"a": null, "b": 2.0, "c": 1e300, "d": null}));
        assert_eq!(some.string("a"), Ok(None));
        assert_eq!(some.integer("b", 0..=9), Ok(Some(2)));
        assert!(some.integer("c", 0..=9).is_err());
        assert_eq!(some.end(), Ok(()));
    }
}
