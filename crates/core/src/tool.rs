//! Anything that offers tools: an MCP server, or the app itself.

use std::sync::Arc;

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use ts_rs::TS;

use crate::ids::{ConversationId, ServerId, ToolName, TurnId};
use crate::message::{JsonObject, ToolCall, ToolResult};
use crate::question::Asker;

/// A tool as it is offered to a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "core/tool.ts")]
pub struct ToolSpec {
    /// Public name, unique among all tools.
    pub name: ToolName,
    /// The server that offers it, by our own id.
    pub server: ServerId,
    /// The name that the server knows, verbatim.
    pub original_name: String,
    /// A name for people.
    pub title: Option<String>,
    /// The description, verbatim: it decides whether a model calls the tool.
    pub description: String,
    /// JSON Schema of the arguments, verbatim.
    #[ts(type = "unknown")]
    pub input_schema: Value,
    /// JSON Schema of the structured result, verbatim.
    #[ts(type = "unknown | null")]
    pub output_schema: Option<Value>,
    /// What the server claims about the tool.
    pub annotations: ToolAnnotations,
    /// Whether the claims in `annotations` may be believed (our own server, or one the user trusts).
    #[serde(default)]
    pub trusted: bool,
}

/// Claims of a server about a tool (MCP 2025-06-18, `ToolAnnotations`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "core/tool.ts")]
pub struct ToolAnnotations {
    /// It changes nothing.
    pub read_only: Option<bool>,
    /// It may destroy.
    pub destructive: Option<bool>,
    /// Calling it twice does the same as once.
    pub idempotent: Option<bool>,
    /// It reaches beyond this machine.
    pub open_world: Option<bool>,
}

impl ToolSpec {
    /// Whether the tool changes nothing, as far as it can be believed.
    pub fn is_read_only(&self) -> bool {
        self.trusted && self.annotations.read_only == Some(true)
    }

    /// Whether the tool says that it may destroy. Silence is no claim, although MCP's default is yes (2025-06-18,
    /// `destructiveHint`): most tools say nothing, and those that do mean it.
    pub fn is_destructive(&self) -> bool {
        self.annotations.destructive == Some(true) && !self.is_read_only()
    }
}

/// How far a call has come.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "core/tool.ts")]
pub struct Progress {
    /// Work done so far, in the server's own unit; never falls.
    pub done: f64,
    /// All the work, when the server says it.
    pub total: Option<f64>,
    /// What it is doing.
    pub message: Option<String>,
}

/// Which way a protocol message went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export, export_to = "core/tool.ts")]
pub enum WireDirection {
    /// From Lectern to the server.
    Sent,
    /// From the server to Lectern.
    Received,
}

/// What a provider tells about a call while it runs.
#[derive(Clone, Debug, PartialEq)]
pub enum CallNews {
    /// It came further.
    Progress(Progress),
    /// A raw JSON-RPC message of this call, for the trace.
    Wire(WireDirection, Value),
    /// A line of the server's log or stderr during this call.
    Log(String),
}

/// What a call may use while it runs.
#[derive(Clone, Debug)]
pub struct CallContext {
    /// The conversation it belongs to.
    pub conversation: ConversationId,
    /// The turn it belongs to.
    pub turn: TurnId,
    /// Cancelled when the user stops; the provider must then settle within a second.
    pub cancel: CancellationToken,
    /// Where news goes. What is sent after the result is dropped.
    pub news: mpsc::UnboundedSender<CallNews>,
    /// Who answers what the server asks in the meantime.
    pub ask: Arc<dyn Asker>,
}

/// Anything that offers tools.
pub trait ToolProvider: Send + Sync {
    /// The tools offered now, in a deterministic order.
    fn tools(&self) -> Arc<[ToolSpec]>;

    /// Why a tool that is not among [`ToolProvider::tools`] can't be called now, when there is such a tool.
    fn withheld(&self, tool: &ToolName) -> Option<String> {
        let _ = tool;
        None
    }

    /// Whether somebody else runs the calls of this tool, outside of the turn. Such a call is settled as it is, without
    /// consent and without an entry in the audit log; the other calls of its step run, and then the turn is over.
    fn hands_over(&self, tool: &ToolName) -> bool {
        let _ = tool;
        false
    }

    /// The arguments of a call without secrets, for the audit log.
    fn masked(&self, call: &ToolCall) -> JsonObject {
        call.arguments.clone()
    }

    /// Runs one call. Never fails: a broken tool is news for the model, not for the turn.
    fn call(&self, call: ToolCall, context: CallContext) -> BoxFuture<'static, ToolResult>;
}
