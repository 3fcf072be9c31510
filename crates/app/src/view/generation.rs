//! How a model writes, as the shells show it: each setting with its value, where that comes from, and what it may be.
//!
//! Invariant: plain data. A shell draws a setting by its `kind` and names it by its `key`; it knows no ranges itself.

use lectern_core::{ConversationId, ModelId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use ts_rs::TS;

use super::Problem;

/// One thing that can be set. The names are those of the settings file and of `lectern models set`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export, export_to = "app/generation.ts")]
pub enum SettingKey {
    /// Values of other settings under a name; what is set beside it wins.
    Preset,
    /// 0 always takes the likeliest token.
    Temperature,
    /// The likeliest tokens that together have this share.
    TopP,
    /// The k likeliest tokens; 0 does not cut.
    TopK,
    /// Tokens that have at least this share of the likeliest one's.
    MinP,
    /// Tokens that stand in the reply already become unlikelier by this factor; 1 changes nothing.
    RepeatPenalty,
    /// Subtracted for each time that a token stands in the reply already.
    FrequencyPenalty,
    /// Subtracted once when a token stands in the reply already.
    PresencePenalty,
    /// The same seed gives the same reply.
    Seed,
    /// Tokens of one reply at most.
    MaxTokens,
    /// Texts that end a reply.
    Stop,
    /// Whether the model may think before it answers.
    Thinking,
    /// Tokens that it may think at most.
    ThinkingBudget,
    /// JSON Schema of the answer.
    JsonSchema,
    /// Grammar (GBNF) of the answer.
    Grammar,
    /// Instructions in place of Lectern's own.
    System,
    /// When the definitions of tools stand in the prompt.
    Tools,
    /// Tools that are shown in full at most, where they are chosen by relevance.
    RelevantTools,
    /// Whether the model is asked first if it needs a tool.
    Gate,
    /// Tools that are always shown in full.
    PinnedTools,
    /// How tools are brought to the model.
    ToolMode,
    /// Tokens of context.
    ContextLength,
    /// Guessing the next tokens from the conversation itself.
    Lookup,
    /// Tokens that are guessed from the conversation at once, at most.
    Guesses,
    /// A small model file of the same vocabulary that guesses the next tokens.
    Draft,
    /// Guessing with the model's own layer for that (multi-token prediction).
    Mtp,
    /// The file with which the model sees images, by its name beside the model or its path; `none` for none of them.
    Projector,
    /// Whether attention is computed in one piece.
    FlashAttention,
    /// How keys and values are kept in the cache, by llama.cpp's names.
    KvType,
    /// How keys are kept, where it is otherwise than values.
    KvKeys,
    /// How values are kept, where it is otherwise than keys.
    KvValues,
    /// Layers on a graphics processor; unset: as many as fit.
    GpuLayers,
    /// Threads that compute.
    Threads,
    /// Threads that read prompts, where these are to be more or fewer.
    BatchThreads,
    /// How threads wait for each other.
    Waiting,
    /// How the file comes into memory.
    Loading,
    /// After so many minutes without work the model gives its memory back.
    IdleMinutes,
    /// A chat template (Jinja) in place of the file's.
    Template,
    /// How calls are written when tools are described in the prompt.
    CallForm,
}

/// The settings of a model, or of a conversation with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/generation.ts")]
pub struct GenerationView {
    /// The model.
    pub model: ModelId,
    /// The conversation; none when it is about the model alone.
    pub conversation: Option<ConversationId>,
    /// All settings in the order in which they are shown.
    pub settings: Vec<SettingView>,
    /// All presets, the built-in ones first.
    pub presets: Vec<PresetView>,
    /// Models of the list that can guess for this one, the smallest first; none in a view of a conversation.
    pub drafts: Vec<FileChoice>,
    /// Files beside the model with which it can see images, that of the usual case first; none in a view of a
    /// conversation.
    pub projectors: Vec<FileChoice>,
    /// What is written in the settings but can't be used; the default holds in its place.
    pub problems: Vec<Problem>,
}

/// A file that a setting may name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/generation.ts")]
pub struct FileChoice {
    /// As people know it.
    pub name: String,
    /// Its file: the value of the setting.
    pub path: String,
}

/// One setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/generation.ts")]
pub struct SettingView {
    /// Which.
    pub key: SettingKey,
    /// What it may be.
    pub kind: SettingKind,
    /// The value that holds; null when it is left to the model.
    #[ts(type = "unknown")]
    pub value: Value,
    /// Where that value comes from.
    pub origin: SettingOrigin,
    /// What would hold if it were not set here: for a conversation what its model has, for a model the default.
    #[ts(type = "unknown")]
    pub otherwise: Value,
    /// Whether it is set at this very level, so that a reset would change it.
    pub set_here: bool,
    /// Whether each conversation can have its own.
    pub per_conversation: bool,
    /// Whether the model is loaded anew when it changes.
    pub reloads: bool,
}

/// What a setting may be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "type", rename_all = "snake_case")]
#[ts(export, export_to = "app/generation.ts")]
pub enum SettingKind {
    /// A number.
    Number {
        /// The least.
        min: f64,
        /// The greatest.
        max: f64,
        /// A sensible step of a slider.
        step: f64,
        /// Whether it has no fraction.
        whole: bool,
    },
    /// Yes or no.
    Flag,
    /// One of these.
    Choice {
        /// What can be chosen.
        choices: Vec<String>,
    },
    /// A text.
    Text {
        /// Bytes at most.
        max_bytes: u32,
    },
    /// Several texts.
    Texts {
        /// How many at most.
        max: u32,
    },
    /// A JSON object.
    Object,
}

/// Where a value comes from. What stands later in this list wins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(tag = "type", rename_all = "snake_case")]
#[ts(export, export_to = "app/generation.ts")]
pub enum SettingOrigin {
    /// Nobody set it; Lectern or the engine choose.
    Usual,
    /// The model's file recommends it.
    File,
    /// The preset that the model has.
    ModelPreset {
        /// Its name.
        name: String,
    },
    /// The model's settings.
    Model,
    /// The preset that the conversation has.
    ConversationPreset {
        /// Its name.
        name: String,
    },
    /// The conversation's settings.
    Conversation,
    /// It was said for this run, e.g. on the command line.
    Run,
}

/// A preset.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/generation.ts")]
pub struct PresetView {
    /// Its name, and for built-in ones also the key of its translation.
    pub name: String,
    /// Whether it came with Lectern and can't be changed.
    pub built_in: bool,
    /// What it sets, by [`SettingKey`].
    #[ts(type = "Partial<Record<SettingKey, unknown>>")]
    pub settings: serde_json::Map<String, Value>,
}

/// Changes of settings: each key with its new value, null to unset it.
pub type SettingChanges = serde_json::Map<String, Value>;

/// The summary that stands for the oldest messages of a conversation in the requests to the model. The messages
/// themselves stay readable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/generation.ts")]
pub struct SummaryView {
    /// The last message that it stands for.
    pub up_to: lectern_core::MessageId,
    /// Its text; empty when the messages are left out without one.
    pub text: String,
    /// When it was made.
    #[ts(type = "string")]
    pub at: lectern_core::Timestamp,
}
