//! Makes arguments for a tool from its schema.
//!
//! Invariant: pure and deterministic. What is made is checked against the schema; when nothing fits, the nearest guess
//! is given, and the server may say what is wrong with it.

use lectern_core::JsonObject;
use lectern_core::validate::validate;
use serde_json::{Map, Value, json};

/// A schema nested deeper is cut off.
const MOST_DEPTH: usize = 12;
/// Texts that are tried where a pattern or a format wants a certain one.
const TEXTS: [&str; 24] = [
    "example",
    "a",
    "A",
    "1",
    "42",
    "abc123",
    "ABC",
    "ab",
    "abc",
    "abcd",
    "x-y",
    "x_y",
    "x.y",
    "example.com",
    "someone@example.com",
    "https://example.com/",
    "2026-01-31",
    "12:30:00",
    "2026-01-31T12:30:00Z",
    "127.0.0.1",
    "::1",
    "123e4567-e89b-12d3-a456-426614174000",
    "#aabbcc",
    "/example",
];

/// Arguments that fit the schema, as far as that can be guessed: those that are required, or all of them when that
/// does not do.
pub(crate) fn arguments(schema: &Value) -> JsonObject {
    let maker = Maker { root: schema };
    let wishes = [Wish::Required, Wish::All];
    let tried = wishes.map(|wish| maker.value(schema, wish, 0));
    let fits = |value: &&Value| validate(schema, value).is_ok_and(|errors| errors.is_empty());
    let best = tried.iter().find(fits).unwrap_or(&tried[0]);
    match best {
        Value::Object(fields) => fields.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Map::new(),
    }
}

/// How much is put into an object.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wish {
    Required,
    All,
}

struct Maker<'a> {
    root: &'a Value,
}

impl Maker<'_> {
    fn value(&self, schema: &Value, wish: Wish, depth: usize) -> Value {
        let schema = &self.merged(schema, depth);
        for key in ["const", "default"] {
            if let Some(value) = schema.get(key) {
                return value.clone();
            }
        }
        let first =
            |key: &str| schema.get(key).and_then(Value::as_array).and_then(|all| all.first()).cloned();
        if let Some(value) = first("enum").or_else(|| first("examples")) {
            return value;
        }
        if depth > MOST_DEPTH {
            return Value::Null;
        }
        for key in ["oneOf", "anyOf"] {
            if let Some(options) = schema.get(key).and_then(Value::as_array) {
                return self.option(schema, key, options, wish, depth);
            }
        }
        match kind(schema) {
            "object" => self.object(schema, wish, depth),
            "array" => self.array(schema, wish, depth),
            "integer" => number(schema, true),
            "number" => number(schema, false),
            "boolean" => json!(true),
            "null" => Value::Null,
            _ => text(schema),
        }
    }

    /// The schema with its references followed and its parts put together.
    fn merged(&self, schema: &Value, depth: usize) -> Value {
        let mut whole = schema.clone();
        for _ in 0..MOST_DEPTH {
            let Some(place) = whole.get("$ref").and_then(Value::as_str) else { break };
            // What lies elsewhere is never fetched.
            let Some(target) = place.strip_prefix('#').and_then(|at| self.root.pointer(at)) else { break };
            let target = target.clone();
            join(&mut whole, &target);
            match (target.get("$ref"), &mut whole) {
                (Some(next), Value::Object(fields)) => _ = fields.insert("$ref".into(), next.clone()),
                (None, Value::Object(fields)) => _ = fields.remove("$ref"),
                (_, _) => break,
            }
        }
        let parts = whole.get("allOf").and_then(Value::as_array).cloned().unwrap_or_default();
        if depth <= MOST_DEPTH {
            parts.iter().for_each(|part| join(&mut whole, &self.merged(part, depth + 1)));
        }
        whole
    }

    /// The first of the options that fits together with what stands beside them.
    fn option(&self, schema: &Value, key: &str, options: &[Value], wish: Wish, depth: usize) -> Value {
        let mut beside = schema.clone();
        if let Value::Object(fields) = &mut beside {
            fields.remove(key);
        }
        let made = options.iter().map(|option| {
            let mut whole = beside.clone();
            join(&mut whole, &self.merged(option, depth + 1));
            self.value(&whole, wish, depth + 1)
        });
        let made: Vec<Value> = made.collect();
        let fits = |value: &&Value| self.fits(schema, value);
        made.iter().find(fits).or(made.first()).cloned().unwrap_or(Value::Null)
    }

    fn fits(&self, schema: &Value, value: &Value) -> bool {
        // References lead to the root's definitions.
        let mut schema = schema.clone();
        for key in ["$defs", "definitions"] {
            if let (Some(definitions), Value::Object(fields)) = (self.root.get(key), &mut schema) {
                fields.entry(key).or_insert_with(|| definitions.clone());
            }
        }
        validate(&schema, value).is_ok_and(|errors| errors.is_empty())
    }

    fn object(&self, schema: &Value, wish: Wish, depth: usize) -> Value {
        let mut made = Map::new();
        let required: Vec<&str> = schema
            .get("required")
            .and_then(Value::as_array)
            .map(|names| names.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default();
        let properties = schema.get("properties").and_then(Value::as_object);
        for (name, property) in properties.into_iter().flatten() {
            if wish == Wish::All || required.contains(&name.as_str()) {
                made.insert(name.clone(), self.value(property, wish, depth + 1));
            }
        }
        for name in required {
            made.entry(name).or_insert_with(|| json!("example"));
        }
        let least = schema.get("minProperties").and_then(Value::as_u64).unwrap_or(0);
        let filler = schema.get("additionalProperties").filter(|filler| filler.is_object());
        for number in 1..=least.min(100) {
            if (made.len() as u64) < least {
                let value = filler.map_or(json!("example"), |filler| self.value(filler, wish, depth + 1));
                made.insert(format!("key{number}"), value);
            }
        }
        Value::Object(made)
    }

    fn array(&self, schema: &Value, wish: Wish, depth: usize) -> Value {
        let least = schema.get("minItems").and_then(Value::as_u64);
        let wanted = least.unwrap_or(u64::from(wish == Wish::All || schema.get("contains").is_some()));
        let first = schema.get("prefixItems").and_then(Value::as_array).cloned().unwrap_or_default();
        let item = schema.get("items").or_else(|| schema.get("contains")).filter(|item| item.is_object());
        let item = item.cloned().unwrap_or_else(|| json!({"type": "string"}));
        let unique = schema.get("uniqueItems") == Some(&Value::Bool(true));
        let mut made: Vec<Value> = Vec::new();
        for position in 0..wanted.min(100) as usize {
            let mut value = self.value(first.get(position).unwrap_or(&item), wish, depth + 1);
            if unique && made.contains(&value) {
                value = another(&self.merged(&item, depth), &value, position);
            }
            made.push(value);
        }
        Value::Array(made)
    }
}

/// A value unlike the one before.
fn another(schema: &Value, value: &Value, position: usize) -> Value {
    if let Some(other) = schema.get("enum").and_then(Value::as_array).and_then(|all| all.get(position)) {
        return other.clone();
    }
    match value {
        Value::String(text) => json!(format!("{text}{position}")),
        Value::Number(number) => json!(number.as_i64().unwrap_or(0) + position as i64),
        other => other.clone(),
    }
}

/// Adds to a schema what another one says. Lists of names grow; of two values for one key the first stays.
fn join(into: &mut Value, other: &Value) {
    let (Value::Object(fields), Value::Object(more)) = (into, other) else { return };
    for (key, value) in more {
        match (key.as_str(), fields.get_mut(key), value) {
            ("properties", Some(Value::Object(known)), Value::Object(new)) => {
                new.iter().for_each(|(name, property)| {
                    known.entry(name).or_insert_with(|| property.clone());
                });
            }
            ("required", Some(Value::Array(known)), Value::Array(new)) => known.extend(new.iter().cloned()),
            (_, Some(_), _) => {}
            (_, None, value) => _ = fields.insert(key.clone(), value.clone()),
        }
    }
}

fn kind(schema: &Value) -> &str {
    match schema.get("type") {
        Some(Value::String(kind)) => kind,
        Some(Value::Array(kinds)) => {
            kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null").unwrap_or("null")
        }
        _ if schema.get("properties").is_some() || schema.get("required").is_some() => "object",
        _ if schema.get("items").is_some() || schema.get("prefixItems").is_some() => "array",
        _ if schema.get("minimum").is_some() || schema.get("maximum").is_some() => "number",
        _ => "string",
    }
}

#[expect(clippy::cast_possible_truncation, reason = "whole numbers in a schema's bounds are small")]
fn number(schema: &Value, whole: bool) -> Value {
    let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
    let step = bound("multipleOf").filter(|step| *step > 0.0);
    let nudge = if whole { 1.0 } else { 0.5 };
    let low = bound("minimum").or_else(|| bound("exclusiveMinimum").map(|low| low + nudge));
    let high = bound("maximum").or_else(|| bound("exclusiveMaximum").map(|high| high - nudge));
    let mut value = 1.0_f64;
    value = low.map_or(value, |low| value.max(low));
    value = high.map_or(value, |high| value.min(high));
    if let (Some(low), Some(high)) = (low, high)
        && low > high
    {
        value = f64::midpoint(low, high);
    }
    if let Some(step) = step {
        value = (value / step).ceil() * step;
    }
    if whole || value.fract() == 0.0 { json!(value.ceil() as i64) } else { json!(value) }
}

fn text(schema: &Value) -> Value {
    let length = |key: &str| schema.get(key).and_then(Value::as_u64).map(|length| length as usize);
    let (least, most) = (length("minLength").unwrap_or(0), length("maxLength").unwrap_or(usize::MAX));
    let fitted = |text: &str| {
        let mut text: String = text.chars().take(most).collect();
        let missing = least.saturating_sub(text.chars().count()).min(100_000);
        text.extend(std::iter::repeat_n('a', missing));
        text
    };
    let by_format = match schema.get("format").and_then(Value::as_str) {
        Some("date-time") => Some("2026-01-31T12:30:00Z"),
        Some("date") => Some("2026-01-31"),
        Some("time") => Some("12:30:00Z"),
        Some("duration") => Some("PT1H"),
        Some("email" | "idn-email") => Some("someone@example.com"),
        Some("uri" | "url" | "iri" | "uri-reference") => Some("https://example.com/"),
        Some("uuid") => Some("123e4567-e89b-12d3-a456-426614174000"),
        Some("ipv4") => Some("127.0.0.1"),
        Some("ipv6") => Some("::1"),
        Some("hostname") => Some("example.com"),
        Some("regex") => Some("a*"),
        Some(_) | None => None,
    };
    let fits = |text: &String| validate(schema, &json!(text)).is_ok_and(|errors| errors.is_empty());
    let candidates = by_format.into_iter().chain(TEXTS).map(fitted);
    json!(candidates.clone().find(fits).or_else(|| candidates.clone().next()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn made(schema: Value) -> Value {
        let made = Value::Object(arguments(&schema));
        let errors = validate(&schema, &made).unwrap();
        assert!(errors.is_empty(), "{schema}\n{made}\n{errors:?}");
        made
    }

    #[test]
    fn what_is_made_fits_the_schema() {
        let property = |property: Value| {
            made(json!({"type": "object", "properties": {"x": property}, "required": ["x"]}))["x"].clone()
        };
        assert_eq!(property(json!({"type": "integer", "minimum": 3, "maximum": 9})), json!(3));
        assert_eq!(property(json!({"type": "integer", "exclusiveMinimum": 3, "multipleOf": 5})), json!(5));
        assert_eq!(
            property(json!({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1})),
            json!(0.5)
        );
        assert_eq!(property(json!({"type": "string", "enum": ["b", "a"]})), json!("b"));
        assert_eq!(property(json!({"const": {"a": 1}})), json!({"a": 1}));
        assert_eq!(property(json!({"type": ["null", "boolean"]})), json!(true));
        property(json!({"type": "string", "minLength": 40}));
        property(json!({"type": "string", "maxLength": 2}));
        property(json!({"type": "string", "pattern": "^[A-Z]+$"}));
        property(json!({"type": "string", "pattern": "^\\d{4}-\\d{2}-\\d{2}$"}));
        property(
            json!({"type": "array", "items": {"enum": ["a", "b", "c"]}, "minItems": 2, "uniqueItems": true}),
        );
        property(
            json!({"type": "array", "prefixItems": [{"type": "integer"}, {"type": "boolean"}], "minItems": 2}),
        );
        property(json!({"type": "object", "minProperties": 2, "additionalProperties": {"type": "integer"}}));
        property(
            json!({"oneOf": [{"type": "object", "properties": {"k": {"const": "a"}}, "required": ["k"]}]}),
        );
        property(json!({"anyOf": [{"type": "string", "minLength": 3}, {"type": "null"}]}));
    }

    #[test]
    fn parts_and_references_are_put_together() {
        made(json!({
            "type": "object",
            "$defs": {"id": {"type": "string", "pattern": "^[a-z]+$"}, "node": {"$ref": "#/$defs/inner"},
                "inner": {"type": "object", "properties": {"id": {"$ref": "#/$defs/id"}}, "required": ["id"]}},
            "allOf": [{"properties": {"a": {"$ref": "#/$defs/node"}}, "required": ["a"]}],
            "properties": {"b": {"type": "integer"}}, "required": ["b"],
        }));
        made(json!({"type": "object", "properties": {"n": {"type": "integer"}, "s": {"type": "string"}},
            "anyOf": [{"required": ["n"]}, {"required": ["s"]}]}));
    }

    #[test]
    fn what_has_no_end_is_cut() {
        let tree = json!({"type": "object", "properties": {"next": {"$ref": "#"}}, "required": ["next"]});
        assert!(arguments(&tree).contains_key("next"));
        assert!(arguments(&json!({"$ref": "http://127.0.0.1:1/x"})).is_empty());
        assert!(arguments(&json!(true)).is_empty());
    }
}
