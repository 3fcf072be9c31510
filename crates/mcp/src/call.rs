//! One call of a tool, from its arguments to its one result.
//!
//! Invariant: a call always ends: with the server's answer, with its silence, with its death, or with the user's stop,
//! whichever comes first. Progress never falls and never follows the result.

use std::sync::Arc;
use std::time::Duration;

use lectern_core::{CallContext, CallNews, Progress, ToolCall, ToolOutcome, ToolResult, WireDirection};
use serde_json::{Map, Value, json};
use tokio::sync::broadcast::{self, error::RecvError};
use tokio::time::{Instant, sleep_until};

use crate::outcome::{self, CallResult, Mapped};
use crate::peer::{PeerError, Reports, Request, result_in};
use crate::server::{Live, Server};
use crate::tools::Tool;

/// Steps of progress that are told at once; after that, one in [`PROGRESS_EVERY`].
const PROGRESS_BURST: u32 = 100;
const PROGRESS_EVERY: Duration = Duration::from_millis(50);
/// Lines of a server's log that are told during one call.
const LOG_LINES: usize = 200;

/// How long a call may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) silence: Duration,
    pub(crate) total: Duration,
    pub(crate) result_budget: usize,
}

/// What the caller gets when there is no answer of the tool.
enum NoAnswer {
    Cancelled,
    Failed(String),
}

/// Runs one call.
pub(crate) async fn run(server: Arc<Server>, call: ToolCall, context: CallContext) -> ToolResult {
    let mut running = Running { server, call, context };
    let answer = running.answer().await;
    running.result(answer)
}

struct Running {
    server: Arc<Server>,
    call: ToolCall,
    context: CallContext,
}

impl Running {
    async fn answer(&mut self) -> Result<(Arc<Tool>, Value), NoAnswer> {
        let live = tokio::select! {
            biased;
            () = self.context.cancel.cancelled() => return Err(NoAnswer::Cancelled),
            live = self.server.ready() => live.map_err(NoAnswer::Failed)?,
        };
        let gone = || NoAnswer::Failed(format!("the server no longer has the tool `{}`", self.call.tool));
        let tool = live.tools.get(&self.call.tool).ok_or_else(gone)?;
        match self.exchange(&live, &tool).await {
            Ok(reply) => Ok((tool, reply)),
            Err(Stopped::Cancelled) => Err(NoAnswer::Cancelled),
            Err(Stopped::Silent(after)) => Err(NoAnswer::Failed(format!(
                "the server `{}` gave no answer within {} seconds; the call was given up",
                self.server.id(),
                after.as_secs_f32()
            ))),
            Err(Stopped::Peer(PeerError::Closed)) => Err(NoAnswer::Failed(self.server.epitaph().await)),
            Err(Stopped::Peer(PeerError::Damaged(why))) => Err(NoAnswer::Failed(format!(
                "the answer of the server `{}` could not be read: {why}",
                self.server.id()
            ))),
            Err(Stopped::Peer(PeerError::Lost(why))) => {
                Err(NoAnswer::Failed(format!("the server `{}` gave no answer: {why}", self.server.id())))
            }
            Err(Stopped::Peer(error @ (PeerError::Unreachable(_) | PeerError::SignIn(_)))) => {
                Err(NoAnswer::Failed(format!("the server `{}`: {error}", self.server.id())))
            }
            Err(Stopped::Peer(error @ PeerError::Rpc { .. })) => Err(NoAnswer::Failed(error.to_string())),
        }
    }

    /// Sends the call and listens until it is settled.
    async fn exchange(&self, live: &Live, tool: &Tool) -> Result<Value, Stopped> {
        let limits = self.server.limits();
        let mut lines = Lines { from: self.server.log().follow(), left: LOG_LINES };
        let start = Instant::now();
        let end = start + limits.total;
        let mut silence_ends = start + limits.silence;
        let mut request = self.send(live, tool, silence_ends).await?;
        let mut meter = Meter::new(start);
        let progress = Arc::clone(&request.progress);
        loop {
            tokio::select! {
                biased;
                () = self.context.cancel.cancelled() => {
                    self.give_up(live, &request, "the user stopped it");
                    return Err(Stopped::Cancelled);
                }
                message = progress.next(), if Instant::now() < end => {
                    silence_ends = Instant::now() + limits.silence;
                    self.report(meter.read(message));
                }
                reply = request.reply() => {
                    // What came before the reply is told before it.
                    std::iter::from_fn(|| progress.try_next()).for_each(|message| self.report(meter.read(message)));
                    self.report(meter.held.take());
                    std::iter::from_fn(|| lines.try_next()).for_each(|line| self.tell(CallNews::Log(line)));
                    let reply = reply.map_err(Stopped::Peer)?;
                    self.wire(WireDirection::Received, &reply);
                    return result_in(reply).map_err(Stopped::Peer);
                }
                line = lines.next(), if lines.left > 0 => self.tell(CallNews::Log(line)),
                () = sleep_until(meter.due()), if meter.held.is_some() => self.report(meter.held.take()),
                () = sleep_until(silence_ends.min(end)) => {
                    self.give_up(live, &request, "it took too long");
                    return Err(Stopped::Silent(start.elapsed()));
                }
            }
        }
    }

    async fn send(&self, live: &Live, tool: &Tool, limit: Instant) -> Result<Request, Stopped> {
        let params = json!({"name": tool.spec.original_name, "arguments": self.call.arguments});
        let request = live.peer.request("tools/call", live.session.params(params), Reports::Wanted);
        let request = tokio::select! {
            biased;
            () = self.context.cancel.cancelled() => return Err(Stopped::Cancelled),
            request = request => request.map_err(Stopped::Peer)?,
            () = sleep_until(limit) => return Err(Stopped::Silent(self.server.limits().silence)),
        };
        self.wire(WireDirection::Sent, &request.sent);
        Ok(request)
    }

    fn give_up(&self, live: &Live, request: &Request, reason: &str) {
        let params = [("requestId".to_owned(), json!(request.id)), ("reason".to_owned(), json!(reason))];
        let sent = live.peer.notify("notifications/cancelled", Map::from_iter(params));
        self.wire(WireDirection::Sent, &sent);
    }

    fn report(&self, progress: Option<(Progress, Value)>) {
        if let Some((mut progress, message)) = progress {
            self.wire(WireDirection::Received, &message);
            progress.message = progress.message.map(|text| self.server.mask().text(&text));
            self.tell(CallNews::Progress(progress));
        }
    }

    fn wire(&self, direction: WireDirection, message: &Value) {
        self.tell(CallNews::Wire(direction, self.server.mask().value(outcome::for_trace(message))));
    }

    fn tell(&self, news: CallNews) {
        // Nobody listens any more when the turn is over.
        let _ = self.context.news.send(news);
    }

    fn result(self, answer: Result<(Arc<Tool>, Value), NoAnswer>) -> ToolResult {
        let (tool, reply) = match answer {
            Ok(answer) => answer,
            Err(NoAnswer::Failed(why)) => return ToolResult::of(&self.call, ToolOutcome::Failed, why),
            Err(NoAnswer::Cancelled) => {
                return ToolResult::of(&self.call, ToolOutcome::Cancelled, "stopped by the user");
            }
        };
        let reply = self.server.mask().value(reply);
        match outcome::map(&reply, self.server.limits().result_budget) {
            Mapped::Unsupported(why) => ToolResult::of(&self.call, ToolOutcome::Failed, why),
            Mapped::Result(result) => {
                self.remark(&tool, &result, &reply);
                let outcome = if result.is_error { ToolOutcome::Failed } else { ToolOutcome::Succeeded };
                let CallResult { content, structured, sources, .. } = *result;
                ToolResult { call: self.call.id, tool: self.call.tool, outcome, content, structured, sources }
            }
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

/// Why an exchange ended without a reply.
enum Stopped {
    Cancelled,
    Silent(Duration),
    Peer(PeerError),
}

/// The server's log during a call, so many lines of it.
struct Lines {
    from: broadcast::Receiver<Arc<str>>,
    left: usize,
}

impl Lines {
    /// The next line. Never returns when there is none.
    async fn next(&mut self) -> String {
        match self.from.recv().await {
            Ok(line) => self.counted(line.to_string()),
            Err(RecvError::Lagged(missed)) => self.counted(format!("[… {missed} lines left out]")),
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }

    /// What is there already.
    fn try_next(&mut self) -> Option<String> {
        let line = (self.left > 0).then(|| self.from.try_recv().ok()).flatten()?;
        Some(self.counted(line.to_string()))
    }

    fn counted(&mut self, line: String) -> String {
        self.left -= 1;
        if self.left == 0 { "[… the rest is in the server's log]".into() } else { line }
    }
}

/// Keeps progress from falling and from coming too fast.
struct Meter {
    last: Option<Progress>,
    told: u32,
    last_told: Instant,
    /// The newest that waits for its time.
    held: Option<(Progress, Value)>,
}

impl Meter {
    fn new(now: Instant) -> Self {
        Self { last: None, told: 0, last_told: now, held: None }
    }

    /// When what is held may be told.
    fn due(&self) -> Instant {
        self.last_told + PROGRESS_EVERY
    }

    /// What is to be told now of a progress notification: nothing if it falls behind or comes too soon.
    fn read(&mut self, message: Value) -> Option<(Progress, Value)> {
        let params = message.get("params")?;
        let done = params.get("progress")?.as_f64()?;
        let progress = Progress {
            done,
            total: params.get("total").and_then(Value::as_f64),
            message: params.get("message").and_then(Value::as_str).map(str::to_owned),
        };
        if self.last.as_ref().is_some_and(|last| done < last.done || *last == progress) || !done.is_finite() {
            return None;
        }
        self.last = Some(progress.clone());
        let now = Instant::now();
        if self.told >= PROGRESS_BURST && now < self.due() {
            self.held = Some((progress, message));
            return None;
        }
        self.told += 1;
        self.last_told = now;
        self.held = None;
        Some((progress, message))
    }
}
