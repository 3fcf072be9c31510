//! The core of Lectern: messages, events, the turn loop, permissions and the store.
//!
//! Invariant: no network, no child process, no window. Models and tools reach the core through the
//! traits [`ChatModel`] and [`ToolProvider`] only.

pub mod event;
pub mod ids;
pub mod message;
pub mod model;
pub mod permission;
pub mod tool;

pub use event::{Event, EventKind, StepStats, TurnError, TurnErrorCode, TurnOutcome};
pub use ids::{ConversationId, MessageId, ModelId, ServerId, ToolCallId, ToolName, TurnId};
pub use message::{
    AssistantMessage, Blob, Content, JsonObject, Message, Opaque, Part, ResourceRef, Source, Thinking,
    ToolCall, ToolOutcome, ToolResult, UserMessage,
};
pub use model::{
    ChatModel, ChatRequest, Delta, FinishReason, ModelError, ModelErrorCode, ModelInfo, Sampling, ToolChoice,
    ToolMode, Usage,
};
pub use permission::{Decision, Grant, PermissionAnswer, Policy, Rule};
pub use tool::{CallContext, CallNews, Progress, ToolAnnotations, ToolProvider, ToolSpec, WireDirection};

/// A point in time, always UTC; in JSON an RFC 3339 string.
pub type Timestamp = jiff::Timestamp;
