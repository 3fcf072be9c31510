//! Formats that write each argument between tags, as `<parameter=name>value</parameter>`: text as it is, anything
//! else as JSON.
//!
//! llama.cpp writes a rule `tool-NAME-arg-ARGUMENT` for each argument, leaves texts open whatever their schema says, and
//! refuses or loosens odd schemas. It is given plain types here, and its rules get our values. Invariant: pure; an
//! argument whose schema takes texts is read as text, any other as JSON.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::bind::{Bound, Callable, callables, owned, reachable, rule_name, tokens};
use super::gbnf::{Rules, literal};
use super::schema::{Compiler, types_of};

/// Stands in the name of the rule for an argument.
pub(crate) const TAGGED_ARGUMENT: &str = "-arg-";
/// Deeper choices of choices are taken as they are.
const DEEPEST_CHOICE: usize = 8;

/// The texts that a schema takes.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Texts {
    No,
    Any,
    /// A rule for them, as they stand between the tags.
    Rule(String),
    These(Vec<String>),
}

/// The tools with arguments of plain types. With `all_json` no argument is a text.
pub(crate) fn with_plain_types(tools: &[Value], all_json: bool) -> Vec<Value> {
    let mut rules = Rules::default();
    let mut seen = HashSet::new();
    let mut out = tools.to_vec();
    out.retain(|tool| seen.insert(tool.pointer("/function/name").cloned()));
    for parameters in out.iter_mut().filter_map(|tool| tool.pointer_mut("/function/parameters")) {
        let given = parameters.take();
        let mut compiler = Compiler::new(&mut rules, &given);
        let flat = arguments(&mut compiler, &given);
        let mut properties = Map::new();
        for (name, schema) in properties_of(&flat) {
            let text = !all_json && compiler.texts(schema, 0) != Texts::No;
            // Bounds, so that it gets a rule of its own.
            let json = json!({ "type": "integer", "minimum": 1, "maximum": 99 });
            properties.insert(name.clone(), if text { json!({ "type": "string" }) } else { json });
        }
        let required = flat.get("required").cloned().unwrap_or_else(|| json!([]));
        *parameters = json!({ "type": "object", "properties": properties, "required": required });
    }
    out
}

/// Puts the values of the arguments into a grammar that was made of plain types. `all_json` is the same of arguments
/// that are no texts: there it is seen what stands around a value. None when the format is of another kind.
pub(crate) fn bind_tagged(grammar: &str, all_json: &str, tools: &[Value]) -> Option<Bound> {
    let mut lines: Vec<(String, String)> = lines_of(grammar);
    let around = lines_of(all_json);
    let (mut bound, mut rules) = (Bound::default(), Rules::default());
    let mut taken = HashSet::new();
    for tool in callables(tools) {
        let mut compiler = Compiler::new(&mut rules, tool.schema);
        let flat = arguments(&mut compiler, tool.schema);
        leave_the_rest_open(&mut compiler, &flat);
        let mut unbound = Vec::new();
        for (name, schema) in properties_of(&flat) {
            let rule = format!("tool-{}-arg-{}", rule_name(tool.name), rule_name(name));
            if !taken.insert(rule.clone()) {
                return None;
            }
            let value = format!("{rule}-schema");
            let (at, body) = match compiler.texts(schema, 0) {
                Texts::Any => {
                    // Its rule stays as it is.
                    lines.iter().find(|(name, _)| *name == rule)?;
                    continue;
                }
                Texts::No => match compiler.value(schema) {
                    Ok(own) => (value, format!(" {own}")),
                    Err(_) => {
                        unbound.push(name.clone());
                        continue;
                    }
                },
                texts @ (Texts::Rule(_) | Texts::These(_)) => {
                    let own = match texts {
                        Texts::Rule(rule) => rule,
                        Texts::These(texts) => {
                            let texts: Vec<String> = texts.iter().map(|text| literal(text)).collect();
                            compiler.rules.add(texts.join(" | "))
                        }
                        Texts::No | Texts::Any => return None,
                    };
                    let (_, body) = around.iter().find(|(name, _)| *name == rule)?;
                    let (before, behind) = body.split_once(&value)?;
                    let text = lines.iter().find(|(name, _)| *name == rule)?;
                    let before = before_text(&text.1).unwrap_or_else(|| before.to_owned());
                    (rule, format!("{before} {own}{behind}"))
                }
            };
            lines.iter_mut().find(|(name, _)| *name == at)?.1 = body;
        }
        for name in unbound {
            compiler.leave_open(&format!("no value fits `{name}`"));
        }
        note(&mut bound, &tool, compiler.open);
    }
    let own = rules.text();
    lines.extend(own.lines().filter_map(|line| line.split_once(" ::=")).map(owned));
    bound.text = reachable(&lines);
    Some(bound)
}

/// What stands before a text in the rule of its argument: a tag may say there that a text follows.
fn before_text(body: &str) -> Option<String> {
    let parts = tokens(body);
    let is_text = |part: &&str| part.starts_with("until") || part.starts_with("ac-");
    let before = &parts[..parts.iter().position(is_text)?];
    let count = |bracket: &str| before.iter().filter(|part| **part == bracket).count();
    (count("(") == count(")") && !before.contains(&"|")).then(|| format!(" {}", before.join(" ")))
}

fn lines_of(grammar: &str) -> Vec<(String, String)> {
    grammar.lines().filter_map(|line| line.split_once(" ::=")).map(owned).collect()
}

fn note(bound: &mut Bound, tool: &Callable<'_>, open: std::collections::BTreeSet<String>) {
    if !open.is_empty() {
        bound.open.insert(tool.name.to_owned(), open);
    }
}

/// The schema of the arguments, without references.
fn arguments(compiler: &mut Compiler<'_>, schema: &Value) -> Map<String, Value> {
    let Value::Object(fields) = schema else { return Map::new() };
    compiler.flat(fields).unwrap_or_else(|_| fields.clone())
}

fn properties_of(schema: &Map<String, Value>) -> impl Iterator<Item = (&String, &Value)> {
    schema.get("properties").and_then(Value::as_object).into_iter().flatten()
}

/// What is said of the arguments together is not held.
fn leave_the_rest_open(compiler: &mut Compiler<'_>, schema: &Map<String, Value>) {
    let held = ["type", "properties", "required", "additionalProperties", "$defs", "definitions", "$schema"];
    for key in schema.keys() {
        if !held.contains(&key.as_str()) && !super::flat::is_note(key) {
            compiler.leave_open(key);
        }
    }
}

impl Compiler<'_> {
    fn texts(&mut self, schema: &Value, depth: usize) -> Texts {
        let fields = match schema {
            Value::Bool(false) => return Texts::No,
            Value::Object(fields) if depth < DEEPEST_CHOICE => fields,
            _ => return Texts::Any,
        };
        let Ok(flat) = self.flat(fields) else { return Texts::No };
        for key in ["anyOf", "oneOf"] {
            if let Some(Value::Array(choices)) = flat.get(key) {
                let kinds = types_of(&flat);
                if !kinds.is_empty() && !kinds.contains(&"string") {
                    return Texts::No;
                }
                return choices.iter().map(|choice| self.texts(choice, depth + 1)).fold(Texts::No, Texts::or);
            }
        }
        let literals = flat.get("const").map(std::slice::from_ref);
        let literals = literals.or_else(|| flat.get("enum").and_then(Value::as_array).map(Vec::as_slice));
        if let Some(values) = literals {
            let texts: Vec<String> = values.iter().filter_map(Value::as_str).map(str::to_owned).collect();
            return match texts.as_slice() {
                [] => Texts::No,
                // A text that is empty or has space at its ends can't be told from what stands around it.
                texts if texts.iter().any(|text| text.is_empty() || text.trim() != text) => Texts::Any,
                _ => Texts::These(texts),
            };
        }
        let kinds = types_of(&flat);
        if !(kinds.is_empty() || kinds.contains(&"string")) {
            return Texts::No;
        }
        self.text_rule(&flat).map_or(Texts::Any, Texts::Rule)
    }
}

impl Texts {
    fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::No, one) | (one, Self::No) => one,
            (Self::These(mut one), Self::These(other)) => {
                one.extend(other);
                Self::These(one)
            }
            (one, other) if one == other => one,
            _ => Self::Any,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(schema: Value) -> Vec<Value> {
        vec![json!({ "type": "function", "function": { "name": "pick", "parameters": schema } })]
    }

    fn kind(schema: Value) -> String {
        let tools = tool(json!({ "properties": { "a": schema }, "$defs": { "t": { "type": "string" } } }));
        let typed = with_plain_types(&tools, false);
        typed[0]["function"]["parameters"]["properties"]["a"]["type"].as_str().unwrap().to_owned()
    }

    #[test]
    fn what_may_be_text_is_text() {
        for schema in [
            json!({}),
            json!(true),
            json!({ "type": ["string", "null"] }),
            json!({ "enum": [1, "one"] }),
            json!({ "$ref": "#/$defs/t" }),
            json!({ "anyOf": [{ "type": "integer" }, { "$ref": "#/$defs/t" }] }),
            json!({ "const": "a" }),
            json!({ "pattern": "^a$" }),
        ] {
            assert_eq!(kind(schema.clone()), "string", "{schema}");
        }
        for schema in [
            json!({ "type": "integer" }),
            json!({ "enum": [1, null, true] }),
            json!({ "anyOf": [{ "type": "integer" }, { "type": "null" }] }),
            json!({ "properties": {} }),
            json!({ "type": ["object", "null"] }),
            json!({ "items": {} }),
        ] {
            assert_eq!(kind(schema.clone()), "integer", "{schema}");
        }
    }

    #[test]
    fn values_take_the_place_of_plain_types() {
        let tools = tool(json!({ "properties": { "c": { "enum": ["red"] }, "n": { "const": 7 }, "t": {} } }));
        let plain = "root ::= tool-pick\ntool-pick ::= tool-pick-arg-c tool-pick-arg-n tool-pick-arg-t\n\
            tool-pick-arg-c ::= \"<c>\" until\ntool-pick-arg-t ::= \"<t>\" until\nuntil ::= [^<]* \"</>\"\n\
            tool-pick-arg-n ::= \"<n>\" tool-pick-arg-n-schema \"</>\"\ntool-pick-arg-n-schema ::= [1-9]\n";
        let json = "tool-pick-arg-c ::= \"<c>\" tool-pick-arg-c-schema \"</>\"\n";
        let bound = bind_tagged(plain, json, &tools).unwrap();
        assert!(bound.text.contains("\"red\"") && bound.text.contains("\"7\""), "{}", bound.text);
        assert!(bound.text.contains("tool-pick-arg-t ::= \"<t>\" until"), "{}", bound.text);
        assert_eq!(bind_tagged("root ::= \"x\"", json, &tools), None);
        // A tag that tells texts from other values.
        let told = plain.replace("\"<c>\" until", "(\"<c\" \" text>\") until");
        let bound = bind_tagged(&told, &json.replace("<c>", "<c json>"), &tools).unwrap();
        assert!(bound.text.contains("\" text>\"") && !bound.text.contains("<c json>"), "{}", bound.text);
    }
}
