//! Schemas of several: `anyOf`, `oneOf`, `allOf`, and the shapes that the arguments themselves may have.
//!
//! Invariant: what fits one of the options fits what becomes of them.

use serde_json::{Map, Value, json};

use super::{Impossible, Work};

impl Work<'_> {
    pub(super) fn any_of(
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

    /// All parts at once, as far as they do not contradict.
    pub(super) fn all_of(
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

    /// Vertex refuses a schema with `anyOf` and anything beside it. What stands beside goes into the options; where that
    /// is more than words, it is kept and the options are lost.
    pub(super) fn leave_options_alone(&mut self, out: &mut Map<String, Value>) {
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
    pub(super) fn merge_options(&mut self, out: &mut Map<String, Value>) {
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
