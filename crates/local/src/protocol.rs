//! What the application and its worker say to each other: one JSON object a line.
//!
//! Invariant: plain data, no process and no llama.cpp. A line that is not of these shapes is dropped.

use std::collections::BTreeMap;
use std::path::PathBuf;

use lectern_core::PromptPart;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::format::{CallForm, FormatOptions};
use crate::images::Image;
use crate::measure::{Device, Measure};
use crate::names::Writing;
use crate::parse::ParsedText;
use crate::saved::CacheOptions;
use crate::speed::SpeedOptions;

/// What the application asks for. One job at a time; only `Cancel` comes in between.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub(crate) enum Request {
    /// Load a model, in place of the loaded one.
    Load(Box<Load>),
    /// Stream one reply.
    Generate(Box<Generate>),
    /// Stop the job with this number, if it runs or waits.
    Cancel { job: u64 },
    /// Say what a template can do.
    Describe { job: u64, template: TemplateSource },
    /// Parse texts as replies in the format of a template.
    Parse(Box<Parse>),
    /// Turn text into tokens as a user's text is turned, and say how each reads.
    Tokenize { job: u64, text: String },
    /// Count the tokens of the prompt that a request would have.
    Count(Box<Generate>),
    /// Evaluate what two requests begin with in common; one of them, or one like them, is to follow.
    ReadAhead { job: u64, one: Box<Generate>, other: Box<Generate> },
    /// Forget what is kept of a conversation, or of all.
    Forget { job: u64, conversation: Option<String> },
    /// Say what llama.cpp can compute on.
    Devices { job: u64 },
    /// Measure how fast the loaded model reads and writes, for about so long.
    Bench { job: u64, millis: u32 },
    /// For tests of recovery, and only when the environment allows it.
    Misbehave { job: u64, how: Misbehaviour },
}

/// Load a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Load {
    pub(crate) job: u64,
    pub(crate) path: PathBuf,
    /// Tokens of context.
    pub(crate) context: u32,
    /// What is unset is chosen by the worker.
    pub(crate) speed: SpeedOptions,
    /// What replaces the file's own format.
    #[serde(default)]
    pub(crate) format: FormatOptions,
    /// What is kept of conversations beside the cache.
    #[serde(default)]
    pub(crate) cache: CacheOptions,
    /// The file of the part that sees images.
    #[serde(default)]
    pub(crate) projector: Option<PathBuf>,
}

/// Stream one reply.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Generate {
    pub(crate) job: u64,
    /// Key of the cache.
    pub(crate) conversation: String,
    /// A job beside the conversation, which never takes its place in the cache.
    #[serde(default)]
    pub(crate) side: bool,
    /// Messages in OpenAI's shape; an assistant message may carry `raw`, the text it was generated as.
    pub(crate) messages: Vec<Value>,
    /// The images that the messages name.
    #[serde(default)]
    pub(crate) images: Vec<Image>,
    /// Tools in OpenAI's shape.
    pub(crate) tools: Vec<Value>,
    pub(crate) choice: Choice,
    /// Tools that the messages describe and the template is not told of, in OpenAI's shape.
    #[serde(default)]
    pub(crate) described: Vec<Value>,
    /// The form of calls in that description.
    #[serde(default)]
    pub(crate) form: CallForm,
    /// Whether the tools are described with the last user message, not before the history.
    #[serde(default)]
    pub(crate) tools_last: bool,
    /// Constrains the reply.
    #[serde(default)]
    pub(crate) answer: Answer,
    #[serde(default)]
    pub(crate) thinking: Thinking,
    pub(crate) sampling: SamplingOptions,
}

/// What the whole reply is held to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    /// Nothing.
    #[default]
    Free,
    /// A call, written as JSON.
    Call,
    /// Text: JSON of this schema.
    JsonSchema(Value),
    /// Text of this grammar (GBNF).
    Grammar(String),
}

/// Whether and how long the model thinks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Thinking {
    pub(crate) enabled: Option<bool>,
    /// Tokens at most.
    pub(crate) budget: Option<u32>,
}

/// Whether tools may, must or must not be called.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Choice {
    Auto,
    None,
    Required,
    Tool(String),
}

/// How tokens are chosen.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct SamplingOptions {
    pub(crate) temperature: Option<f32>,
    pub(crate) top_p: Option<f32>,
    pub(crate) top_k: Option<u32>,
    pub(crate) min_p: Option<f32>,
    pub(crate) repeat_penalty: Option<f32>,
    pub(crate) frequency_penalty: Option<f32>,
    pub(crate) presence_penalty: Option<f32>,
    pub(crate) seed: Option<u32>,
    pub(crate) max_tokens: Option<u32>,
    pub(crate) stop: Vec<String>,
}

/// Parse texts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Parse {
    pub(crate) job: u64,
    pub(crate) template: TemplateSource,
    pub(crate) tools: Vec<Value>,
    pub(crate) text: String,
    pub(crate) partial: bool,
}

/// Which template.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TemplateSource {
    /// That of the loaded model.
    Loaded,
    /// This text.
    Text(String),
}

/// How to misbehave in a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Misbehaviour {
    /// Abort at once, as llama.cpp does.
    Abort,
    /// Abort in the middle of the next reply.
    AbortInReply,
    /// Stop answering in the next reply, to cancel too.
    HangInReply,
    /// Abort while the next model is loaded.
    AbortInLoad,
    /// Print to standard output.
    Print,
}

/// What the worker tells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum Event {
    /// The model is being loaded; 0 to 1.
    Loading { job: u64, part: f32 },
    /// The model is loaded.
    Loaded {
        job: u64,
        context: u32,
        /// What the user is to know about how it was loaded.
        #[serde(default)]
        notes: Vec<String>,
    },
    /// How much of the prompt is evaluated.
    Prompt { job: u64, done: u32, total: u32, reused: u32 },
    /// Pieces of the reply.
    Pieces { job: u64, pieces: Vec<Piece> },
    /// The reply is whole.
    Done(Box<Done>),
    /// What a template can do.
    Described {
        job: u64,
        tools: bool,
        parallel: bool,
        thinking: bool,
        /// Whether what a user says stands in the prompt that it makes.
        says: bool,
        /// How calls in the template's own form write their arguments.
        writing: Writing,
    },
    /// A parsed text.
    Parsed { job: u64, message: ParsedText },
    /// Tokens and how they read.
    Tokens { job: u64, tokens: Vec<(i32, String)> },
    /// How many tokens the prompt of a request has.
    Counted { job: u64, tokens: u32 },
    /// So much of the next prompt is evaluated now.
    ReadAhead { job: u64, tokens: u32 },
    /// What was to be forgotten is.
    Forgotten { job: u64 },
    /// Something for the log; belongs to no job.
    Note { text: String },
    /// The kind of code for the processor that is about to be loaded, where there is a choice; belongs to no job.
    Code { kind: String },
    /// What llama.cpp can compute on.
    Devices { job: u64, devices: Vec<Device> },
    /// How fast the model is.
    Measured { job: u64, measure: Measure },
    /// The job failed; the worker goes on.
    Failed { job: u64, error: WorkerError },
}

impl Event {
    /// The job that it belongs to.
    pub(crate) fn job(&self) -> u64 {
        match self {
            Self::Loading { job, .. }
            | Self::Loaded { job, .. }
            | Self::Prompt { job, .. }
            | Self::Pieces { job, .. }
            | Self::Described { job, .. }
            | Self::Parsed { job, .. }
            | Self::Tokens { job, .. }
            | Self::Counted { job, .. }
            | Self::ReadAhead { job, .. }
            | Self::Forgotten { job }
            | Self::Devices { job, .. }
            | Self::Measured { job, .. }
            | Self::Failed { job, .. } => *job,
            Self::Done(done) => done.job,
            Self::Note { .. } | Self::Code { .. } => 0,
        }
    }
}

/// A piece of a reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Piece {
    Text(String),
    Thinking(String),
    Call { index: u32, name: String },
    Arguments { index: u32, fragment: String },
}

/// The end of a reply.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Done {
    pub(crate) job: u64,
    pub(crate) finish: Finish,
    pub(crate) usage: WorkerUsage,
    /// Everything generated, as text.
    pub(crate) raw: String,
    /// Where the prompt stopped being what the last one of the conversation was.
    #[serde(default)]
    pub(crate) changed_at: Option<PromptPart>,
    /// The part of `raw` that the template's parser could not read, and that was not streamed.
    pub(crate) unread: Option<String>,
    /// Tools whose grammar allows more than their schema, and where.
    #[serde(default)]
    pub(crate) open: BTreeMap<String, String>,
    /// What the user is to know about how the reply was held.
    #[serde(default)]
    pub(crate) notes: Vec<String>,
}

/// Why a reply ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Finish {
    Stop,
    Length,
    Cancelled,
}

/// What a reply cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WorkerUsage {
    pub(crate) prompt: u32,
    pub(crate) reused: u32,
    pub(crate) generated: u32,
    pub(crate) prompt_ms: u32,
    pub(crate) generation_ms: u32,
    /// Tokens that were evaluated on a guess.
    #[serde(default)]
    pub(crate) guessed: u32,
    /// Those of them that were right.
    #[serde(default)]
    pub(crate) right: u32,
    /// Tokens of the prompt that stand for images.
    #[serde(default)]
    pub(crate) images: u32,
}

/// Why a job failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WorkerError {
    /// The model could not be loaded.
    #[error("{reason}")]
    Load { reason: String },
    /// The prompt does not fit.
    #[error("the conversation needs {needed} tokens and the context has {available}")]
    ContextFull { needed: u32, available: u32 },
    /// The template or the grammar refuses the request.
    #[error("{reason}")]
    Refused { reason: String },
    /// llama.cpp failed while computing.
    #[error("{reason}")]
    Compute { reason: String },
    /// It was cancelled.
    #[error("cancelled")]
    Cancelled,
}
