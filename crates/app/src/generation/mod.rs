//! How a model writes: the settings of a model and of a conversation, laid over each other.
//!
//! Invariant: what can't be used is left out and told, never guessed; keys of other versions are kept.

pub mod check;
mod key;
mod presets;
mod typed;
pub mod usual;

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::view::{PresetView, Problem, SettingKey, SettingOrigin, SettingView};
pub use presets::{all as all_presets, built_in};
pub use typed::projector_named;
pub use usual::Known;

/// The values of one level by the names of their settings.
pub type Entry = Map<String, Value>;

/// All levels, the weakest first.
#[derive(Clone, Debug, Default)]
pub struct Levels {
    /// What is known of the model.
    pub known: Known,
    /// All presets.
    pub presets: Vec<PresetView>,
    /// The settings of the model.
    pub model: Entry,
    /// The settings of the conversation.
    pub conversation: Entry,
    /// What was said for this run.
    pub run: Entry,
}

/// The values that hold.
#[derive(Clone, Debug, Default)]
pub struct Effective {
    values: BTreeMap<SettingKey, (Value, SettingOrigin)>,
    /// What was written but can't be used.
    pub problems: Vec<Problem>,
}

impl Levels {
    /// The names of the presets.
    pub fn preset_names(&self) -> Vec<String> {
        self.presets.iter().map(|preset| preset.name.clone()).collect()
    }

    /// What holds in the end.
    pub fn effective(&self) -> Effective {
        let mut out = self.of_model();
        self.lay(&mut out, &self.conversation, &SettingOrigin::Conversation);
        self.lay(&mut out, &self.run, &SettingOrigin::Run);
        out
    }

    /// What holds for the model alone.
    fn of_model(&self) -> Effective {
        let mut out = self.usual();
        self.lay(&mut out, &self.model, &SettingOrigin::Model);
        out
    }

    fn usual(&self) -> Effective {
        let mut out = Effective::default();
        self.lay(&mut out, &usual::usual(self.known), &SettingOrigin::Usual);
        out
    }

    /// A level over those before; its preset lies beneath what it sets itself.
    fn lay(&self, out: &mut Effective, entry: &Entry, origin: &SettingOrigin) {
        let preset = entry.get("preset").and_then(Value::as_str);
        if let Some(preset) = preset.and_then(|name| self.presets.iter().find(|preset| preset.name == name)) {
            let name = preset.name.clone();
            let of_preset = match origin {
                SettingOrigin::Usual
                | SettingOrigin::File
                | SettingOrigin::Model
                | SettingOrigin::ModelPreset { .. } => SettingOrigin::ModelPreset { name },
                SettingOrigin::Conversation
                | SettingOrigin::ConversationPreset { .. }
                | SettingOrigin::Run => SettingOrigin::ConversationPreset { name },
            };
            self.put(out, &preset.settings, &of_preset);
        }
        self.put(out, entry, origin);
    }

    fn put(&self, out: &mut Effective, entry: &Entry, origin: &SettingOrigin) {
        let names = self.preset_names();
        for (name, value) in entry {
            // A key of another version.
            let Some(key) = SettingKey::named(name) else { continue };
            match check::value(key, value, self.known.trained, &names) {
                Ok(value) => {
                    out.unset_rival(key);
                    out.values.insert(key, (value, origin.clone()));
                }
                Err(problem) => out.problems.push(problem),
            }
        }
    }

    /// Everything as a shell shows it, for the level of the conversation or of the model.
    pub fn views(&self, level: Level) -> Vec<SettingView> {
        let (effective, otherwise, here) = match level {
            Level::Conversation => (self.effective(), self.of_model(), &self.conversation),
            Level::Model => (self.of_model(), self.usual(), &self.model),
        };
        let names = self.preset_names();
        let view = |key: SettingKey| SettingView {
            key,
            kind: key.kind(self.known.trained, &names),
            value: effective.get(key).cloned().unwrap_or_default(),
            origin: effective.values.get(&key).map_or(SettingOrigin::Usual, |(_, origin)| origin.clone()),
            otherwise: otherwise.get(key).cloned().unwrap_or_default(),
            set_here: here.contains_key(&key.name()),
            per_conversation: key.per_conversation(),
            reloads: key.reloads(),
        };
        let shown = |key: &SettingKey| level == Level::Model || key.per_conversation();
        SettingKey::ALL.into_iter().filter(shown).map(view).collect()
    }
}

/// Where something is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// For a model.
    Model,
    /// For a conversation.
    Conversation,
}

impl Effective {
    /// The value that holds.
    pub fn get(&self, key: SettingKey) -> Option<&Value> {
        self.values.get(&key).map(|(value, _)| value)
    }

    /// Whether somebody set it.
    pub fn is_set(&self, key: SettingKey) -> bool {
        self.values.get(&key).is_some_and(|(_, origin)| *origin != SettingOrigin::Usual)
    }

    /// A schema takes the place of a grammar, and the other way round.
    fn unset_rival(&mut self, key: SettingKey) {
        if let Some(rival) = rival(key) {
            self.values.remove(&rival);
        }
    }
}

/// The setting that can't hold beside this one.
fn rival(key: SettingKey) -> Option<SettingKey> {
    if key == SettingKey::JsonSchema {
        Some(SettingKey::Grammar)
    } else if key == SettingKey::Grammar {
        Some(SettingKey::JsonSchema)
    } else {
        None
    }
}

/// Writes checked changes into a level.
pub fn change(entry: &mut Entry, changes: Vec<(SettingKey, Option<Value>)>) {
    for (key, value) in changes {
        match value {
            Some(value) => {
                if let Some(rival) = rival(key) {
                    entry.shift_remove(&rival.name());
                }
                entry.insert(key.name(), value);
            }
            None => _ = entry.shift_remove(&key.name()),
        }
    }
}
