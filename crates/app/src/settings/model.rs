//! The models of the settings: files, and models of providers.
//!
//! Invariant: a model has one source; keys we don't know are kept.

use std::path::{Path, PathBuf};

use lectern_core::{ModelId, ToolMode};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::generation;
use crate::view::{ModelFacts, Price, ProviderId, SettingKey};

/// A model that the user added.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub struct ModelEntry {
    /// Our id.
    pub id: ModelId,
    /// Where it is.
    pub source: ModelSource,
    /// How the model is used.
    pub options: ModelOptions,
}

/// Where a model is.
#[derive(Clone, Debug, PartialEq)]
pub enum ModelSource {
    /// A GGUF file, which stays where it is.
    File(PathBuf),
    /// At a provider.
    Remote(RemoteEntry),
}

/// A model of a provider.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RemoteEntry {
    /// One of [`super::Settings::providers`].
    pub provider: ProviderId,
    /// The provider's name for it.
    pub model: String,
    /// The user's name for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What it costs, if the user said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// What the user, or the provider's list, says that it can.
    #[serde(default, skip_serializing_if = "ModelFacts::is_empty")]
    pub facts: ModelFacts,
    /// Keys of other versions, kept as they are.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl RemoteEntry {
    /// A model of which the user said nothing yet.
    pub fn new(provider: ProviderId, model: &str) -> Self {
        Self {
            provider,
            model: model.to_owned(),
            name: None,
            price: None,
            facts: ModelFacts::default(),
            other: Map::new(),
        }
    }

    /// Whether it is this model of this provider, whatever is said of it.
    pub fn is(&self, provider: &ProviderId, model: &str) -> bool {
        self.provider == *provider && self.model == model
    }
}

impl ModelEntry {
    /// A file, used as it is.
    pub fn of_file(id: ModelId, path: &Path) -> Self {
        Self { id, source: ModelSource::File(path.to_owned()), options: ModelOptions::default() }
    }

    /// The file; none for a remote model.
    pub fn path(&self) -> Option<&Path> {
        match &self.source {
            ModelSource::File(path) => Some(path),
            ModelSource::Remote(_) => None,
        }
    }

    /// The model of a provider; none for a file.
    pub fn remote(&self) -> Option<&RemoteEntry> {
        match &self.source {
            ModelSource::File(_) => None,
            ModelSource::Remote(remote) => Some(remote),
        }
    }

    pub(crate) fn remote_mut(&mut self) -> Option<&mut RemoteEntry> {
        match &mut self.source {
            ModelSource::File(_) => None,
            ModelSource::Remote(remote) => Some(remote),
        }
    }
}

/// The shape in the file.
#[derive(Serialize, Deserialize)]
struct Written {
    id: ModelId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    path: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    remote: Option<RemoteEntry>,
    #[serde(flatten)]
    options: ModelOptions,
}

impl TryFrom<Written> for ModelEntry {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        let Written { id, path, remote, options } = written;
        let source = match (path, remote) {
            (Some(path), None) => ModelSource::File(path),
            (None, Some(remote)) => ModelSource::Remote(remote),
            (Some(_), Some(_)) => return Err(format!("the model `{id}` has a `path` and a `remote`")),
            (None, None) => return Err(format!("the model `{id}` has neither a `path` nor a `remote`")),
        };
        Ok(Self { id, source, options })
    }
}

impl From<ModelEntry> for Written {
    fn from(entry: ModelEntry) -> Self {
        let (path, remote) = match entry.source {
            ModelSource::File(path) => (Some(path), None),
            ModelSource::Remote(remote) => (None, Some(remote)),
        };
        Self { id: entry.id, path, remote, options: entry.options }
    }
}

/// How one model is used. What is unset is found out from the model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelOptions {
    /// How tools are brought to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_mode: Option<ToolMode>,
    /// Tokens of context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_length: Option<u32>,
    /// How it writes, by the names of [`crate::view::SettingKey`].
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub generation: generation::Entry,
    /// Where older versions kept some of these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampling: Option<generation::Entry>,
    /// Keys of other versions, kept as they are.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl ModelOptions {
    /// All that is set, wherever it stands.
    pub fn entry(&self) -> generation::Entry {
        let mut entry = self.sampling.clone().unwrap_or_default();
        if let Some(length) = self.context_length {
            entry.insert(SettingKey::ContextLength.name(), length.into());
        }
        if let Some(Ok(mode)) = self.tool_mode.map(serde_json::to_value) {
            entry.insert(SettingKey::ToolMode.name(), mode);
        }
        entry.extend(self.generation.clone());
        entry
    }

    /// Replaces all that is set.
    pub fn set_entry(&mut self, mut entry: generation::Entry) {
        let mut take = |key: SettingKey| entry.shift_remove(&key.name());
        self.context_length =
            take(SettingKey::ContextLength).and_then(|value| serde_json::from_value(value).ok());
        self.tool_mode = take(SettingKey::ToolMode).and_then(|value| serde_json::from_value(value).ok());
        self.sampling = None;
        self.generation = entry;
    }

    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sources_are_read_and_written_as_they_were() {
        let text = r#"[{"id":"m","path":"/m.gguf","draft":"/d.gguf"},{"id":"r","remote":{"provider":"p","model":"g/x",
            "price":{"input":0.3,"output":2.5,"currency":"EUR"},"facts":{"tools":false},"colour":"blue"},"tool_mode":"prompted"}]"#;
        let entries: Vec<ModelEntry> = serde_json::from_str(text).unwrap();
        assert_eq!(entries[0].path(), Some(Path::new("/m.gguf")));
        assert_eq!(entries[1].remote().unwrap().facts.tools, Some(false));
        let written: Value = serde_json::to_value(&entries).unwrap();
        assert_eq!(written, serde_json::from_str::<Value>(text).unwrap());
    }

    #[test]
    fn a_model_has_one_source() {
        for text in [r#"{"id":"m"}"#, r#"{"id":"m","path":"/m","remote":{"provider":"p","model":"x"}}"#] {
            let error = serde_json::from_str::<ModelEntry>(text).unwrap_err().to_string();
            assert!(error.contains("the model `m` has"), "{error}");
        }
    }
}
