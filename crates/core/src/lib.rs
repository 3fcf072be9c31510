//! The core of Lectern: messages, events, the turn loop, permissions and the store.
//!
//! Invariant: no network, no child process, no window. Models and tools reach the core through the
//! traits [`ChatModel`] and [`ToolProvider`] only.
//!
//! # How a shell uses it
//!
//! ```no_run
//! # use std::sync::Arc;
//! # use lectern_core::*;
//! # async fn example(model: Arc<dyn ChatModel>, notes: Arc<dyn ToolProvider>) -> Result<(), Box<dyn std::error::Error>> {
//! let store = Store::open("conversations.sqlite".as_ref())?;      // repairs what a crash left behind
//! let turns = Turns::default();                                   // one for the whole app
//! let permissions = Arc::new(PermissionBook::new(Policy::default()).keep_with(|server, rule| println!("{server}: {rule:?}")));
//! let conversation = store.create_conversation()?;
//! let turn: TurnHandle = turns.start(TurnInput {                  // refuses a second turn in the conversation
//!     conversation,
//!     message: UserMessage::text("Which notes mention Lyon?"),
//!     model,
//!     tools: Arc::new(ToolSet::new([notes])),
//!     who: Actor::Cli,
//!     permissions,
//!     store: store.clone(),
//!     system: None,
//!     sampling: Sampling::default(),
//!     thinking: ThinkingOptions::default(),
//!     answer: AnswerForm::Free,
//!     earlier_turns: EarlierTurns::Sent,
//!     largest_context: None,
//!     tool_mode: ToolMode::Native,
//!     exposure: ExposurePolicy::default(),
//!     first_choice: ToolChoice::Auto,
//!     max_steps: turn::DEFAULT_MAX_STEPS,
//!     cancel: Default::default(),
//! })?;
//! let mut events = turn.events();                                 // or `events_from(seq)`, as often as wanted
//! while let Some(event) = events.next().await {                   // or `next_batch()`: all that are there
//!     if let EventKind::QuestionAsked { question_id, .. } = &event.kind {     // a server asks the user
//!         turn.answer_question(question_id, QuestionAnswer::Declined)?;
//!     }
//!     if let EventKind::PermissionRequested { call, .. } = &event.kind {
//!         turn.answer_permission(&call.id, PermissionAnswer::Allow { grant: Grant::Once })?;
//!     }
//! }
//! let outcome: TurnOutcome = turn.finished().await;               // `turn.cancel()` stops it before
//! # Ok(()) }
//! ```
//!
//! - [`Turns`]: `start`, `running(conversation)`, `get(turn)` (while it runs and a little longer), `all_running`.
//! - [`Store`]: `open`, `in_memory`, `create_conversation`, `conversations`, `conversation`, `messages`, `turns`,
//!   `history`, `rename`, `delete`, `restore`, `audit`.
//! - [`PermissionBook`]: `new(Policy)`, `keep_with` (called with each rule an "always" makes), `set_policy`, `policy`.
//! - [`ToolSet`]: joins providers; is itself a [`ToolProvider`].
//! - [`validate::validate`]: arguments against a JSON Schema. [`history::for_request`]: a history that every provider
//!   takes.
//! - [`question`]: what servers ask the user while a tool runs; [`form`]: the forms of it.
//! - `testing` (feature `testing`): a scripted model and scripted tools.

pub mod clock;
pub mod event;
pub mod exposure;
pub mod fit;
pub mod form;
pub mod grants;
pub mod guard;
pub mod history;
pub mod ids;
pub mod message;
pub mod model;
pub mod nearness;
pub mod permission;
mod pointing;
pub mod question;
pub mod store;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod tool;
mod toolset;
pub mod turn;
pub mod validate;

pub use event::{
    AnswerBound, Event, EventKind, StepSettings, StepStats, TurnError, TurnErrorCode, TurnOutcome,
};
pub use exposure::{ExposurePolicy, ToolExposure};
pub use fit::EarlierTurns;
pub use grants::PermissionBook;
pub use ids::{ConversationId, MessageId, ModelId, QuestionId, ServerId, ToolCallId, ToolName, TurnId};
pub use message::{
    AssistantMessage, Blob, Content, JsonObject, Message, Opaque, Part, ResourceRef, ResultNote, Source,
    Thinking, ToolCall, ToolOutcome, ToolResult, UserMessage, arguments_of,
};
pub use model::{
    AnswerForm, ChatModel, ChatRequest, Delta, FinishReason, ModelError, ModelErrorCode, ModelInfo,
    PromptPart, Purpose, Sampling, ThinkingOptions, ToolChoice, ToolMode, ToolPlacement, Usage,
};
pub use permission::{Decision, Grant, PermissionAnswer, Policy, Rule, RuleEffect, RuleMatch};
pub use pointing::keep_pointed_to;
pub use question::{Asker, Nobody, Question, QuestionAnswer, Reply, Sample, SampleRequest};
pub use store::{Actor, Store, StoreError};
pub use tool::{CallContext, CallNews, Progress, ToolAnnotations, ToolProvider, ToolSpec, WireDirection};
pub use toolset::ToolSet;
pub use turn::{Events, StartError, TurnHandle, TurnInput, Turns};

/// A point in time, always UTC; in JSON an RFC 3339 string.
pub type Timestamp = jiff::Timestamp;
