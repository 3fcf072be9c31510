//! Choices among schemas (`anyOf`, `oneOf`), each together with what stands beside them.

use serde_json::{Map, Value, json};

use super::listed::{has_type, same};
use super::schema::{Compiler, Impossible, declared_types};

/// More choices than this are followed at once by no sampler.
const MOST_CHOICES: usize = 200;

impl Compiler<'_> {
    /// Each choice together with what stands beside the choices.
    pub(super) fn choice(
        &mut self,
        schema: &Map<String, Value>,
        key: &str,
        choices: &[Value],
    ) -> Result<String, Impossible> {
        let mut beside = schema.clone();
        beside.remove(key);
        let alone = beside.keys().all(|key| super::flat::is_note(key));
        let only_typed = beside.keys().all(|key| key == "type" || super::flat::is_note(key));
        if let Some(values) = listed(choices).filter(|_| only_typed) {
            if key == "oneOf" && has_twice(&values) {
                self.leave_open("oneOf");
            }
            return self.literals(&beside, &values);
        }
        if choices.len() > MOST_CHOICES {
            self.leave_open(key);
            return self.flat_value(&beside);
        }
        if key == "oneOf" && !apart(choices) {
            self.leave_open("oneOf");
        }
        let mut out = Vec::new();
        for choice in choices {
            let compiled = if alone { self.value(choice) } else { self.beside(&beside, choice) };
            out.extend(compiled.into_iter().filter(|rule| !out.contains(rule)).collect::<Vec<_>>());
        }
        match out.as_slice() {
            [] => Err(Impossible),
            [one] => Ok(one.clone()),
            several => Ok(self.rules.add(several.join(" | "))),
        }
    }

    fn beside(&mut self, beside: &Map<String, Value>, choice: &Value) -> Result<String, Impossible> {
        let mut both = beside.clone();
        both.insert("allOf".to_owned(), json!([choice]));
        self.value(&Value::Object(both))
    }
}

/// The values, where each choice is nothing but a list of them.
fn listed(choices: &[Value]) -> Option<Vec<Value>> {
    let of = |choice: &Value| {
        let fields = choice.as_object()?;
        let told = |key: &&String| !super::flat::is_note(key) && *key != "type";
        let [key] = fields.keys().filter(told).collect::<Vec<_>>()[..] else { return None };
        let values = match (key.as_str(), &fields[key]) {
            ("const", value) => vec![value.clone()],
            ("enum", Value::Array(values)) => values.clone(),
            _ => return None,
        };
        let types = declared_types(fields);
        let fits = |value: &Value| types.is_empty() || types.iter().any(|kind| has_type(value, kind));
        Some(values.into_iter().filter(fits).collect::<Vec<_>>())
    };
    choices.iter().map(of).collect::<Option<Vec<_>>>().map(|all| all.concat())
}

fn has_twice(values: &[Value]) -> bool {
    values.iter().enumerate().any(|(place, value)| values[..place].iter().any(|other| same(value, other)))
}

/// Whether no value can fit two of the choices: their types differ, or a required property has other values.
fn apart(choices: &[Value]) -> bool {
    let types: Vec<Vec<&str>> =
        choices.iter().map(|choice| choice.as_object().map(declared_types).unwrap_or_default()).collect();
    let overlap = |a: &str, b: &str| a == b || (a.max(b) == "number" && a.min(b) == "integer");
    let differ = |a: &[&str], b: &[&str]| {
        !a.is_empty() && !b.is_empty() && !a.iter().any(|a| b.iter().any(|b| overlap(a, b)))
    };
    let told = |a: &Value, b: &Value| {
        let (Some(a), Some(b)) = (a["properties"].as_object(), b["properties"].as_object()) else {
            return false;
        };
        a.iter().any(|(key, value)| {
            let values = |schema: &Value| match (&schema["const"], &schema["enum"]) {
                (Value::Null, Value::Array(all)) => all.clone(),
                (Value::Null, _) => Vec::new(),
                (one, _) => vec![one.clone()],
            };
            let (mine, theirs) = (values(value), b.get(key).map(values).unwrap_or_default());
            !mine.is_empty() && !theirs.is_empty() && !mine.iter().any(|value| theirs.contains(value))
        })
    };
    (0..choices.len()).all(|a| {
        (a + 1..choices.len()).all(|b| {
            differ(&types[a], &types[b]) || told(&choices[a], &choices[b]) || {
                let values = |choice: &Value| choice.get("const").map(Value::to_string);
                matches!((values(&choices[a]), values(&choices[b])), (Some(a), Some(b)) if a != b)
            }
        })
    })
}
