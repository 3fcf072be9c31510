//! Brings a JSON Schema to the subset that `FunctionDeclaration.parameters` knows (an OpenAPI 3.0 schema), and tells what
//! was lost.
//!
//! Invariant: pure. What comes out has only keywords of the subset and never more than `MOST_NODES` schemas; a value that
//! fits the schema also fits what comes out of it, so nothing that is right becomes impossible. The turn checks the
//! arguments against the whole schema in any case.

mod combined;
mod values;
mod words;

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use self::words::{SILENT, belongs, is_format, is_of_value, keep, type_name, unescaped};

const MOST_NODES: usize = 4_000;
const DEEPEST: usize = 32;
/// A reference to itself is opened this often.
const REPEATS: usize = 2;

/// A schema that can't be brought to the subset at all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Impossible {
    /// Arguments are an object.
    #[error("its arguments are no object")]
    NoObject,
    /// It is larger than any provider takes.
    #[error("it is too large or nested too deeply")]
    TooLarge,
}

/// A schema of the subset.
#[derive(Clone, Debug, PartialEq)]
pub struct Reduced {
    /// None for a tool without arguments.
    pub schema: Option<Value>,
    /// The keywords that were lost, each once, in order.
    pub lost: Vec<String>,
}

/// Brings the schema of a tool's arguments to the subset.
pub fn reduce(schema: &Value) -> Result<Reduced, Impossible> {
    let mut work = Work { root: schema, nodes: 0, lost: BTreeSet::new(), open: Vec::new() };
    let reduced = match schema {
        Value::Object(fields) if fields.is_empty() => None,
        Value::Null | Value::Bool(true) => None,
        Value::Object(_) => {
            let mut reduced = work.schema(schema, 0)?;
            work.merge_options(&mut reduced);
            if !accepts_objects(&reduced) {
                return Err(Impossible::NoObject);
            }
            if reduced.get("type").is_none() {
                reduced.insert("type".to_owned(), json!("OBJECT"));
            }
            // An object without properties is refused; a tool without arguments has no parameters.
            let empty = reduced.get("properties").and_then(Value::as_object).is_none_or(Map::is_empty);
            (!empty).then_some(Value::Object(reduced))
        }
        Value::Bool(false) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            return Err(Impossible::NoObject);
        }
    };
    Ok(Reduced { schema: reduced, lost: work.lost.into_iter().collect() })
}

fn accepts_objects(schema: &Map<String, Value>) -> bool {
    schema.get("type").is_none_or(|kind| kind == "OBJECT")
}

struct Work<'a> {
    root: &'a Value,
    nodes: usize,
    lost: BTreeSet<String>,
    /// References that are open just now.
    open: Vec<String>,
}

impl Work<'_> {
    fn lose(&mut self, keyword: &str) {
        self.lost.insert(keyword.to_owned());
    }

    fn schema(&mut self, schema: &Value, depth: usize) -> Result<Map<String, Value>, Impossible> {
        self.nodes += 1;
        if self.nodes > MOST_NODES || depth > DEEPEST {
            return Err(Impossible::TooLarge);
        }
        let Value::Object(fields) = schema else {
            if schema == &Value::Bool(false) {
                self.lose("false");
            }
            return Ok(Map::new());
        };
        if let Some(reference) =
            fields.get("$ref").or_else(|| fields.get("$dynamicRef")).and_then(Value::as_str)
        {
            return self.reference(reference, fields, depth);
        }
        let mut out = Map::new();
        let split = self.kind(fields, &mut out, depth)?;
        for (keyword, value) in fields {
            // With several types each option has its own.
            if split && is_of_value(keyword) {
                if matches!(keyword.as_str(), "enum" | "const") {
                    self.lose(keyword);
                }
                continue;
            }
            self.keyword(keyword, value, fields, &mut out, depth)?;
        }
        self.all_of(fields, &mut out, depth)?;
        self.tidy(&mut out);
        Ok(out)
    }

    /// A reference is replaced by what it points to. One that comes back to itself ends in anything.
    fn reference(
        &mut self,
        reference: &str,
        beside: &Map<String, Value>,
        depth: usize,
    ) -> Result<Map<String, Value>, Impossible> {
        let target = reference.strip_prefix('#').and_then(|pointer| self.root.pointer(&unescaped(pointer)));
        let again = self.open.iter().filter(|open| *open == reference).count();
        let mut out = match target {
            Some(target) if again < REPEATS => {
                let target = target.clone();
                self.open.push(reference.to_owned());
                let out = self.schema(&target, depth + 1);
                self.open.pop();
                out?
            }
            Some(_) | None => {
                self.lose("$ref");
                Map::new()
            }
        };
        for (keyword, value) in beside {
            match keyword.as_str() {
                "$ref" | "$dynamicRef" => {}
                "title" | "description" | "default" => {
                    out.insert(keyword.clone(), value.clone());
                }
                silent if SILENT.contains(&silent) => {}
                other => self.lose(other),
            }
        }
        Ok(out)
    }

    /// `type`, alone or as a list.
    fn kind(
        &mut self,
        fields: &Map<String, Value>,
        out: &mut Map<String, Value>,
        depth: usize,
    ) -> Result<bool, Impossible> {
        let kinds: Vec<&str> = match fields.get("type") {
            Some(Value::String(kind)) => vec![kind],
            Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
            Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => Vec::new(),
        };
        if kinds.contains(&"null") && kinds.len() > 1 {
            out.insert("nullable".to_owned(), json!(true));
        }
        let known: Vec<&str> =
            kinds.iter().copied().filter(|kind| *kind != "null").filter_map(type_name).collect();
        match known.as_slice() {
            [] if kinds == ["null"] => {
                out.insert("type".to_owned(), json!("NULL"));
            }
            [] if fields.contains_key("properties") => {
                out.insert("type".to_owned(), json!("OBJECT"));
            }
            [] if fields.contains_key("items") || fields.contains_key("prefixItems") => {
                out.insert("type".to_owned(), json!("ARRAY"));
            }
            [] => {}
            [one] => {
                out.insert("type".to_owned(), json!(one));
            }
            many => {
                let mut options = Vec::new();
                for kind in many {
                    let mut single = fields.clone();
                    single.insert("type".to_owned(), json!(kind.to_ascii_lowercase()));
                    single.retain(|keyword, _| belongs(keyword, kind));
                    options.push(Value::Object(self.schema(&Value::Object(single), depth + 1)?));
                }
                out.insert("anyOf".to_owned(), Value::Array(options));
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn keyword(
        &mut self,
        keyword: &str,
        value: &Value,
        fields: &Map<String, Value>,
        out: &mut Map<String, Value>,
        depth: usize,
    ) -> Result<(), Impossible> {
        match keyword {
            "type" | "allOf" => {}
            "title" | "description" if value.is_string() => keep(out, keyword, value),
            "default" => keep(out, keyword, value),
            "nullable" if value.is_boolean() => keep(out, keyword, value),
            "pattern" if value.is_string() => keep(out, keyword, value),
            "minimum" | "maximum" if value.is_number() => keep(out, keyword, value),
            "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties"
                if value.is_u64() =>
            {
                keep(out, keyword, value);
            }
            "format" if value.as_str().is_some_and(is_format) => keep(out, keyword, value),
            "enum" => self.options(value.as_array().map(Vec::as_slice).unwrap_or_default(), fields, out),
            "const" => self.options(std::slice::from_ref(value), fields, out),
            "properties" => self.properties(value, out, depth)?,
            "required" => keep(out, keyword, value),
            "items" => self.items(value, fields, out, depth)?,
            "prefixItems" => self.tuple(value, out, depth)?,
            "additionalProperties" => self.additional(value, out, depth)?,
            "anyOf" | "oneOf" => self.any_of(keyword, value, out, depth)?,
            "exclusiveMinimum" | "exclusiveMaximum" => self.exclusive(keyword, value, fields, out),
            silent if SILENT.contains(&silent) || silent.starts_with("x-") => {}
            lost => self.lose(lost),
        }
        Ok(())
    }

    /// What the provider refuses although each keyword is known.
    fn tidy(&mut self, out: &mut Map<String, Value>) {
        if let Some(Value::Array(names)) = out.get("required").cloned() {
            let properties = out.get("properties").and_then(Value::as_object);
            let known = |name: &&Value| {
                name.as_str().is_some_and(|name| properties.is_some_and(|all| all.contains_key(name)))
            };
            let mut kept: Vec<Value> = names.iter().filter(known).cloned().collect();
            kept.dedup();
            if kept.len() < names.len() && names.iter().any(|name| !known(&name)) {
                self.lose("required");
            }
            if kept.is_empty() {
                out.remove("required");
            } else {
                out.insert("required".to_owned(), Value::Array(kept));
            }
        } else {
            out.remove("required");
        }
        if out.get("type").is_some_and(|kind| kind == "ARRAY") && !out.contains_key("items") {
            out.insert("items".to_owned(), json!({}));
        }
        self.leave_options_alone(out);
    }
}
