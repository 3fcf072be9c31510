//! Brings a JSON Schema to the subset that `FunctionDeclaration.parameters` knows (an OpenAPI 3.0 schema), and tells what
//! was lost.
//!
//! Invariant: pure. What comes out has only keywords of the subset and never more than `MOST_NODES` schemas; a value that
//! fits the schema also fits what comes out of it, so nothing that is right becomes impossible. The turn checks the
//! arguments against the whole schema in any case.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

const MOST_NODES: usize = 4_000;
const DEEPEST: usize = 32;
/// A reference to itself is opened this often.
const REPEATS: usize = 2;

/// Keywords that say something to people only.
const SILENT: &[&str] = &[
    "$schema",
    "$id",
    "$comment",
    "$anchor",
    "$defs",
    "definitions",
    "examples",
    "example",
    "deprecated",
    "readOnly",
    "writeOnly",
    "$vocabulary",
    "contentMediaType",
    "contentEncoding",
    "markdownDescription",
];

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

    /// Only texts can be listed.
    fn options(&mut self, options: &[Value], fields: &Map<String, Value>, out: &mut Map<String, Value>) {
        let not_null: Vec<&Value> = options.iter().filter(|option| !option.is_null()).collect();
        if not_null.len() < options.len() && !not_null.is_empty() {
            out.insert("nullable".to_owned(), json!(true));
        }
        // Gemini takes no empty text in a list.
        if !not_null.is_empty()
            && not_null.iter().all(|option| option.as_str().is_some_and(|text| !text.is_empty()))
        {
            out.insert("type".to_owned(), json!("STRING"));
            out.insert("enum".to_owned(), not_null.into_iter().cloned().collect());
            return;
        }
        self.lose(if fields.contains_key("enum") { "enum" } else { "const" });
        let same =
            |kind: fn(&Value) -> bool| !not_null.is_empty() && not_null.iter().all(|option| kind(option));
        if !out.contains_key("type") {
            let kind = if same(Value::is_boolean) {
                "BOOLEAN"
            } else if same(|option| option.is_i64() || option.is_u64()) {
                "INTEGER"
            } else if same(Value::is_number) {
                "NUMBER"
            } else if same(Value::is_string) {
                "STRING"
            } else {
                return;
            };
            out.insert("type".to_owned(), json!(kind));
        }
    }

    fn properties(
        &mut self,
        value: &Value,
        out: &mut Map<String, Value>,
        depth: usize,
    ) -> Result<(), Impossible> {
        let mut properties = Map::new();
        for (name, schema) in value.as_object().into_iter().flatten() {
            properties.insert(name.clone(), Value::Object(self.schema(schema, depth + 1)?));
        }
        out.insert("properties".to_owned(), Value::Object(properties));
        Ok(())
    }

    fn items(
        &mut self,
        value: &Value,
        fields: &Map<String, Value>,
        out: &mut Map<String, Value>,
        depth: usize,
    ) -> Result<(), Impossible> {
        match value {
            Value::Array(_) => self.tuple(value, out, depth),
            // With a tuple before it this is about what follows.
            _ if fields.contains_key("prefixItems") => {
                self.lose("items");
                Ok(())
            }
            schema => {
                let items = self.schema(schema, depth + 1)?;
                out.insert("items".to_owned(), Value::Object(items));
                Ok(())
            }
        }
    }

    /// Each item may be any of the tuple's.
    fn tuple(&mut self, value: &Value, out: &mut Map<String, Value>, depth: usize) -> Result<(), Impossible> {
        self.lose("prefixItems");
        let mut options = Vec::new();
        for item in value.as_array().into_iter().flatten() {
            let item = Value::Object(self.schema(item, depth + 1)?);
            if !options.contains(&item) {
                options.push(item);
            }
        }
        let items = if options.len() == 1 { options.remove(0) } else { json!({ "anyOf": options }) };
        out.insert("items".to_owned(), items);
        Ok(())
    }

    fn additional(
        &mut self,
        value: &Value,
        out: &mut Map<String, Value>,
        depth: usize,
    ) -> Result<(), Impossible> {
        let value = match value {
            Value::Bool(_) => value.clone(),
            schema => Value::Object(self.schema(schema, depth + 1)?),
        };
        out.insert("additionalProperties".to_owned(), value);
        Ok(())
    }

    fn any_of(
        &mut self,
        keyword: &str,
        value: &Value,
        out: &mut Map<String, Value>,
        depth: usize,
    ) -> Result<(), Impossible> {
        let options = value.as_array().map(Vec::as_slice).unwrap_or_default();
        if keyword == "oneOf" {
            self.lose("oneOf");
        }
        if out.contains_key("anyOf") {
            self.lose(keyword);
            return Ok(());
        }
        let is_null = |option: &&Value| option.get("type").is_some_and(|kind| kind == "null");
        if options.iter().any(|option| is_null(&option)) {
            out.insert("nullable".to_owned(), json!(true));
        }
        let mut reduced = Vec::new();
        for option in options.iter().filter(|option| !is_null(option)) {
            reduced.push(self.schema(option, depth + 1)?);
        }
        match reduced.len() {
            0 => {}
            // A choice of one is that one; what stands beside it holds too.
            1 => {
                for (keyword, value) in reduced.remove(0) {
                    out.entry(keyword).or_insert(value);
                }
            }
            _ => {
                out.insert("anyOf".to_owned(), reduced.into_iter().map(Value::Object).collect());
            }
        }
        Ok(())
    }

    /// For whole numbers the bound can be moved; else the bound itself is let in.
    fn exclusive(
        &mut self,
        keyword: &str,
        value: &Value,
        fields: &Map<String, Value>,
        out: &mut Map<String, Value>,
    ) {
        let (target, step) = if keyword == "exclusiveMinimum" { ("minimum", 1) } else { ("maximum", -1) };
        let whole = fields.get("type").is_some_and(|kind| kind == "integer");
        let moved = match value {
            Value::Number(bound) => match bound.as_i64().and_then(|bound| bound.checked_add(step)) {
                Some(moved) if whole => json!(moved),
                Some(_) | None => {
                    self.lose(keyword);
                    value.clone()
                }
            },
            // Draft 4 wrote true and false beside the bound.
            Value::Bool(false) => return,
            Value::Null | Value::Bool(true) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
                self.lose(keyword);
                return;
            }
        };
        if out.contains_key(target) || fields.contains_key(target) {
            self.lose(keyword);
        } else {
            out.insert(target.to_owned(), moved);
        }
    }

    /// All parts at once, as far as they do not contradict.
    fn all_of(
        &mut self,
        fields: &Map<String, Value>,
        out: &mut Map<String, Value>,
        depth: usize,
    ) -> Result<(), Impossible> {
        for part in fields.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            for (keyword, value) in self.schema(part, depth + 1)? {
                match (out.get_mut(&keyword), value) {
                    (None, value) => {
                        out.insert(keyword, value);
                    }
                    (Some(here), value) if *here == value => {}
                    (Some(Value::Object(here)), Value::Object(more)) if keyword == "properties" => {
                        for (name, schema) in more {
                            here.entry(name).or_insert(schema);
                        }
                    }
                    (Some(Value::Array(here)), Value::Array(more)) if keyword == "required" => {
                        here.extend(more)
                    }
                    // The part that stands first is kept; its own words are about it.
                    (Some(_), _) if matches!(keyword.as_str(), "title" | "description" | "default") => {}
                    (Some(_), _) => self.lose("allOf"),
                }
            }
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

    /// Vertex refuses a schema with `anyOf` and anything beside it. What stands beside goes into the options; where that
    /// is more than words, it is kept and the options are lost.
    fn leave_options_alone(&mut self, out: &mut Map<String, Value>) {
        let is_word =
            |name: &str| matches!(name, "type" | "title" | "description" | "default" | "nullable" | "anyOf");
        if !out.contains_key("anyOf") {
            return;
        }
        if !out.keys().all(|name| is_word(name)) {
            self.lose("anyOf");
            out.remove("anyOf");
            return;
        }
        let words: Map<String, Value> = out
            .iter()
            .filter(|(name, _)| matches!(name.as_str(), "description" | "nullable"))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        if out.contains_key("default") {
            self.lose("default");
        }
        out.retain(|name, _| name == "anyOf");
        for option in out.get_mut("anyOf").and_then(Value::as_array_mut).into_iter().flatten() {
            let Value::Object(option) = option else { continue };
            if !option.contains_key("anyOf") {
                for (name, value) in &words {
                    option.entry(name.clone()).or_insert_with(|| value.clone());
                }
            }
        }
    }

    /// The arguments themselves have to be one object: of several shapes of it, everything that one of them has, required
    /// what all require.
    fn merge_options(&mut self, out: &mut Map<String, Value>) {
        let Some(Value::Array(options)) = out.remove("anyOf") else { return };
        self.lose("anyOf");
        let mut properties: Map<String, Value> = Map::new();
        let mut required: Option<Vec<Value>> = None;
        for option in &options {
            for (name, schema) in option.get("properties").and_then(Value::as_object).into_iter().flatten() {
                match properties.get_mut(name) {
                    None => {
                        properties.insert(name.clone(), schema.clone());
                    }
                    Some(known) if known == schema => {}
                    Some(known) => *known = json!({}),
                }
            }
            let here = option.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
            required = Some(match required {
                None => here,
                Some(before) => before.into_iter().filter(|name| here.contains(name)).collect(),
            });
        }
        if options.iter().all(|option| option.get("type").is_some_and(|kind| kind != "OBJECT")) {
            out.insert("type".to_owned(), json!("STRING"));
            return;
        }
        out.insert("type".to_owned(), json!("OBJECT"));
        out.insert("properties".to_owned(), Value::Object(properties));
        if let Some(required) = required.filter(|names| !names.is_empty()) {
            out.insert("required".to_owned(), Value::Array(required));
        }
    }
}

fn keep(out: &mut Map<String, Value>, keyword: &str, value: &Value) {
    out.insert(keyword.to_owned(), value.clone());
}

fn unescaped(pointer: &str) -> String {
    // A pointer in an address is percent-encoded; names with spaces are the only common case.
    pointer.replace("%20", " ").replace("%24", "$")
}

fn type_name(kind: &str) -> Option<&'static str> {
    Some(match kind.to_ascii_lowercase().as_str() {
        "object" => "OBJECT",
        "array" => "ARRAY",
        "string" => "STRING",
        "integer" => "INTEGER",
        "number" => "NUMBER",
        "boolean" => "BOOLEAN",
        _ => return None,
    })
}

/// The formats that the subset knows; others are refused.
fn is_format(format: &str) -> bool {
    matches!(format, "date-time" | "enum" | "float" | "double" | "int32" | "int64")
}

/// Keywords about values, as opposed to words about the whole.
fn is_of_value(keyword: &str) -> bool {
    !matches!(keyword, "title" | "description" | "default" | "nullable" | "anyOf" | "oneOf" | "allOf")
}

/// Whether a keyword says something about values of this type.
fn belongs(keyword: &str, kind: &str) -> bool {
    let of = match keyword {
        "properties"
        | "required"
        | "additionalProperties"
        | "minProperties"
        | "maxProperties"
        | "patternProperties"
        | "propertyNames"
        | "dependentRequired" => "OBJECT",
        "items" | "prefixItems" | "minItems" | "maxItems" | "uniqueItems" | "contains" => "ARRAY",
        "minLength" | "maxLength" | "pattern" => "STRING",
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" => {
            return kind == "INTEGER" || kind == "NUMBER";
        }
        "title" | "description" | "default" | "anyOf" | "oneOf" | "allOf" | "enum" | "const" => return false,
        _ => return true,
    };
    of == kind
}
