//! Names of the arguments of one tool, where each argument is written by itself.
//!
//! Invariant: pure; only names of the outermost object change, what stands inside an argument is JSON.

use std::collections::{BTreeSet, HashMap};

use serde_json::{Map, Value};

use super::{Rules, Writing, aliases_of};

/// Letters that end a name in one format or another.
const ENDS: &str = "<>\"'`\\{}[]()=:,|&";
/// Schemas that speak of the same object.
const BRANCHES: [&str; 7] = ["anyOf", "oneOf", "allOf", "if", "then", "else", "not"];
/// Deeper branches are left as they are.
const DEEPEST: usize = 8;

/// The arguments of a tool that the model knows by other names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Renamed {
    aliases: HashMap<String, String>,
    back: HashMap<String, String>,
}

impl Renamed {
    /// None when all arguments can be written as they are.
    pub(super) fn new(schema: &Value, writing: Writing) -> Option<Self> {
        let plain: fn(&str) -> bool = match writing {
            Writing::Json => return None,
            Writing::Apart => stands_apart,
            Writing::Pythonic => is_keyword,
        };
        let mut names = BTreeSet::new();
        declared(schema, 0, &mut names);
        let names: Vec<&str> = names.into_iter().collect();
        let aliases = aliases_of(&names, Rules::default(), plain);
        let back = aliases.iter().map(|(name, alias)| (alias.clone(), name.clone())).collect();
        (!aliases.is_empty()).then_some(Self { aliases, back })
    }

    pub(super) fn written(&self, arguments: &Map<String, Value>) -> Map<String, Value> {
        arguments.iter().map(|(name, value)| (turned(&self.aliases, name), value.clone())).collect()
    }

    pub(super) fn read(&self, arguments: Map<String, Value>) -> Map<String, Value> {
        arguments.into_iter().map(|(name, value)| (turned(&self.back, &name), value)).collect()
    }

    pub(super) fn rename_schema(&self, schema: &mut Value) {
        self.rename(schema, 0);
    }

    fn rename(&self, schema: &mut Value, depth: usize) {
        let Value::Object(fields) = schema else { return };
        for key in ["properties", "dependentRequired", "dependentSchemas", "dependencies"] {
            if let Some(Value::Object(named)) = fields.get_mut(key) {
                *named = self.written(named);
            }
        }
        if let Some(required) = fields.get_mut("required") {
            self.rename_list(required);
        }
        for key in ["dependentRequired", "dependencies"] {
            if let Some(Value::Object(named)) = fields.get_mut(key) {
                named.values_mut().for_each(|list| self.rename_list(list));
            }
        }
        for key in BRANCHES {
            match fields.get_mut(key) {
                Some(Value::Array(branches)) if depth < DEEPEST => {
                    branches.iter_mut().for_each(|branch| self.rename(branch, depth + 1));
                }
                Some(branch) if depth < DEEPEST => self.rename(branch, depth + 1),
                Some(_) | None => {}
            }
        }
    }

    fn rename_list(&self, list: &mut Value) {
        for name in list.as_array_mut().into_iter().flatten() {
            if let Value::String(name) = name {
                *name = turned(&self.aliases, name);
            }
        }
    }
}

fn turned(names: &HashMap<String, String>, name: &str) -> String {
    names.get(name).map_or(name, String::as_str).to_owned()
}

/// The names of the outermost object.
fn declared<'a>(schema: &'a Value, depth: usize, out: &mut BTreeSet<&'a str>) {
    let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    out.extend(properties.map(|(name, _)| name.as_str()));
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    out.extend(required.filter_map(Value::as_str));
    if depth == DEEPEST {
        return;
    }
    for branch in BRANCHES.iter().filter_map(|key| schema.get(key)) {
        match branch {
            Value::Array(branches) => branches.iter().for_each(|branch| declared(branch, depth + 1, out)),
            branch => declared(branch, depth + 1, out),
        }
    }
}

/// Whether a name can stand in a tag or before a sign.
fn stands_apart(name: &str) -> bool {
    let ends = |letter: char| letter.is_control() || ENDS.contains(letter);
    !name.is_empty() && name.trim() == name && !name.contains(ends)
}

/// Whether a name can be a keyword in a call, as our reader takes it.
fn is_keyword(name: &str) -> bool {
    let first = |letter: char| letter.is_alphabetic() || letter == '_';
    name.starts_with(first) && name.chars().all(|letter| letter.is_alphanumeric() || letter == '_')
}
