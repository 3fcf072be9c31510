//! Values that a schema lists, as far as the rest of the schema lets them be.
//!
//! Invariant: pure; a value that is written fits every keyword that is looked at here, the others are named.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::gbnf::one_of;
use super::number::Bounds;
use super::pythonic;
use super::schema::{Compiler, Impossible, declared_types};

/// Keywords that are about one type and are not looked at in a listed value.
const OF_TEXTS: &[&str] = &["pattern", "format"];
const OF_LISTS: &[&str] = &["items", "prefixItems", "additionalItems", "uniqueItems"];
const OF_OBJECTS: &[&str] = &["properties", "additionalProperties", "patternProperties", "propertyNames"];

impl Compiler<'_> {
    /// Values that are listed, as far as they fit.
    pub(super) fn literals(
        &mut self,
        schema: &Map<String, Value>,
        values: &[Value],
    ) -> Result<String, Impossible> {
        let types = declared_types(schema);
        let allowed = schema.get("enum").and_then(Value::as_array);
        let fits = |value: &&Value| {
            (types.is_empty() || types.iter().any(|kind| has_type(value, kind)))
                && allowed.is_none_or(|allowed| allowed.iter().any(|one| same(one, value)))
                && schema.get("const").is_none_or(|only| same(only, value))
                && within(value, schema)
        };
        let mut left: BTreeSet<&str> = BTreeSet::new();
        let mut entries = BTreeMap::new();
        for value in values.iter().filter(fits) {
            let about = match value {
                Value::String(_) => OF_TEXTS,
                Value::Array(_) => OF_LISTS,
                Value::Object(_) => OF_OBJECTS,
                Value::Null | Value::Bool(_) | Value::Number(_) => &[],
            };
            left.extend(about.iter().filter(|key| schema.contains_key(**key)));
            for way in self.ways(value) {
                entries.insert(way, String::new());
            }
        }
        left.into_iter().for_each(|key| self.leave_open(key));
        let choices = one_of(self.rules, &entries).ok_or(Impossible)?;
        Ok(self.rules.add(choices))
    }
}

impl Compiler<'_> {
    /// The ways to write a listed value.
    fn ways(&self, value: &Value) -> Vec<String> {
        match value {
            Value::Object(fields) if self.keywords => vec![pythonic::written_arguments(fields)],
            value if self.rules.is_pythonic() => pythonic::written(value),
            value => vec![value.to_string()],
        }
    }
}

/// Whether a value keeps the bounds of its type.
fn within(value: &Value, schema: &Map<String, Value>) -> bool {
    let number = |key: &str| schema.get(key).and_then(Value::as_f64);
    let counted = |count: usize, least: &str, most: &str| {
        let count = count as f64;
        number(least).is_none_or(|least| count >= least) && number(most).is_none_or(|most| count <= most)
    };
    match value {
        Value::Null | Value::Bool(_) => true,
        Value::Number(own) => {
            let own = own.as_f64().unwrap_or(f64::NAN);
            let whole = |step: f64| step > 0.0 && (own / step).fract() == 0.0;
            Bounds::of(schema).hold(own) && number("multipleOf").is_none_or(whole)
        }
        Value::String(text) => counted(text.chars().count(), "minLength", "maxLength"),
        Value::Array(items) => counted(items.len(), "minItems", "maxItems"),
        Value::Object(fields) => {
            let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
            let mut required = required.filter_map(Value::as_str);
            counted(fields.len(), "minProperties", "maxProperties")
                && required.all(|name| fields.contains_key(name))
        }
    }
}

/// Whether two values are the same to a schema: 1 is 1.0.
pub(super) fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one == other || one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(key, value)| other.get(key).is_some_and(|other| same(value, other)))
        }
        (one, other) => one == other,
    }
}

pub(super) fn has_type(value: &Value, kind: &str) -> bool {
    match value {
        Value::Null => kind == "null",
        Value::Bool(_) => kind == "boolean",
        Value::String(_) => kind == "string",
        Value::Array(_) => kind == "array",
        Value::Object(_) => kind == "object",
        Value::Number(number) => {
            let whole = number.as_f64().is_some_and(|number| number.fract() == 0.0);
            kind == "number" || (kind == "integer" && whole)
        }
    }
}
