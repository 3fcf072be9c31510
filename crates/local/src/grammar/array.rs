//! Arrays: lists, tuples, and unique items of a few values.

use serde_json::{Map, Value};

use super::listed::same;
use super::schema::{Compiler, DEEPEST_SCHEMA, Impossible};

/// More items than this are not written.
const MOST_ITEMS: u64 = 400;

impl Compiler<'_> {
    pub(super) fn array(&mut self, schema: &Map<String, Value>) -> Result<String, Impossible> {
        let number = |key: &str| schema.get(key).and_then(Value::as_f64).map(|number| number as u64);
        let least = number("minItems").unwrap_or(0);
        let most = number("maxItems");
        if most.is_some_and(|most| most < least) {
            return Err(Impossible);
        }
        // Older drafts write the first items as a list of `items`.
        let every = Value::Bool(true);
        let (first, rest) = match (schema.get("prefixItems"), schema.get("items")) {
            (None, Some(Value::Array(first))) => {
                (first.clone(), schema.get("additionalItems").unwrap_or(&every))
            }
            (Some(Value::Array(first)), rest) => (first.clone(), rest.unwrap_or(&every)),
            (_, rest) => (Vec::new(), rest.unwrap_or(&every)),
        };
        if schema.get("uniqueItems") == Some(&Value::Bool(true)) && most != Some(1) {
            if let Some(rule) = self.subset(rest, least, most).filter(|_| first.is_empty()) {
                return Ok(rule);
            }
            self.leave_open("uniqueItems");
        }
        let space = self.rules.space();
        if first.is_empty() {
            return self.list(rest, least, most, &space);
        }
        // A tuple: written up to the least length, or whole.
        let count = (least.max(1).max(first.len() as u64)).min(most.unwrap_or(u64::MAX)) as usize;
        if least > DEEPEST_SCHEMA as u64 {
            self.leave_open("minItems");
        }
        let mut items = Vec::new();
        for place in 0..count.min(DEEPEST_SCHEMA) {
            match self.value(first.get(place).unwrap_or(rest)) {
                Ok(item) => items.push(item),
                Err(Impossible) if place as u64 >= least => break,
                Err(Impossible) => return Err(Impossible),
            }
        }
        Ok(self.rules.add(format!("\"[\" {space} {} {space} \"]\"", items.join(&format!(" \",\" {space} ")))))
    }

    fn list(
        &mut self,
        items: &Value,
        least: u64,
        most: Option<u64>,
        space: &str,
    ) -> Result<String, Impossible> {
        let empty = format!("\"[\" {space} \"]\"");
        let item = match self.value(items) {
            Ok(item) if most != Some(0) => item,
            Ok(_) | Err(Impossible) if least == 0 => return Ok(self.rules.add(empty)),
            Ok(_) | Err(Impossible) => return Err(Impossible),
        };
        if least > MOST_ITEMS {
            self.leave_open("minItems");
        }
        let fewest = least.clamp(1, MOST_ITEMS) - 1;
        let more = match most {
            Some(most) => format!("{{{fewest},{}}}", most.min(MOST_ITEMS).max(fewest + 1) - 1),
            None if fewest == 0 => "*".to_owned(),
            None => format!("{{{fewest},}}"),
        };
        let filled = format!("\"[\" {space} {item} (\",\" {space} {item}){more} {space} \"]\"");
        Ok(self.rules.add(if least == 0 { format!("{empty} | {filled}") } else { filled }))
    }

    /// Some of the listed values, each once, in their order: all that a grammar can do for unique items.
    fn subset(&mut self, items: &Value, least: u64, most: Option<u64>) -> Option<String> {
        let only_listed = |key: &String| key == "enum" || super::flat::is_note(key);
        let mut values: Vec<Value> = Vec::new();
        for value in items.as_object()?.get("enum")?.as_array()? {
            let known = values.len() > DEEPEST_SCHEMA || values.iter().any(|other| same(other, value));
            values.extend((!known).then(|| value.clone()));
        }
        if !items.as_object()?.keys().all(only_listed) {
            return None;
        }
        let enough = most.is_none_or(|most| most >= values.len() as u64);
        if least > 1 || !enough || values.len() > DEEPEST_SCHEMA {
            return None;
        }
        let space = self.rules.space();
        let mut more: Option<String> = None;
        let mut first: Option<String> = None;
        for value in values.iter().rev() {
            let value = self.itself(value);
            let tail = more.clone().map(|more| format!(" {more}?")).unwrap_or_default();
            let starting = format!("{value}{tail}");
            first = Some(match first {
                Some(later) => self.rules.add(format!("{starting} | {later}")),
                None => self.rules.add(starting.clone()),
            });
            let going_on = format!("\",\" {space} {starting}");
            more = Some(match more {
                Some(later) => self.rules.add(format!("{going_on} | {later}")),
                None => self.rules.add(going_on),
            });
        }
        let first = first?;
        let some = if least == 0 { format!("{first}?") } else { first };
        Some(self.rules.add(format!("\"[\" {space} {some} {space} \"]\"")))
    }
}
