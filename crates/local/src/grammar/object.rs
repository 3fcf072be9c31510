//! Objects: their properties in the order of the schema, and keys that the schema does not name.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::gbnf::{class, in_class};
use super::pythonic;
use super::schema::{Compiler, Impossible};

/// How deep values are that a schema says nothing about.
const DEEPEST_ANY: usize = 5;

/// Fields that may stand, beyond which none is written: at each comma all that may follow are tried.
const MOST_OPTIONAL: usize = 200;
/// Letters of declared names, beyond which a name that is none of them is not told apart.
const MOST_LETTERS: usize = 2000;
/// The longest declared name that is told apart from others.
const LONGEST_NAME: usize = 200;

fn is_filled(list: Option<&Value>) -> bool {
    list.and_then(Value::as_array).is_some_and(|list| !list.is_empty())
}

fn may_not_be_empty(schema: &Map<String, Value>) -> bool {
    schema.get("minProperties").and_then(Value::as_f64).is_some_and(|least| least >= 1.0)
}

/// A field that may or must stand.
struct Field {
    rule: String,
    required: bool,
}

impl Compiler<'_> {
    /// Objects of a schema.
    pub(super) fn object(&mut self, schema: &Map<String, Value>) -> Result<String, Impossible> {
        let keywords = std::mem::take(&mut self.keywords);
        let out = if keywords { self.call(schema) } else { self.braced(schema) };
        self.keywords = keywords;
        out
    }

    /// The arguments of a call as Python writes them.
    fn call(&mut self, schema: &Map<String, Value>) -> Result<String, Impossible> {
        let fields = self.fields(schema, true)?;
        let least = schema.get("minProperties").and_then(Value::as_u64).unwrap_or(0);
        let most = schema.get("maxProperties").and_then(Value::as_u64);
        let required = fields.iter().filter(|field| field.required).count() as u64;
        if most.is_some_and(|most| most < required.max(least)) {
            return Err(Impossible);
        }
        if fields.is_empty()
            && let Some(value) = self.undeclared(schema)
        {
            if least > 1 {
                self.leave_open("minProperties");
            }
            return Ok(pythonic::one_keyword(self.rules, &value, least > 0));
        }
        if least > required.max(1) {
            self.leave_open("minProperties");
        }
        if most.is_some_and(|most| most < fields.len() as u64) {
            self.leave_open("maxProperties");
        }
        let space = self.rules.space();
        let body = self.chain(&fields, None, least > 0, &space).ok_or(Impossible)?;
        Ok(self.rules.add(format!("\"(\" {space} {body} {space} \")\"")))
    }

    /// The value of an argument that is not declared, where a schema lets some stand.
    fn undeclared(&mut self, schema: &Map<String, Value>) -> Option<String> {
        if schema.contains_key("patternProperties") || schema.contains_key("propertyNames") {
            self.leave_open("the names of arguments");
        }
        match schema.get("additionalProperties") {
            Some(Value::Bool(false)) => None,
            None if schema.contains_key("properties") && !may_not_be_empty(schema) => None,
            None | Some(Value::Bool(true)) => Some(self.any(2)),
            Some(schema) => self.under("*", schema).ok(),
        }
    }

    fn braced(&mut self, schema: &Map<String, Value>) -> Result<String, Impossible> {
        let fields = self.fields(schema, false)?;
        let extra = self.extra(schema)?;
        let least = schema.get("minProperties").and_then(Value::as_u64).unwrap_or(0);
        let most = schema.get("maxProperties").and_then(Value::as_u64);
        // A rule for the names is not asked whether it takes those that are declared.
        let named = !fields.is_empty() || schema.contains_key("patternProperties");
        if named && schema.get("propertyNames").is_some_and(|names| *names != Value::Bool(true)) {
            self.leave_open("propertyNames");
        }
        let required = fields.iter().filter(|field| field.required).count() as u64;
        if most.is_some_and(|most| most < required.max(least)) {
            return Err(Impossible);
        }
        if least > required.max(1) || (extra.is_none() && most.is_some_and(|most| most < fields.len() as u64))
        {
            self.leave_open(if least > 1 { "minProperties" } else { "maxProperties" });
        }
        let space = self.rules.space();
        if fields.is_empty()
            && let Some(extra) = &extra
        {
            return Ok(self.map(extra, least, most, &space));
        }
        if extra.is_some() && most.is_some() {
            self.leave_open("maxProperties");
        }
        let body = self.chain(&fields, extra.as_deref(), least > 0, &space).ok_or(Impossible)?;
        Ok(self.rules.add(format!("\"{{\" {space} {body} {space} \"}}\"")))
    }

    /// The declared properties. One that no value fits is left out, or makes the object impossible.
    fn fields(&mut self, schema: &Map<String, Value>, keywords: bool) -> Result<Vec<Field>, Impossible> {
        let empty = Map::new();
        let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&empty);
        let required: BTreeSet<&str> = schema
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let mut out = Vec::new();
        let mut optional = 0;
        for (name, property) in properties {
            let required = required.contains(name.as_str());
            optional += usize::from(!required);
            if !required && optional > MOST_OPTIONAL {
                continue;
            }
            match self.under(name, property) {
                Ok(value) => out.push(Field { rule: self.field(name, &value, keywords), required }),
                Err(Impossible) if required => return Err(Impossible),
                Err(Impossible) => {}
            }
        }
        let rest = schema.get("additionalProperties").cloned().unwrap_or(Value::Bool(true));
        for name in required.into_iter().filter(|name| !properties.contains_key(*name)) {
            let value = self.under(name, &rest)?;
            out.push(Field { rule: self.field(name, &value, keywords), required: true });
        }
        Ok(out)
    }

    fn field(&mut self, name: &str, value: &str, keywords: bool) -> String {
        if keywords {
            return self.rules.add(pythonic::keyword(name, value));
        }
        let space = self.rules.space();
        let key = self.itself(&Value::String(name.to_owned()));
        self.rules.add(format!("{key} \":\" {space} {value}"))
    }

    /// A field with a key that is not declared. A schema that declares properties and does not speak of others is
    /// taken at its word; one that says nothing allows any.
    fn extra(&mut self, schema: &Map<String, Value>) -> Result<Option<String>, Impossible> {
        let declared: Vec<&str> = schema
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .map(|(name, _)| name.as_str())
            .collect();
        let patterns = schema.get("patternProperties").and_then(Value::as_object);
        if let Some(patterns) = patterns.filter(|patterns| !patterns.is_empty()) {
            return Ok(self.patterned(patterns, !declared.is_empty()));
        }
        let value = match schema.get("additionalProperties") {
            Some(Value::Bool(false)) => return Ok(None),
            None if !declared.is_empty() => return Ok(None),
            None if is_filled(schema.get("required")) => return Ok(None),
            None if schema.contains_key("properties") && !may_not_be_empty(schema) => return Ok(None),
            None | Some(Value::Bool(true)) => self.any(DEEPEST_ANY),
            Some(schema) => match self.under("*", schema) {
                Ok(value) => value,
                Err(Impossible) => return Ok(None),
            },
        };
        let space = self.rules.space();
        let key = match schema.get("propertyNames") {
            Some(Value::Object(names)) => {
                let mut names = names.clone();
                names.entry("type").or_insert_with(|| Value::String("string".to_owned()));
                match self.under("*", &Value::Object(names)) {
                    Ok(key) => key,
                    Err(Impossible) => return Ok(None),
                }
            }
            Some(Value::Bool(false)) => return Ok(None),
            Some(_) | None if declared.is_empty() => self.any_string(),
            Some(_) | None => {
                let letters: usize = declared.iter().map(|name| name.len()).sum();
                if letters > MOST_LETTERS || declared.iter().any(|name| name.len() > LONGEST_NAME) {
                    self.leave_open("additionalProperties");
                    self.any_string()
                } else {
                    self.other_key(&declared)
                }
            }
        };
        Ok(Some(self.rules.add(format!("{key} \":\" {space} {value}"))))
    }

    /// Keys that match an expression.
    fn patterned(&mut self, patterns: &Map<String, Value>, beside_declared: bool) -> Option<String> {
        if patterns.len() > 1 || beside_declared {
            self.leave_open("patternProperties");
        }
        let space = self.rules.space();
        let mut choices = Vec::new();
        for (pattern, schema) in patterns {
            let mut key = Map::new();
            key.insert("type".to_owned(), Value::String("string".to_owned()));
            key.insert("pattern".to_owned(), Value::String(pattern.clone()));
            let key = self.under("*", &Value::Object(key));
            if let (Ok(key), Ok(value)) = (key, self.under("*", schema)) {
                choices.push(format!("{key} \":\" {space} {value}"));
            }
        }
        (!choices.is_empty()).then(|| self.rules.add(choices.join(" | ")))
    }

    /// An object of undeclared keys only.
    fn map(&mut self, extra: &str, least: u64, most: Option<u64>, space: &str) -> String {
        let empty = format!("\"{{\" {space} \"}}\"");
        if most == Some(0) {
            return self.rules.add(empty);
        }
        let fewest = least.clamp(1, 200) - 1;
        let more = match most {
            Some(most) => format!("{{{fewest},{}}}", most.min(200).max(fewest + 1) - 1),
            None if fewest == 0 => "*".to_owned(),
            None => format!("{{{fewest},}}"),
        };
        let filled = format!("\"{{\" {space} {extra} (\",\" {space} {extra}){more} {space} \"}}\"");
        self.rules.add(if least == 0 { format!("{empty} | {filled}") } else { filled })
    }

    /// The fields one after the other, each optional one there or not. None when the object would be empty and may
    /// not be.
    fn chain(&mut self, fields: &[Field], extra: Option<&str>, filled: bool, space: &str) -> Option<String> {
        let mut more = match extra {
            Some(extra) => self.rules.add(format!("(\",\" {space} {extra})*")),
            None => self.rules.add("\"\"".to_owned()),
        };
        let mut first = match extra {
            Some(extra) if filled => Some(self.rules.add(format!("{extra} {more}"))),
            Some(extra) => Some(self.rules.add(format!("({extra} {more})?"))),
            None if filled => None,
            None => Some(self.rules.add("\"\"".to_owned())),
        };
        for field in fields.iter().rev() {
            let starting = format!("{} {more}", field.rule);
            let going_on = format!("\",\" {space} {starting}");
            if field.required {
                first = Some(self.rules.add(starting));
                more = self.rules.add(going_on);
            } else {
                first = Some(match first {
                    Some(later) => self.rules.add(format!("{starting} | {later}")),
                    None => self.rules.add(starting),
                });
                more = self.rules.add(format!("{going_on} | {more}"));
            }
        }
        first
    }

    /// A key that is none of these.
    fn other_key(&mut self, names: &[&str]) -> String {
        let letters: Vec<Vec<char>> = names
            .iter()
            .map(|name| {
                let quoted = Value::String((*name).to_owned()).to_string();
                quoted[1..quoted.len() - 1].chars().collect()
            })
            .collect();
        let names: Vec<&[char]> = letters.iter().map(Vec::as_slice).collect();
        let rest = self.other_than(&names, true);
        self.rules.add(format!("\"\\\"\" {rest}"))
    }

    fn other_than(&mut self, names: &[&[char]], at_start: bool) -> String {
        let plain = self.rules.add(r#"[^\"\\\x00-\x1F\x7F]"#.to_owned());
        let firsts: BTreeSet<char> = names.iter().filter_map(|name| name.first().copied()).collect();
        let mut choices = Vec::new();
        let others: String = firsts.iter().map(|letter| in_class(*letter)).collect();
        choices.push(format!(r#"[^\"\\\x00-\x1F\x7F{others}] {plain}* "\"""#));
        // A backslash begins an escape, which may stand for any character: such keys are not written.
        for first in firsts.into_iter().filter(|first| *first != '\\') {
            let rests: Vec<&[char]> =
                names.iter().filter(|name| name.first() == Some(&first)).map(|name| &name[1..]).collect();
            let rest = self.other_than(&rests, false);
            choices.push(format!("{} {rest}", class(&[(first, first)])));
        }
        if !at_start && !names.iter().any(|name| name.is_empty()) {
            choices.push("\"\\\"\"".to_owned());
        }
        self.rules.add(choices.join(" | "))
    }
}
