//! Puts arguments together that a call is streamed with (`partialArgs`): values with the place where they belong.
//!
//! Invariant: a place that can't be read, or that lies too deep, is left out and told; the rest stays.

use serde_json::{Map, Value};

use super::wire::{PartialArg, Piece};

/// No list of arguments is longer; a place may name any number.
const LONGEST_LIST: usize = 10_000;
const DEEPEST: usize = 64;

#[derive(Debug, PartialEq)]
enum Step {
    Field(String),
    Item(usize),
}

/// Puts one piece at its place; false when that can't be done. A text at a place where a text stands already continues
/// it.
#[must_use]
pub(super) fn put(arguments: &mut Map<String, Value>, piece: &PartialArg) -> bool {
    let value = match piece.piece() {
        Piece::Value(value) => value,
        Piece::Mark => return true,
        Piece::Unknown => return false,
    };
    let Some(steps) = piece.json_path().and_then(steps) else { return false };
    let Some((Step::Field(first), rest)) = steps.split_first() else { return false };
    let mut at = arguments.entry(first.clone()).or_insert(Value::Null);
    for step in rest {
        at = match step {
            Step::Field(name) => {
                if !at.is_object() {
                    *at = Value::Object(Map::new());
                }
                let Value::Object(fields) = at else { return false };
                fields.entry(name.clone()).or_insert(Value::Null)
            }
            Step::Item(index) => {
                if !at.is_array() {
                    *at = Value::Array(Vec::new());
                }
                let Value::Array(items) = at else { return false };
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
    true
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
            [{"jsonPath": "$.city", "stringValue": "San", "willContinue": true}, true],
            [{"jsonPath": "$.city", "stringValue": " José"}, true],
            [{"jsonPath": "$.city", "willContinue": false}, true],
            [{"jsonPath": "$.days[1].high", "numberValue": 5.0}, true],
            [{"jsonPath": "$.days[0]['a b']", "boolValue": true}, true],
            [{"jsonPath": "$.none", "nullValue": "NULL_VALUE"}, true],
            [{"jsonPath": "$.null", "nullValue": null}, true],
            [{"jsonPath": "$.text", "numberValue": "-2.5", "stringValue": null}, true],
            [{"jsonPath": "$.nan", "numberValue": "NaN"}, false],
            [{"jsonPath": "$.struct", "structValue": {"a": 1}}, false],
            [{"jsonPath": "$.wrong", "stringValue": 5}, false],
            [{"jsonPath": "$.days[99999999999]", "numberValue": 1}, false],
            [{"jsonPath": "$..x", "numberValue": 1}, false],
            [{"jsonPath": "$", "numberValue": 1}, false],
            [{"numberValue": 1}, false],
        ]);
        let mut arguments = Map::new();
        for (piece, good) in serde_json::from_value::<Vec<(PartialArg, bool)>>(pieces).unwrap() {
            assert_eq!(put(&mut arguments, &piece), good, "{piece:?}");
        }
        let expected = json!({"city": "San José", "days": [{"a b": true}, {"high": 5}], "none": null, "null": null,
            "text": -2.5});
        assert_eq!(Value::Object(arguments), expected);
    }
}
