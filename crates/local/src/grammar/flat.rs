//! One schema out of several that hold at once: references and `allOf` resolved.

use serde_json::{Map, Value, json};

use super::listed::same;
use super::schema::{Compiler, Impossible};

/// How often a reference may lead to another at one place.
const LONGEST_CHAIN: usize = 32;

/// Keywords that say nothing about the value.
pub(super) fn is_note(key: &str) -> bool {
    const NOTES: [&str; 16] = [
        "id",
        "title",
        "description",
        "default",
        "examples",
        "example",
        "deprecated",
        "readOnly",
        "writeOnly",
        "$comment",
        "$schema",
        "$id",
        "$anchor",
        "$defs",
        "definitions",
        "markdownDescription",
    ];
    NOTES.contains(&key)
}

impl Compiler<'_> {
    /// The same without `$ref` and `allOf` at this place.
    pub(super) fn flat(&mut self, schema: &Map<String, Value>) -> Result<Map<String, Value>, Impossible> {
        self.flat_from(schema, 0)
    }

    fn flat_from(
        &mut self,
        schema: &Map<String, Value>,
        chain: usize,
    ) -> Result<Map<String, Value>, Impossible> {
        if chain > LONGEST_CHAIN || !self.rules.works(parts(schema.values())) {
            self.leave_open("more than can be followed");
            let rest = schema.iter().filter(|(key, _)| *key != "$ref" && *key != "allOf");
            return Ok(rest.map(|(key, value)| (key.clone(), value.clone())).collect());
        }
        let mut out = schema.clone();
        if let Some(Value::String(reference)) = out.remove("$ref") {
            match self.target(&reference) {
                Some(Value::Object(target)) => {
                    let target = self.flat_from(&target, chain + 1)?;
                    out = self.both(out, &target)?;
                }
                Some(Value::Bool(false)) => return Err(Impossible),
                Some(Value::Bool(true)) => {}
                Some(_) | None => self.leave_open(&format!("$ref {reference}")),
            }
        }
        if let Some(Value::Array(all)) = out.remove("allOf") {
            for one in all {
                match one {
                    Value::Object(one) => {
                        let one = self.flat_from(&one, chain + 1)?;
                        out = self.both(out, &one)?;
                    }
                    Value::Bool(false) => return Err(Impossible),
                    Value::Bool(true)
                    | Value::Null
                    | Value::Number(_)
                    | Value::String(_)
                    | Value::Array(_) => {}
                }
            }
        }
        Ok(out)
    }

    /// What a reference inside the document names. Nothing is fetched.
    fn target(&self, reference: &str) -> Option<Value> {
        let fragment = reference.strip_prefix('#')?;
        let decoded = percent_decoded(fragment);
        if decoded.is_empty() || decoded.starts_with('/') {
            return self.root.pointer(&decoded).cloned();
        }
        // Older drafts write an anchor as an id.
        let id = format!("#{decoded}");
        let named = |schema: &&Value| {
            schema["$anchor"] == decoded.as_str()
                || schema["$id"] == id.as_str()
                || schema["id"] == id.as_str()
        };
        let definitions = ["$defs", "definitions"].iter().filter_map(|key| self.root.get(key)?.as_object());
        definitions.flat_map(Map::values).find(named).cloned()
    }

    /// A schema that holds where both hold.
    pub(super) fn both(
        &mut self,
        mut first: Map<String, Value>,
        second: &Map<String, Value>,
    ) -> Result<Map<String, Value>, Impossible> {
        let mut second = second.clone();
        close(&first, &mut second);
        close(&second, &mut first);
        let apart = |one: &Map<String, Value>, other: &Map<String, Value>| {
            let first_items =
                one.contains_key("prefixItems") && one.get("prefixItems") != other.get("prefixItems");
            first_items && other.contains_key("items")
        };
        if apart(&first, &second) || apart(&second, &first) {
            self.leave_open("items");
        }
        for (key, theirs) in &second {
            let Some(ours) = first.get(key).cloned() else {
                first.insert(key.clone(), theirs.clone());
                continue;
            };
            if ours == *theirs || is_note(key) {
                continue;
            }
            let joined = self.joined(key, ours, theirs)?;
            first.insert(key.clone(), joined);
        }
        Ok(first)
    }

    fn joined(&mut self, key: &str, ours: Value, theirs: &Value) -> Result<Value, Impossible> {
        match (key, &ours, theirs) {
            ("properties" | "patternProperties", Value::Object(ours), Value::Object(theirs)) => {
                let mut out = ours.clone();
                for (name, schema) in theirs {
                    let joined = match out.get(name) {
                        Some(known) if known != schema => json!({ "allOf": [known, schema] }),
                        Some(_) | None => schema.clone(),
                    };
                    out.insert(name.clone(), joined);
                }
                Ok(Value::Object(out))
            }
            ("required", Value::Array(ours), Value::Array(theirs)) => {
                let mut out = ours.clone();
                out.extend(theirs.iter().filter(|name| !ours.contains(name)).cloned());
                Ok(Value::Array(out))
            }
            ("minimum" | "exclusiveMinimum" | "minLength" | "minItems" | "minProperties", _, _) => {
                Ok(if ours.as_f64() < theirs.as_f64() { theirs.clone() } else { ours })
            }
            ("maximum" | "exclusiveMaximum" | "maxLength" | "maxItems" | "maxProperties", _, _) => {
                Ok(if ours.as_f64() > theirs.as_f64() { theirs.clone() } else { ours })
            }
            ("enum", Value::Array(ours), Value::Array(theirs)) => Ok(ours
                .iter()
                .filter(|value| theirs.iter().any(|other| same(value, other)))
                .cloned()
                .collect()),
            ("const", _, _) if same(&ours, theirs) => Ok(ours),
            ("const", _, _) => Err(Impossible),
            ("type", _, _) => shared_types(&ours, theirs),
            ("items" | "additionalProperties" | "propertyNames", Value::Bool(false), _)
            | ("items" | "additionalProperties" | "propertyNames", _, Value::Bool(true)) => Ok(ours),
            ("items" | "additionalProperties" | "propertyNames", _, Value::Bool(false))
            | ("items" | "additionalProperties" | "propertyNames", Value::Bool(true), _) => {
                Ok(theirs.clone())
            }
            ("items" | "additionalProperties" | "propertyNames", _, _) => {
                Ok(json!({ "allOf": [ours, theirs] }))
            }
            ("anyOf" | "oneOf", Value::Array(ours), Value::Array(theirs)) => {
                let pairs = ours.iter().flat_map(|a| theirs.iter().map(move |b| json!({ "allOf": [a, b] })));
                Ok(pairs.take(64).collect())
            }
            _ => {
                self.leave_open(&format!("two of {key}"));
                Ok(ours)
            }
        }
    }
}

/// What one schema says of other properties than its own holds for those that another declares.
fn close(one: &Map<String, Value>, other: &mut Map<String, Value>) {
    let Some(rest) = one.get("additionalProperties").filter(|rest| **rest != Value::Bool(true)) else {
        return;
    };
    let own = one.get("properties").and_then(Value::as_object);
    let declared = other.get_mut("properties").and_then(Value::as_object_mut);
    for (name, schema) in declared.into_iter().flatten() {
        if !own.is_some_and(|own| own.contains_key(name)) {
            *schema =
                if *rest == Value::Bool(false) { rest.clone() } else { json!({ "allOf": [schema, rest] }) };
        }
    }
}

/// How many parts values have, as far as it is counted.
fn parts<'a>(values: impl Iterator<Item = &'a Value>) -> usize {
    values
        .map(|value| match value {
            Value::Array(items) => 1 + parts(items.iter()),
            Value::Object(fields) => 1 + parts(fields.values()),
            Value::String(text) => 1 + text.len() / 64,
            Value::Null | Value::Bool(_) | Value::Number(_) => 1,
        })
        .sum()
}

fn shared_types(ours: &Value, theirs: &Value) -> Result<Value, Impossible> {
    let list = |value: &Value| match value {
        Value::String(kind) => vec![kind.clone()],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    };
    let (ours, theirs) = (list(ours), list(theirs));
    let within = |kind: &String, others: &[String]| {
        others.contains(kind) || (kind == "integer" && others.iter().any(|other| other == "number"))
    };
    let mut shared: Vec<String> = ours.iter().filter(|kind| within(kind, &theirs)).cloned().collect();
    shared.extend(theirs.iter().filter(|kind| within(kind, &ours) && !ours.contains(kind)).cloned());
    shared.dedup();
    if shared.is_empty() { Err(Impossible) } else { Ok(json!(shared)) }
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let code = tail.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        match code.and_then(|hex| u8::from_str_radix(hex, 16).ok()).filter(|_| *first == b'%') {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
