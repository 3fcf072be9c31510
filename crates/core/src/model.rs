//! Anything that streams a reply: a local GGUF, Vertex AI, an OpenAI-compatible endpoint.

use futures::FutureExt;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use ts_rs::TS;

use crate::ids::{ConversationId, ModelId, ToolCallId, ToolName};
use crate::message::{Message, Opaque};
use crate::tool::ToolSpec;

/// Anything that streams a reply.
pub trait ChatModel: Send + Sync {
    /// What the model is and can do.
    fn info(&self) -> &ModelInfo;

    /// Streams one reply. The stream ends after [`Delta::Finished`] or after an error; when `cancel`
    /// fires it ends soon (a local model within 100 ms), with `FinishReason::Cancelled`.
    fn stream(
        &self,
        request: ChatRequest,
        cancel: CancellationToken,
    ) -> BoxStream<'static, Result<Delta, ModelError>>;

    /// Gets ready for a request like this one, whose last message (the user's, or a tool's result) may still be
    /// written: loads the model, and reads ahead what will stand before the change. A [`stream`](Self::stream) that comes
    /// meanwhile goes first, unless it goes on from what is being read. There is nothing to learn from the result; what fails here fails again, and is told, when a reply is wanted.
    fn prepare(&self, request: ChatRequest, cancel: CancellationToken) -> BoxFuture<'static, ()> {
        drop((request, cancel));
        futures::future::ready(()).boxed()
    }

    /// Tokens of the prompt that this request would be, exactly; none when the model cannot count.
    fn count(&self, request: ChatRequest) -> BoxFuture<'static, Result<Option<u32>, ModelError>> {
        drop(request);
        futures::future::ready(Ok(None)).boxed()
    }
}

/// Capabilities are data, not methods.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "core/model.ts")]
pub struct ModelInfo {
    /// Our id.
    pub id: ModelId,
    /// A name for people.
    pub name: String,
    /// How tools are brought to the model.
    pub tool_mode: ToolMode,
    /// Tokens that fit into the context; none when unknown.
    pub context_length: Option<u32>,
    /// Whether it takes images. To a model that does not, none is attached by the app; those that are in the history all
    /// the same (of another model's turns, of a server) it leaves out, with a word in their place.
    pub vision: bool,
    /// Whether requests leave this machine.
    pub remote: bool,
}

/// How tools are brought to a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export, export_to = "core/model.ts")]
pub enum ToolMode {
    /// The model's own function calling (its template or its API knows tools).
    #[default]
    Native,
    /// Tools described in the prompt, calls read out of the text.
    Prompted,
    /// No tools are offered.
    Off,
}

/// One request: the whole history, and what is allowed in this step.
#[derive(Clone, Debug, Default)]
pub struct ChatRequest {
    /// The conversation, as the key of caches. Nothing else may depend on it.
    pub conversation: ConversationId,
    /// Instructions that stand before the history.
    pub system: Option<String>,
    /// The history, oldest first.
    pub messages: Vec<Message>,
    /// The tools offered in this step.
    pub tools: Vec<ToolSpec>,
    /// Whether the model must, may or must not call.
    pub tool_choice: ToolChoice,
    /// How tools are brought to this model now. With `Prompted` the model describes them in its prompt and reads the
    /// calls out of its text; the turn gets [`Delta`]s of calls either way.
    pub tool_mode: ToolMode,
    /// Where the tools are described.
    pub tool_placement: ToolPlacement,
    /// Instructions that change from request to request (the time, what is offered just now). They stand last, so that
    /// what was evaluated before them can be reused.
    pub tail: Option<String>,
    /// What the reply is for.
    pub purpose: Purpose,
    /// The form of the answer's text. Calls of tools keep their own form.
    pub answer: AnswerForm,
    /// Whether and how long the model may think before it answers.
    pub thinking: ThinkingOptions,
    /// How tokens are chosen.
    pub sampling: Sampling,
}

/// Where the tools of a request are described to the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export, export_to = "core/model.ts")]
pub enum ToolPlacement {
    /// Before the history, where most templates have them.
    #[default]
    System,
    /// With the last user message: the evaluated history stays valid when the tools change.
    LastUser,
}

/// What a reply is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// A step of a conversation.
    #[default]
    Chat,
    /// A title, a summary, a server's request: it never pushes a conversation out of a cache.
    Side,
}

/// The form that the text of an answer must have.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerForm {
    /// Any text.
    #[default]
    Free,
    /// JSON that fits this JSON Schema.
    JsonSchema(Value),
    /// Text of this grammar (GBNF, as llama.cpp reads it).
    Grammar(String),
}

/// Whether and how long a model may think. What is unset is the model's own default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(default)]
#[ts(export, export_to = "core/model.ts")]
pub struct ThinkingOptions {
    /// Models that cannot choose ignore it.
    pub enabled: Option<bool>,
    /// Tokens of thinking at most; then the model has to answer.
    pub budget: Option<u32>,
}

/// Whether the model must, may or must not call a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToolChoice {
    /// It may.
    #[default]
    Auto,
    /// It must not.
    None,
    /// It must call some tool.
    Required,
    /// It must call this tool.
    Tool(ToolName),
}

/// How tokens are chosen. What is unset is the model's own default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "core/model.ts")]
pub struct Sampling {
    /// 0 always takes the likeliest token.
    pub temperature: Option<f32>,
    /// Nucleus, 0 to 1.
    pub top_p: Option<f32>,
    /// The k likeliest only.
    pub top_k: Option<u32>,
    /// Cut below this share of the likeliest, 0 to 1.
    pub min_p: Option<f32>,
    /// Tokens that stand in the reply already become unlikelier by this factor; 1 changes nothing.
    pub repeat_penalty: Option<f32>,
    /// Subtracted for each time that a token stands in the reply already, -2 to 2.
    pub frequency_penalty: Option<f32>,
    /// Subtracted once when a token stands in the reply already, -2 to 2.
    pub presence_penalty: Option<f32>,
    /// The same seed gives the same reply.
    pub seed: Option<u32>,
    /// Tokens to generate at most in one step.
    pub max_tokens: Option<u32>,
    /// Texts that end the reply; they are not part of it.
    pub stop: Vec<String>,
}

/// One piece of a streamed reply.
#[derive(Clone, Debug, PartialEq)]
pub enum Delta {
    /// The model is being loaded; 0 to 1.
    Loading(f32),
    /// How much of the prompt is evaluated. `reused` came from the cache.
    PromptProgress {
        /// Tokens evaluated or reused so far.
        done: u32,
        /// Tokens of the prompt.
        total: u32,
        /// Tokens that the cache already held.
        reused: u32,
    },
    /// A piece of the answer.
    Text(String),
    /// A piece of the reasoning.
    Thinking(String),
    /// A call begins. Calls are told apart by `index`; their pieces may be interleaved.
    ToolCallStarted {
        /// Position among the calls of this message.
        index: u32,
        /// The provider's id, or one that the model's adapter made.
        id: ToolCallId,
        /// The tool's public name.
        tool: ToolName,
        /// Data of the provider, handed back untouched.
        provider_data: Option<Opaque>,
    },
    /// A piece of a call's arguments, JSON text.
    ToolCallArguments {
        /// Position among the calls of this message.
        index: u32,
        /// The piece.
        fragment: String,
    },
    /// Data of the provider for the whole message; the last one counts.
    ProviderData(Opaque),
    /// The provider gave no reply for now; it is asked again after a pause. Only before anything of the reply came.
    Retrying {
        /// Milliseconds until then.
        after_ms: u64,
        /// How often the provider was asked already.
        attempt: u32,
        /// What was in the way.
        reason: ModelErrorCode,
        /// The same in words, a lowercase fragment.
        message: String,
    },
    /// Something worth showing that ends nothing; as the event of the same name.
    Notice {
        /// What kind.
        code: String,
        /// For the trace, in English.
        message: String,
    },
    /// What the reply cost; the last one counts.
    Usage(Usage),
    /// The reply is whole.
    Finished(FinishReason),
}

impl Delta {
    /// Whether it is a piece of the reply itself, which a user may have seen.
    pub fn is_seen(&self) -> bool {
        match self {
            Self::Text(text) | Self::Thinking(text) => !text.is_empty(),
            Self::ToolCallStarted { .. } | Self::ToolCallArguments { .. } => true,
            Self::Loading(_)
            | Self::PromptProgress { .. }
            | Self::ProviderData(_)
            | Self::Retrying { .. }
            | Self::Notice { .. }
            | Self::Usage(_)
            | Self::Finished(_) => false,
        }
    }
}

/// What a reply cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "core/model.ts")]
pub struct Usage {
    /// Tokens of the prompt, reused ones included.
    pub prompt_tokens: u32,
    /// Tokens of the prompt that came from a cache.
    pub reused_tokens: u32,
    /// Tokens generated, thinking included.
    pub generated_tokens: u32,
    /// Tokens of thinking among the generated ones; none when the model does not tell them apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub thinking_tokens: Option<u32>,
    /// Tokens of the prompt that stand for images; none without images, or when the model does not tell them apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub image_tokens: Option<u32>,
    /// Milliseconds until the prompt was evaluated.
    pub prompt_ms: Option<u32>,
    /// Milliseconds spent generating.
    pub generation_ms: Option<u32>,
    /// Tokens that were evaluated on a guess, before the model had chosen them; none when it does not guess.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub guessed_tokens: Option<u32>,
    /// Those of them that the model then chose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub right_guesses: Option<u32>,
    /// Where the prompt stopped being what the last one of this conversation was; none when it only grew, or where
    /// nothing is known of the last one. What stands behind that place had to be evaluated once more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub changed_at: Option<PromptPart>,
}

/// A part of a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(tag = "part", rename_all = "snake_case")]
#[ts(export, export_to = "core/model.ts")]
pub enum PromptPart {
    /// The instructions.
    System,
    /// The definitions of the tools.
    Tools,
    /// A message of the history; the first has the number 0.
    Message {
        /// Its number.
        number: u32,
    },
    /// What stands with the last question only.
    Tail,
    /// The model's template: it writes the same messages otherwise than before.
    Template,
}

/// Why a reply ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export, export_to = "core/model.ts")]
pub enum FinishReason {
    /// The model was done.
    Stop,
    /// The model wants tools to be called.
    ToolCalls,
    /// The limit of tokens was reached.
    Length,
    /// The provider withheld the rest.
    Filtered,
    /// The user stopped it.
    Cancelled,
    /// The model failed, or Lectern did. A model says so by an error; the turn loop writes this into `StepFinished`.
    Failed,
}

/// Why a model gave no reply.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct ModelError {
    /// What kind of error; the UI chooses its words by this.
    pub code: ModelErrorCode,
    /// What happened, a lowercase fragment that names the thing.
    pub message: String,
    /// The way out, one sentence.
    pub hint: Option<String>,
    /// More for the trace: log lines, a provider's body.
    pub detail: Option<Value>,
}

/// Kinds of model errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export, export_to = "core/model.ts")]
pub enum ModelErrorCode {
    /// The model file is missing or broken.
    BadModelFile,
    /// The process that runs the model died or hangs.
    ModelCrashed,
    /// The conversation no longer fits.
    ContextFull,
    /// The request can't be made for this model (e.g. its template refuses).
    BadRequest,
    /// Not signed in, or not allowed.
    Unauthorized,
    /// Too many requests for now.
    RateLimited,
    /// No way to the provider.
    Unreachable,
    /// The provider refuses to answer this: its filters or its terms.
    Blocked,
    /// What the account may use is used up, for longer than anybody waits.
    QuotaExhausted,
    /// The provider's API or its billing is not switched on for the project.
    NotEnabled,
    /// The provider does not serve this model here: a wrong location, or a country that it leaves out.
    NotAvailableHere,
    /// The provider knows no such model.
    ModelNotFound,
    /// The reply broke off after it had begun; what came is kept.
    Incomplete,
    /// The model wrote a call that its own provider can't read.
    MalformedCall,
    /// The reply ended without a word for the user.
    EmptyAnswer,
    /// Anything else of the provider.
    Provider,
}
