//! What can be set: names, ranges, and where each may be set.
//!
//! Invariant: one table for the settings file, the command line and the window.

use lectern_local::KvType;

use crate::view::{SettingKey, SettingKind};

/// Instructions of the user at most.
const LONGEST_TEXT: u32 = 64 * 1024;

impl SettingKey {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Self; 39] = [
        Self::Preset,
        Self::Temperature,
        Self::TopP,
        Self::TopK,
        Self::MinP,
        Self::RepeatPenalty,
        Self::FrequencyPenalty,
        Self::PresencePenalty,
        Self::Seed,
        Self::MaxTokens,
        Self::Stop,
        Self::Thinking,
        Self::ThinkingBudget,
        Self::JsonSchema,
        Self::Grammar,
        Self::System,
        Self::Tools,
        Self::RelevantTools,
        Self::Gate,
        Self::PinnedTools,
        Self::ToolMode,
        Self::ContextLength,
        Self::Lookup,
        Self::Guesses,
        Self::Draft,
        Self::Mtp,
        Self::Projector,
        Self::FlashAttention,
        Self::KvType,
        Self::KvKeys,
        Self::KvValues,
        Self::GpuLayers,
        Self::Threads,
        Self::BatchThreads,
        Self::Waiting,
        Self::Loading,
        Self::IdleMinutes,
        Self::Template,
        Self::CallForm,
    ];

    /// The name in the settings file and on the command line.
    pub fn name(self) -> String {
        match serde_json::to_value(self) {
            Ok(serde_json::Value::String(name)) => name,
            Ok(_) | Err(_) => String::new(),
        }
    }

    /// The setting of this name; `-` may stand for `_`.
    pub fn named(name: &str) -> Option<Self> {
        let name = name.replace('-', "_");
        Self::ALL.into_iter().find(|key| key.name() == name)
    }

    /// What it may be. `trained` is the context that the model was trained for, `presets` are the names of presets.
    pub fn kind(self, trained: Option<u32>, presets: &[String]) -> SettingKind {
        let number = |min, max, step| SettingKind::Number { min, max, step, whole: false };
        let whole = |min, max, step| SettingKind::Number { min, max, step, whole: true };
        let choice = |choices: &[&str]| SettingKind::Choice {
            choices: choices.iter().map(|choice| (*choice).to_owned()).collect(),
        };
        match self {
            Self::Preset => SettingKind::Choice { choices: presets.to_vec() },
            Self::Temperature => number(0.0, 10.0, 0.05),
            Self::TopP | Self::MinP => number(0.0, 1.0, 0.01),
            Self::TopK => whole(0.0, 1_000_000.0, 1.0),
            Self::RepeatPenalty => number(0.1, 5.0, 0.01),
            Self::FrequencyPenalty | Self::PresencePenalty => number(-2.0, 2.0, 0.05),
            Self::Seed => whole(0.0, f64::from(u32::MAX), 1.0),
            Self::MaxTokens => whole(1.0, 1_000_000.0, 64.0),
            Self::ThinkingBudget => whole(0.0, 1_000_000.0, 64.0),
            Self::Stop => SettingKind::Texts { max: 16 },
            Self::PinnedTools => SettingKind::Texts { max: 64 },
            Self::Thinking | Self::Gate | Self::Mtp => SettingKind::Flag,
            Self::JsonSchema => SettingKind::Object,
            Self::Grammar | Self::System | Self::Template => SettingKind::Text { max_bytes: LONGEST_TEXT },
            Self::Tools => choice(&["always", "deciding", "last_user", "relevant", "off"]),
            Self::RelevantTools => whole(1.0, 256.0, 1.0),
            Self::ToolMode => choice(&["native", "prompted", "off"]),
            Self::ContextLength => whole(256.0, f64::from(trained.unwrap_or(10_000_000).max(256)), 1024.0),
            Self::Lookup | Self::FlashAttention => choice(&["auto", "on", "off"]),
            Self::Draft | Self::Projector => SettingKind::Text { max_bytes: 4_096 },
            Self::KvType | Self::KvKeys | Self::KvValues => choice(&KvType::ALL.map(KvType::name)),
            Self::Guesses => whole(1.0, 64.0, 1.0),
            Self::Waiting => choice(&["auto", "asleep", "awake"]),
            Self::Loading => choice(&["mapped", "locked", "copied"]),
            Self::GpuLayers => whole(0.0, 1_000.0, 1.0),
            Self::Threads | Self::BatchThreads => whole(1.0, 512.0, 1.0),
            Self::IdleMinutes => whole(1.0, 10_080.0, 1.0),
            Self::CallForm => choice(&["json", "pythonic"]),
        }
    }

    /// Whether each conversation can have its own. What decides how a model is loaded can't.
    pub fn per_conversation(self) -> bool {
        !self.reloads()
    }

    /// Whether the model is loaded anew when it changes.
    pub fn reloads(self) -> bool {
        match self {
            Self::ContextLength
            | Self::Lookup
            | Self::Guesses
            | Self::Draft
            | Self::Mtp
            | Self::Projector
            | Self::FlashAttention
            | Self::KvType
            | Self::KvKeys
            | Self::KvValues
            | Self::GpuLayers
            | Self::Threads
            | Self::BatchThreads
            | Self::Waiting
            | Self::Loading
            | Self::IdleMinutes
            | Self::Template
            | Self::CallForm => true,
            Self::Preset
            | Self::Temperature
            | Self::TopP
            | Self::TopK
            | Self::MinP
            | Self::RepeatPenalty
            | Self::FrequencyPenalty
            | Self::PresencePenalty
            | Self::Seed
            | Self::MaxTokens
            | Self::Stop
            | Self::Thinking
            | Self::ThinkingBudget
            | Self::JsonSchema
            | Self::Grammar
            | Self::System
            | Self::Tools
            | Self::RelevantTools
            | Self::Gate
            | Self::PinnedTools
            | Self::ToolMode => false,
        }
    }
}
