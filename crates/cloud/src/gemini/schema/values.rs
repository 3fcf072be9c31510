//! What a schema says of values: lists of them, what is in objects and lists, bounds.
//!
//! Invariant: a bound that the subset has no word for is widened, never narrowed.

use serde_json::{Map, Value, json};

use super::{Impossible, Work};

impl Work<'_> {
    /// Only texts can be listed.
    pub(super) fn options(
        &mut self,
        options: &[Value],
        fields: &Map<String, Value>,
        out: &mut Map<String, Value>,
    ) {
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

    pub(super) fn properties(
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

    pub(super) fn items(
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
    pub(super) fn tuple(
        &mut self,
        value: &Value,
        out: &mut Map<String, Value>,
        depth: usize,
    ) -> Result<(), Impossible> {
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

    pub(super) fn additional(
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

    /// For whole numbers the bound can be moved; else the bound itself is let in.
    pub(super) fn exclusive(
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
}
