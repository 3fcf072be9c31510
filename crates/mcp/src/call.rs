//! One call of a tool, from its arguments to its one result.
//!
//! Invariant: a call gives exactly one result, whatever the server does.

use std::sync::Arc;

use lectern_core::{CallContext, CallNews, ToolCall, ToolOutcome, ToolResult};
use serde_json::{Value, json};
use tokio::sync::OwnedSemaphorePermit;

use crate::cache::Key;
use crate::exchange::{Exchange, Stopped, Waiter, sentence};
use crate::outcome::{self, CallResult};
use crate::server::{Live, Server};
use crate::tools::Tool;

const METHOD: &str = "tools/call";

/// What the caller gets when there is no answer of the tool.
enum NoAnswer {
    Cancelled,
    Failed(String),
}

/// Runs one call.
pub(crate) async fn run(server: Arc<Server>, call: ToolCall, context: CallContext) -> ToolResult {
    let running = Running { server, call, context };
    let answer = running.answer().await;
    running.result(answer)
}

struct Running {
    server: Arc<Server>,
    call: ToolCall,
    context: CallContext,
}

impl Running {
    async fn answer(&self) -> Result<(Arc<Tool>, Value), NoAnswer> {
        let live = tokio::select! {
            biased;
            () = self.context.cancel.cancelled() => return Err(NoAnswer::Cancelled),
            live = self.server.ready() => live.map_err(NoAnswer::Failed)?,
        };
        let gone = || {
            let gone = || format!("the server no longer has the tool `{}`", self.call.tool);
            NoAnswer::Failed(live.tools.withheld(&self.call.tool).unwrap_or_else(gone))
        };
        let tool = live.tools.get(&self.call.tool).ok_or_else(gone)?;
        let key = self.key(&tool);
        if let Some(kept) = key.as_ref().and_then(|key| live.peer.desk().cache.get(key)) {
            self.tell(CallNews::Log(
                "[lectern] not asked again: the server said that this result holds".into(),
            ));
            return Ok((tool, (*kept).clone()));
        }
        let _slot = self.slot().await?;
        match self.exchange(&live, &tool).await {
            Ok(result) => {
                let failed = result.get("isError").and_then(Value::as_bool).unwrap_or(false);
                if let Some(key) = key.filter(|_| !failed) {
                    live.peer.desk().cache.keep(key, &result);
                }
                Ok((tool, result))
            }
            Err(stopped) => {
                Err(sentence(&self.server, stopped).await.map_or(NoAnswer::Cancelled, NoAnswer::Failed))
            }
        }
    }

    async fn exchange(&self, live: &Live, tool: &Tool) -> Result<Value, Stopped> {
        let limits = self.server.limits(Some(&tool.spec.original_name));
        let mut params = json!({"name": tool.spec.original_name, "arguments": self.call.arguments});
        if tool.as_task && !live.session.is_modern() && live.session.can("/tasks/requests/tools/call") {
            // Task-augmented (MCP 2025-11-25, Tasks): it may outlast the total time by a moment, to say how it ended.
            params["task"] = json!({"ttl": limits.total.as_millis() + 60_000});
        }
        let waiter = Waiter {
            ask: Arc::clone(&self.context.ask),
            cancel: self.context.cancel.clone(),
            news: self.context.news.clone(),
            limits,
        };
        Exchange::new(&self.server, live, waiter).run(METHOD, params).await
    }

    /// A place among the calls that the server takes at once.
    async fn slot(&self) -> Result<Option<OwnedSemaphorePermit>, NoAnswer> {
        let Some(slots) = self.server.slots() else { return Ok(None) };
        if let Ok(slot) = Arc::clone(slots).try_acquire_owned() {
            return Ok(Some(slot));
        }
        self.tell(CallNews::Log("[lectern] waits until the server is done with other calls".into()));
        tokio::select! {
            biased;
            () = self.context.cancel.cancelled() => Err(NoAnswer::Cancelled),
            // Never closed.
            slot = Arc::clone(slots).acquire_owned() => Ok(slot.ok()),
        }
    }

    /// By what a result is kept; none when it must not be. Only what is believed to change nothing is.
    fn key(&self, tool: &Tool) -> Option<Key> {
        let about = || json!([tool.spec.original_name, self.call.arguments]).to_string();
        tool.spec.is_read_only().then(|| Key { method: METHOD, about: about() })
    }

    fn tell(&self, news: CallNews) {
        // Nobody listens any more when the turn is over.
        let _ = self.context.news.send(news);
    }

    fn result(self, answer: Result<(Arc<Tool>, Value), NoAnswer>) -> ToolResult {
        let (tool, reply) = match answer {
            Ok(answer) => answer,
            Err(NoAnswer::Failed(why)) => {
                let why = self.server.mask().text(&why);
                return ToolResult::of(&self.call, ToolOutcome::Failed, why);
            }
            Err(NoAnswer::Cancelled) => {
                return ToolResult::of(&self.call, ToolOutcome::Cancelled, "stopped by the user");
            }
        };
        let reply = self.server.mask().value(reply);
        let result = outcome::map(&reply, self.server.limits(None).result_budget);
        self.remark(&tool, &result, &reply);
        let outcome = if result.is_error { ToolOutcome::Failed } else { ToolOutcome::Succeeded };
        let CallResult { content, structured, sources, .. } = result;
        ToolResult {
            call: self.call.id,
            tool: self.call.tool,
            outcome,
            content,
            structured,
            sources,
            note: None,
        }
    }

    /// What the trace should say about a result beside the result itself.
    fn remark(&self, tool: &Tool, result: &CallResult, reply: &Value) {
        if result.cut > 0 {
            self.tell(CallNews::Log(format!("the result was cut by {} characters", result.cut)));
        }
        let violation = (!result.is_error).then(|| tool.violation(reply.get("structuredContent"))).flatten();
        if let Some(violation) = violation {
            self.tell(CallNews::Log(violation));
        }
    }
}
