//! The values that hold, as the core and the engine want them.

use std::time::Duration;

use lectern_core::{AnswerForm, ExposurePolicy, Sampling, ThinkingOptions, ToolExposure, ToolMode, ToolName};
use lectern_local::{FormatOptions, LocalOptions, ProjectorChoice, SpeedOptions};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Effective, Entry};
use crate::view::SettingKey;

/// What a value of [`SettingKey::Projector`] means.
pub fn projector_named(said: &str) -> ProjectorChoice {
    if said == "none" { ProjectorChoice::Off } else { ProjectorChoice::File(said.into()) }
}

impl Effective {
    /// How tokens are chosen.
    pub fn sampling(&self) -> Sampling {
        Sampling {
            temperature: self.read(SettingKey::Temperature),
            top_p: self.read(SettingKey::TopP),
            top_k: self.read(SettingKey::TopK),
            min_p: self.read(SettingKey::MinP),
            repeat_penalty: self.read(SettingKey::RepeatPenalty),
            frequency_penalty: self.read(SettingKey::FrequencyPenalty),
            presence_penalty: self.read(SettingKey::PresencePenalty),
            seed: self.read(SettingKey::Seed),
            max_tokens: self.read(SettingKey::MaxTokens),
            stop: self.read(SettingKey::Stop).unwrap_or_default(),
        }
    }

    /// Whether and how long the model may think.
    pub fn thinking(&self) -> ThinkingOptions {
        ThinkingOptions {
            enabled: self.read(SettingKey::Thinking),
            budget: self.read(SettingKey::ThinkingBudget),
        }
    }

    /// The form of the answer.
    pub fn answer(&self) -> AnswerForm {
        match (self.get(SettingKey::JsonSchema), self.read(SettingKey::Grammar)) {
            (Some(schema), _) => AnswerForm::JsonSchema(schema.clone()),
            (None, Some(grammar)) => AnswerForm::Grammar(grammar),
            (None, None) => AnswerForm::Free,
        }
    }

    /// Which tools the model gets to see, and when.
    pub fn exposure(&self) -> ExposurePolicy {
        let usual = ExposurePolicy::default();
        let pinned: Vec<String> = self.read(SettingKey::PinnedTools).unwrap_or_default();
        ExposurePolicy {
            tools: self.read::<ToolExposure>(SettingKey::Tools).unwrap_or(usual.tools),
            relevant: self.read(SettingKey::RelevantTools).unwrap_or(usual.relevant),
            gate: self.read(SettingKey::Gate).unwrap_or(usual.gate),
            pinned: pinned.into_iter().map(ToolName::from).collect(),
        }
    }

    /// How tools are brought to the model, if that was set.
    pub fn tool_mode(&self) -> Option<ToolMode> {
        self.read(SettingKey::ToolMode)
    }

    /// The user's own instructions.
    pub fn system(&self) -> Option<String> {
        self.read(SettingKey::System)
    }

    /// What the trace says beside how tokens are chosen: what somebody set of how the model is loaded and how it calls.
    pub fn others(&self, tool_mode: ToolMode) -> Entry {
        let keys = SettingKey::ALL.into_iter().filter(|key| {
            // The context that the model has in the end stands with the other settings.
            *key == SettingKey::Preset || (key.reloads() && *key != SettingKey::ContextLength)
        });
        let shown = |key: SettingKey| {
            let value = self.get(key)?;
            // A template is long; that it is not the file's own is what counts.
            let value = if key == SettingKey::Template { Value::Bool(true) } else { value.clone() };
            Some((key.name(), value))
        };
        let mut out: Entry = keys.filter_map(shown).collect();
        if let Ok(mode) = serde_json::to_value(tool_mode) {
            out.insert(SettingKey::ToolMode.name(), mode);
        }
        if tool_mode == ToolMode::Prompted {
            out.entry(SettingKey::CallForm.name()).or_insert_with(|| "json".into());
        }
        out
    }

    /// How the model is loaded.
    pub fn local(&self) -> LocalOptions {
        let cache = self.read(SettingKey::KvType);
        LocalOptions {
            context: self.read(SettingKey::ContextLength),
            speed: SpeedOptions {
                lookup: self.read(SettingKey::Lookup).unwrap_or_default(),
                guesses: self.read(SettingKey::Guesses),
                draft: self.read(SettingKey::Draft),
                mtp: self.read(SettingKey::Mtp).unwrap_or_default(),
                keys: self.read(SettingKey::KvKeys).or(cache),
                values: self.read(SettingKey::KvValues).or(cache),
                flash_attention: self.read(SettingKey::FlashAttention).unwrap_or_default(),
                gpu_layers: self.read(SettingKey::GpuLayers),
                threads: self.read(SettingKey::Threads),
                batch_threads: self.read(SettingKey::BatchThreads),
                waiting: self.read(SettingKey::Waiting).unwrap_or_default(),
                loading: self.read(SettingKey::Loading).unwrap_or_default(),
                idle_unload: self.read(SettingKey::IdleMinutes).map(minutes),
            },
            format: FormatOptions {
                template: self.read(SettingKey::Template),
                call_form: self.read(SettingKey::CallForm),
                ..FormatOptions::default()
            },
            projector: self.projector(),
            ..LocalOptions::default()
        }
    }

    /// With what the model sees images.
    pub fn projector(&self) -> ProjectorChoice {
        self.read::<String>(SettingKey::Projector)
            .map_or(ProjectorChoice::Beside, |said| projector_named(&said))
    }

    /// What decides how the model is loaded; when it changes, the model is loaded anew.
    pub fn load_key(&self) -> Vec<(SettingKey, Value)> {
        let keys = SettingKey::ALL.into_iter().filter(|key| key.reloads());
        keys.filter_map(|key| Some((key, self.get(key)?.clone()))).collect()
    }

    fn read<T: DeserializeOwned>(&self, key: SettingKey) -> Option<T> {
        serde_json::from_value(self.get(key)?.clone()).ok()
    }
}

fn minutes(minutes: u64) -> Duration {
    Duration::from_secs(minutes * 60)
}
