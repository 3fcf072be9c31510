//! The curated list: good small models that call tools. `models/curated.json`, which the user's own file overrides.
//!
//! Invariant: an entry of the user's file that can't be read harms nobody but itself.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One model of the list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Curated {
    /// A name for people.
    pub title: String,
    /// `owner/name` on the hub.
    pub repository: String,
    /// The file in it.
    pub file: String,
    /// E.g. `Q4_K_M`.
    pub quantisation: String,
    /// Bytes of the file, about.
    pub size: u64,
    /// Number of weights, about.
    pub parameters: u64,
    /// E.g. `Apache-2.0`.
    pub licence: String,
    /// Language codes.
    #[serde(default)]
    pub languages: Vec<String>,
    /// Bytes of memory that a machine should have.
    pub min_memory: u64,
    /// A sentence about it.
    #[serde(default)]
    pub note: String,
    /// Whether the makers of the list downloaded this very file.
    #[serde(default)]
    pub verified: bool,
    /// Whether it is from the user's file.
    #[serde(skip)]
    pub own: bool,
    /// Takes an entry of the same repository and file off the list.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hidden: bool,
}

/// The list, and what could not be read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CuratedList {
    /// The models.
    pub models: Vec<Curated>,
    /// What is wrong with the user's file: lowercase fragments.
    pub faults: Vec<String>,
}

static BUILT_IN: &str = include_str!("../../../models/curated.json");

/// The list that came with Lectern, with the user's file over it when there is one.
pub fn curated(own: &Path) -> CuratedList {
    let mut list = read(BUILT_IN);
    let text = match std::fs::read_to_string(own) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return list,
        Err(error) => {
            list.faults.push(error.to_string());
            return list;
        }
    };
    let theirs = read(text.strip_prefix('\u{feff}').unwrap_or(&text));
    list.faults.extend(theirs.faults);
    for entry in theirs.models {
        let same = |other: &Curated| other.repository == entry.repository && other.file == entry.file;
        let place = list.models.iter().position(same);
        match (place, entry.hidden) {
            (Some(place), true) => _ = list.models.remove(place),
            (Some(place), false) => list.models[place] = Curated { own: true, ..entry },
            (None, true) => {}
            (None, false) => list.models.push(Curated { own: true, ..entry }),
        }
    }
    list
}

fn read(text: &str) -> CuratedList {
    let mut list = CuratedList::default();
    let value: Value = match serde_json::from_str(text) {
        Ok(value) => value,
        Err(error) => {
            list.faults.push(error.to_string());
            return list;
        }
    };
    let Some(entries) = value.get("models").and_then(Value::as_array) else {
        list.faults.push("there is no list `models` in it".to_owned());
        return list;
    };
    for (number, entry) in entries.iter().enumerate() {
        // What is hidden needs no more than its names.
        let given = match entry.get("hidden").and_then(Value::as_bool).unwrap_or(false) {
            true => with_blanks(entry),
            false => entry.clone(),
        };
        match serde_json::from_value(given) {
            Ok(entry) => list.models.push(entry),
            Err(error) => list.faults.push(format!("entry {}: {error}", number + 1)),
        }
    }
    list
}

fn with_blanks(entry: &Value) -> Value {
    let blank = serde_json::json!({
        "title": "", "repository": "", "file": "", "quantisation": "", "size": 0, "parameters": 0, "licence": "",
        "min_memory": 0,
    });
    let mut all = blank.as_object().cloned().unwrap_or_default();
    all.extend(entry.as_object().cloned().unwrap_or_default());
    Value::Object(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::{is_gguf, quantisation_of};
    use crate::target::Target;

    #[test]
    fn the_list_that_came_with_lectern_is_sound() {
        let list = read(BUILT_IN);
        assert_eq!(list.faults, Vec::<String>::new());
        assert!(list.models.len() >= 6);
        let hub = "https://huggingface.co".parse().unwrap();
        for model in &list.models {
            assert!(
                matches!(Target::parse(&model.repository, &hub), Ok(Target::Repository { .. })),
                "{model:?}"
            );
            assert!(
                is_gguf(&model.file) && quantisation_of(&model.file).as_ref() == Some(&model.quantisation),
                "{model:?}"
            );
            // Four to nine bits a weight, and room for it.
            let bits = model.size as f64 * 8.0 / model.parameters as f64;
            assert!((3.5..9.5).contains(&bits) && model.min_memory > model.size, "{bits} {model:?}");
            assert!(!model.licence.is_empty() && !model.note.is_empty() && !model.languages.is_empty());
        }
    }

    #[test]
    fn the_users_file_changes_adds_and_hides() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("curated.json");
        let (first, second) = {
            let mut models = read(BUILT_IN).models.into_iter();
            (models.next().unwrap(), models.next().unwrap())
        };
        let mine = Curated { title: "Mine".into(), repository: "me/mine".into(), ..first.clone() };
        let changed = Curated { note: "my note".into(), ..second.clone() };
        let hide = serde_json::json!({"repository": first.repository, "file": first.file, "hidden": true});
        let models = serde_json::json!({"models": [mine, changed, hide, {"title": 5}]});
        std::fs::write(&path, models.to_string()).unwrap();
        let list = curated(&path);
        assert_eq!(list.faults.len(), 1);
        assert!(list.faults[0].starts_with("entry 4: "), "{:?}", list.faults);
        assert!(!list.models.iter().any(|model| model.title == first.title));
        assert!(list.models.iter().any(|model| model.own && model.note == "my note"));
        assert_eq!(list.models.last().map(|model| (model.title.as_str(), model.own)), Some(("Mine", true)));
        assert_eq!(curated(&folder.path().join("nothing")).models.len(), read(BUILT_IN).models.len());
    }
}
