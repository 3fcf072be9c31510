//! Puts arguments together that a call is streamed with (`partialArgs`): values with the place where they belong.
//!
//! Invariant: a place that can't be read, or that lies too deep, is left out; the rest stays.

use serde_json::{Map, Value};

use super::wire::PartialArg;

/// No list of arguments is longer; a place may name any number.
const LONGEST_LIST: usize = 10_000;
const DEEPEST: usize = 64;

#[derive(Debug, PartialEq)]
enum Step {
    Field(String),
    Item(usize),
}

/// Puts one piece at its place. A text at a place where a text stands already continues it.
pub(super) fn put(arguments: &mut Map<String, Value>, piece: &PartialArg) {
    let Some(value) = value_of(piece) else { return };
    let Some(steps) = piece.json_path.as_deref().and_then(steps) else { return };
    let Some((Step::Field(first), rest)) = steps.split_first() else { return };
    let mut at = arguments.entry(first.clone()).or_insert(Value::Null);
    for step in rest {
        at = match step {
            Step::Field(name) => {
                if !at.is_object() {
                    *at = Value::Object(Map::new());
                }
                let Value::Object(fields) = at else { return };
                fields.entry(name.clone()).or_insert(Value::Null)
            }
            Step::Item(index) => {
                if !at.is_array() {
                    *at = Value::Array(Vec::new());
                }
                let Value::Array(items) = at else { return };
                if items.len() <= *index {
                    items.resize(index + 1, Value::Null);
                }
                &mut items[*index]
            }
        };
    }
    match (at, value) {
        (Value::String(begun), Value::String(more)) => begun.push_str(&more),
        (at, value) => *at = value,
    }
}

fn value_of(piece: &PartialArg) -> Option<Value> {
    let text = piece.string_value.as_ref().map(|text| Value::String(text.clone()));
    let number = piece.number_value.as_ref().map(|number| Value::Number(whole(number)));
    let truth = piece.bool_value.map(Value::Bool);
    text.or(number).or(truth).or(piece.null_value.then_some(Value::Null))
}

/// A double that is a whole number: `5.0` is meant as 5.
fn whole(number: &serde_json::Number) -> serde_json::Number {
    match number.as_f64() {
        Some(double) if double.fract() == 0.0 && double.abs() < 9.0e15 => (double as i64).into(),
        _ => number.clone(),
    }
}

/// `$.a.b[0]['c d']` (RFC 9535, names and indices only).
fn steps(path: &str) -> Option<Vec<Step>> {
    let mut rest = path.strip_prefix('$').unwrap_or(path);
    let mut steps = Vec::new();
    if !rest.starts_with(['.', '[']) && !rest.is_empty() {
        rest = take_name(rest, &mut steps)?;
    }
    while !rest.is_empty() {
        rest = if let Some(name) = rest.strip_prefix('.') {
            take_name(name, &mut steps)?
        } else {
            take_bracket(rest.strip_prefix('[')?, &mut steps)?
        };
        if steps.len() > DEEPEST {
            return None;
        }
    }
    Some(steps)
}

fn take_name<'a>(rest: &'a str, steps: &mut Vec<Step>) -> Option<&'a str> {
    let end = rest.find(['.', '[']).unwrap_or(rest.len());
    let (name, rest) = rest.split_at(end);
    if name.is_empty() {
        return None;
    }
    steps.push(Step::Field(name.to_owned()));
    Some(rest)
}

fn take_bracket<'a>(rest: &'a str, steps: &mut Vec<Step>) -> Option<&'a str> {
    for quote in ['\'', '"'] {
        if let Some(quoted) = rest.strip_prefix(quote) {
            let mut name = String::new();
            let mut chars = quoted.char_indices();
            while let Some((at, c)) = chars.next() {
                match c {
                    '\\' => name.push(chars.next()?.1),
                    c if c == quote => {
                        steps.push(Step::Field(name));
                        return quoted[at + 1..].strip_prefix(']');
                    }
                    c => name.push(c),
                }
            }
            return None;
        }
    }
    let (index, rest) = rest.split_once(']')?;
    let index = index.trim().parse().ok().filter(|index| *index < LONGEST_LIST)?;
    steps.push(Step::Item(index));
    Some(rest)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pieces_come_together() {
        let pieces = json!([
            {"jsonPath": "$.city", "stringValue": "San", "willContinue": true},
            {"jsonPath": "$.city", "stringValue": " José"},
            {"jsonPath": "$.days[1].high", "numberValue": 5.0},
            {"jsonPath": "$.days[0]['a b']", "boolValue": true},
            {"jsonPath": "$.none", "nullValue": "NULL_VALUE"},
            {"jsonPath": "$.null", "nullValue": null},
            {"jsonPath": "$.days[99999999999]", "numberValue": 1},
            {"jsonPath": "$..x", "numberValue": 1},
            {"jsonPath": "$", "numberValue": 1},
            {"numberValue": 1},
        ]);
        let mut arguments = Map::new();
        for piece in serde_json::from_value::<Vec<PartialArg>>(pieces).unwrap() {
            put(&mut arguments, &piece);
        }
        let expected =
            json!({"city": "San José", "days": [{"a b": true}, {"high": 5}], "none": null, "null": null});
        assert_eq!(Value::Object(arguments), expected);
    }
}
