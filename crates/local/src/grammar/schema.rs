//! A rule for the values of a schema.

use std::collections::{BTreeSet, HashMap};

use serde_json::{Map, Value, json};

use super::gbnf::{Rules, literal};
use super::pythonic;

/// How often references may lead on from one to the next: deeper values are not written.
const DEEPEST_REFERENCE: usize = 12;
/// How deep a schema itself may be.
pub(super) const DEEPEST_SCHEMA: usize = 64;
/// How deep values are that a schema says nothing about.
const DEEPEST_ANY: usize = 5;
/// Keywords that a grammar cannot hold a value to.
const OPEN: [&str; 13] = [
    "not",
    "if",
    "then",
    "else",
    "dependentRequired",
    "dependentSchemas",
    "dependencies",
    "contains",
    "minContains",
    "maxContains",
    "unevaluatedItems",
    "unevaluatedProperties",
    "$dynamicRef",
];

/// No value fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Impossible;

/// The rule of a schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Compiled {
    /// The name of the rule.
    pub(crate) rule: String,
    /// Where the rule allows more than the schema, and by which keyword.
    pub(crate) open: BTreeSet<String>,
}

/// The rule for a tool's arguments. None when no object fits its schema.
pub(crate) fn compile(schema: &Value, rules: &mut Rules) -> Option<Compiled> {
    let mut compiler = Compiler::new(rules, schema);
    compiler.keywords = compiler.rules.is_pythonic();
    let rule = compiler.arguments(schema).ok()?;
    Some(Compiled { rule, open: compiler.open })
}

/// A whole grammar for the values of a schema. None when none fits.
pub(crate) fn for_value(schema: &Value) -> Option<String> {
    let mut rules = Rules::default();
    let rule = Compiler::new(&mut rules, schema).value(schema).ok()?;
    Some(format!("root ::= {rule}\n{}", rules.text()))
}

/// The rule for any JSON object.
pub(crate) fn any_object(rules: &mut Rules) -> String {
    let mut compiler = Compiler::new(rules, &Value::Null);
    if compiler.rules.is_pythonic() {
        return pythonic::any_keywords(&mut compiler);
    }
    compiler.any_object(DEEPEST_ANY)
}

/// Compiles one schema.
pub(super) struct Compiler<'a> {
    pub(super) rules: &'a mut Rules,
    pub(super) root: &'a Value,
    pub(super) open: BTreeSet<String>,
    /// Whether the next object is that of a call's keyword arguments.
    pub(super) keywords: bool,
    references: HashMap<(String, usize, bool), Result<String, Impossible>>,
    place: Vec<String>,
    depth: usize,
    reference_depth: usize,
}

impl<'a> Compiler<'a> {
    pub(super) fn new(rules: &'a mut Rules, root: &'a Value) -> Self {
        Self {
            rules,
            root,
            open: BTreeSet::new(),
            keywords: false,
            references: HashMap::new(),
            place: Vec::new(),
            depth: 0,
            reference_depth: 0,
        }
    }

    /// Arguments are an object, whatever the schema says or leaves out.
    fn arguments(&mut self, schema: &Value) -> Result<String, Impossible> {
        match schema {
            Value::Object(fields) => {
                let flat = self.flat(fields)?;
                let object = json!({ "type": "object" });
                let Value::Object(object) = object else { return Err(Impossible) };
                let held = self.both(flat, &object)?;
                self.flat_value(&held)
            }
            _ if self.keywords => Ok(pythonic::any_keywords(self)),
            _ => Ok(self.any_object(DEEPEST_ANY)),
        }
    }

    /// The rule for the values of a schema.
    pub(super) fn value(&mut self, schema: &Value) -> Result<String, Impossible> {
        let fields = match schema {
            Value::Bool(false) => return Err(Impossible),
            Value::Object(fields) => fields,
            Value::Bool(true) | Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                return Ok(self.any(DEEPEST_ANY));
            }
        };
        if self.depth >= DEEPEST_SCHEMA {
            self.leave_open("a schema this deep");
            return Ok(if self.keywords { pythonic::any_keywords(self) } else { self.any(1) });
        }
        if !self.rules.works(1) {
            self.leave_open("more than can be followed");
            return Ok(if self.keywords {
                pythonic::any_keywords(self)
            } else {
                self.any_of(&declared_types(fields))
            });
        }
        self.depth += 1;
        let out = self.referred(fields);
        self.depth -= 1;
        out
    }

    /// A schema that is only a reference is compiled once for each depth of references.
    fn referred(&mut self, fields: &Map<String, Value>) -> Result<String, Impossible> {
        let Some(reference) = fields.get("$ref").and_then(Value::as_str) else {
            let flat = self.flat(fields)?;
            return self.flat_value(&flat);
        };
        if self.reference_depth >= DEEPEST_REFERENCE {
            return Err(Impossible);
        }
        let alone = fields.keys().all(|key| key == "$ref" || super::flat::is_note(key));
        let key = (reference.to_owned(), self.reference_depth, self.keywords);
        if let Some(known) = self.references.get(&key).filter(|_| alone) {
            return known.clone();
        }
        self.reference_depth += 1;
        let out = self.flat(fields).and_then(|flat| self.flat_value(&flat));
        self.reference_depth -= 1;
        if alone {
            self.references.insert(key, out.clone());
        }
        out
    }

    /// The rule for a schema without references and `allOf`.
    pub(super) fn flat_value(&mut self, schema: &Map<String, Value>) -> Result<String, Impossible> {
        for key in ["anyOf", "oneOf"] {
            if let Some(Value::Array(choices)) = schema.get(key) {
                return self.choice(schema, key, choices);
            }
        }
        for key in OPEN {
            match schema.get(key) {
                None => {}
                Some(Value::Bool(true)) if key == "not" => return Err(Impossible),
                Some(Value::Object(not)) if key == "not" && not.is_empty() => return Err(Impossible),
                // What is not named is not written.
                Some(Value::Bool(false)) if key != "then" && key != "else" => {}
                Some(_) => self.leave_open(key),
            }
        }
        if let Some(value) = schema.get("const") {
            return self.literals(schema, std::slice::from_ref(value));
        }
        if let Some(Value::Array(values)) = schema.get("enum") {
            return self.literals(schema, values);
        }
        let choices: Vec<String> =
            types_of(schema).iter().filter_map(|kind| self.of_type(kind, schema).ok()).collect();
        match choices.as_slice() {
            [] if types_of(schema).is_empty() => Ok(self.any(DEEPEST_ANY)),
            [] => Err(Impossible),
            [one] => Ok(one.clone()),
            several => Ok(self.rules.add(several.join(" | "))),
        }
    }

    fn of_type(&mut self, kind: &str, schema: &Map<String, Value>) -> Result<String, Impossible> {
        match kind {
            "object" => self.object(schema),
            "array" => self.array(schema),
            "string" => self.string(schema),
            "integer" => self.integer(schema),
            "number" => self.number(schema),
            "boolean" => Ok(self.boolean()),
            "null" => Ok(self.null()),
            _ => {
                self.leave_open("type");
                Ok(self.any(DEEPEST_ANY))
            }
        }
    }

    fn boolean(&mut self) -> String {
        let words = if self.rules.is_pythonic() { "\"True\" | \"False\"" } else { "\"true\" | \"false\"" };
        self.rules.add(words.to_owned())
    }

    fn null(&mut self) -> String {
        self.rules.add(if self.rules.is_pythonic() { "\"None\"" } else { "\"null\"" }.to_owned())
    }

    /// A value that stands for itself.
    pub(super) fn itself(&mut self, value: &Value) -> String {
        if !self.rules.is_pythonic() {
            return literal(&value.to_string());
        }
        let ways: Vec<String> = pythonic::written(value).iter().map(|way| literal(way)).collect();
        format!("({})", ways.join(" | "))
    }

    /// Any value, so deep.
    pub(super) fn any(&mut self, depth: usize) -> String {
        let (string, number) = (self.any_string(), self.any_number());
        let (boolean, null) = (self.boolean(), self.null());
        let scalars = format!("{string} | {number} | {boolean} | {null}");
        if depth == 0 {
            return self.rules.add(scalars);
        }
        let (object, space) = (self.any_object(depth - 1), self.rules.space());
        let list = self.any_list(depth - 1, &space);
        self.rules.add(format!("{scalars} | {object} | {list}"))
    }

    fn any_list(&mut self, depth: usize, space: &str) -> String {
        let item = self.any(depth);
        self.rules.add(format!("\"[\" {space} ({item} (\",\" {space} {item})*)? {space} \"]\""))
    }

    /// Any value of these types.
    fn any_of(&mut self, kinds: &[&str]) -> String {
        let space = self.rules.space();
        let of = |kind: &&str| match *kind {
            "object" => self.any_object(1),
            "array" => self.any_list(1, &space),
            "string" => self.any_string(),
            "integer" => self.any_integer(),
            "number" => self.any_number(),
            "boolean" => self.boolean(),
            _ => self.null(),
        };
        let choices: Vec<String> = kinds.iter().map(of).collect();
        match choices.as_slice() {
            [] => self.any(1),
            [one] => one.clone(),
            several => self.rules.add(several.join(" | ")),
        }
    }

    pub(super) fn any_object(&mut self, depth: usize) -> String {
        let (string, space) = (self.any_string(), self.rules.space());
        let value = self.any(depth);
        let field = self.rules.add(format!("{string} \":\" {space} {value}"));
        self.rules.add(format!("\"{{\" {space} ({field} (\",\" {space} {field})*)? {space} \"}}\""))
    }

    /// Notes that the grammar allows more than the schema.
    pub(super) fn leave_open(&mut self, keyword: &str) {
        let place = if self.place.is_empty() { "the arguments".to_owned() } else { self.place.join(".") };
        self.open.insert(format!("{place}: {keyword}"));
    }

    /// Compiles what stands under a name.
    pub(super) fn under(&mut self, name: &str, schema: &Value) -> Result<String, Impossible> {
        self.place.push(name.to_owned());
        let out = self.value(schema);
        self.place.pop();
        out
    }
}

pub(super) fn declared_types(schema: &Map<String, Value>) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(kind)) => vec![kind],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

/// The types that a schema names, or that its keywords are about.
pub(super) fn types_of(schema: &Map<String, Value>) -> Vec<&str> {
    const ABOUT: [(&str, &[&str]); 4] = [
        (
            "object",
            &[
                "properties",
                "required",
                "additionalProperties",
                "patternProperties",
                "propertyNames",
                "minProperties",
                "maxProperties",
            ],
        ),
        ("array", &["items", "prefixItems", "minItems", "maxItems", "uniqueItems"]),
        ("string", &["pattern", "minLength", "maxLength", "format"]),
        ("number", &["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]),
    ];
    let declared = declared_types(schema);
    if !declared.is_empty() {
        // An integer is a number already.
        let numbers = declared.contains(&"number");
        return declared.into_iter().filter(|kind| !(numbers && *kind == "integer")).collect();
    }
    let about = |(_, keys): &&(&'static str, &[&str])| keys.iter().any(|key| schema.contains_key(*key));
    ABOUT.iter().filter(about).map(|(kind, _)| *kind).take(1).collect()
}
