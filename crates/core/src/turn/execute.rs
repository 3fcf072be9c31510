//! Runs the calls of one step and settles each of them.
//!
//! Invariant: calls run side by side only when all of them just read; a provider that panics, hangs after a cancel
//! or sends news after its result harms nobody else.

use std::cmp::Ordering;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use tokio_util::task::AbortOnDropHandle;

use super::asked::CallAsker;
use super::bound;
use super::journal::store_error;
use super::prepare::{Prepared, Ready, prepare};
use super::repeats::Key;
use super::run::{Turn, panic_text};
use super::step::Reply;
use crate::clock::Stopwatch;
use crate::event::{EventKind, TurnError};
use crate::ids::{MessageId, ServerId, ToolCallId};
use crate::message::{ToolCall, ToolOutcome, ToolResult};
use crate::tool::{CallContext, CallNews};

/// How long a cancelled call may take to settle.
const GRACE: Duration = Duration::from_secs(1);

/// Progress, protocol messages and log lines of one call at most.
const MAX_NEWS: usize = 5_000;

/// Calls that run side by side at most.
const SIDE_BY_SIDE: usize = 8;

pub(super) async fn run_tool_calls(turn: &mut Turn, reply: &Reply) -> Result<(), TurnError> {
    let (mut ready, mut twins) = (Vec::new(), Vec::new());
    for call in reply.message.tool_calls() {
        match prepare(turn, &reply.tools, &ready, call).await {
            Prepared::Ready(call) => ready.push(*call),
            Prepared::Settled(result) => turn.journal.settle(result),
            Prepared::Twin(call, first) => twins.push((call, first)),
        }
        turn.journal.check()?;
    }
    if reply.message.has_tool_calls() {
        turn.exposing.got_results();
    }
    let side_by_side = ready.iter().all(|ready| ready.spec.is_read_only());
    let limit = if side_by_side { SIDE_BY_SIDE } else { 1 };
    let running = futures::stream::iter(ready).map(|ready| run_call(turn, ready)).buffer_unordered(limit);
    let done: Vec<Ran> = running.collect().await;
    for (call, first) in twins {
        if let Some(first) = done.iter().find(|ran| ran.result.call == first) {
            turn.journal.settle(turn.repeats.twin(&call, &first.result));
        }
    }
    for ran in done {
        turn.repeats.note(ran.key, ran.reads, true, &ran.result);
    }
    turn.journal.check()
}

/// A call that came to its end.
struct Ran {
    key: Key,
    reads: bool,
    result: ToolResult,
}

async fn run_call(turn: &Turn, ready: Ready) -> Ran {
    let (key, reads) = (ready.key.clone(), ready.spec.is_read_only());
    let result = settled(turn, ready).await;
    turn.journal.settle(result.clone());
    Ran { key, reads, result }
}

async fn settled(turn: &Turn, ready: Ready) -> ToolResult {
    let call = ready.call;
    if turn.cancel.is_cancelled() {
        let text = "The user stopped before this call ran.";
        let result = ToolResult::of(&call, ToolOutcome::Cancelled, text);
        write_down(turn, &ready.spec.server, &result, 0);
        return result;
    }
    turn.journal.tell(EventKind::ToolStarted { call: call.clone() });
    let watch = Stopwatch::start();
    let (sender, news) = mpsc::unbounded_channel();
    let cancel = turn.cancel.child_token();
    // A call that is left behind is told to stop, also when it is the turn that breaks.
    let left_behind = cancel.clone().drop_guard();
    let context = CallContext {
        conversation: turn.key.conversation.clone(),
        turn: turn.key.turn.clone(),
        cancel,
        news: sender,
        ask: Arc::new(CallAsker::new(turn, &call)),
    };
    let tools = Arc::clone(&turn.input.tools);
    let asked = call.clone();
    // A task of its own, so that its panic is caught and so that it can be left behind.
    let task = AbortOnDropHandle::new(tokio::spawn(async move { tools.call(asked, context).await }));
    let result = follow(turn, &call, task, news).await;
    write_down(turn, &ready.spec.server, &result, watch.millis());
    let (result, cuts) = bound::result(result);
    left_behind.disarm();
    for cut in cuts {
        let message = format!("result of `{}`: {cut}", call.tool);
        turn.journal.tell(EventKind::Notice { code: "result_cut".to_owned(), message });
    }
    result
}

/// Writes what came of a call to the audit log, before anyone hears of it.
fn write_down(turn: &Turn, server: &ServerId, result: &ToolResult, took_ms: u32) {
    if let Err(error) = turn.input.store.append_outcome(&turn.key, server, result, took_ms.into()) {
        turn.journal.fail(store_error(&error));
    }
}

/// Tells the news of a call until it is done.
async fn follow(
    turn: &Turn,
    call: &ToolCall,
    mut task: AbortOnDropHandle<ToolResult>,
    mut news: mpsc::UnboundedReceiver<CallNews>,
) -> ToolResult {
    let mut teller = Teller { turn, call: &call.id, done: f64::NEG_INFINITY, told: 0 };
    let mut deadline: Option<Instant> = None;
    loop {
        tokio::select! {
            done = &mut task => {
                // What was sent before the result still counts; what comes later is dropped.
                for _ in 0..news.len() {
                    if let Ok(news) = news.try_recv() { teller.tell(news) }
                }
                return match done {
                    Ok(result) => ToolResult { call: call.id.clone(), tool: call.tool.clone(), ..result },
                    Err(error) => broken(call, error),
                };
            }
            Some(news) = news.recv() => teller.tell(news),
            () = turn.cancel.cancelled(), if deadline.is_none() => deadline = Some(Instant::now() + GRACE),
            () = sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() => {
                let text = "The user stopped this call; whether it took effect is not known.";
                return ToolResult::of(call, ToolOutcome::Cancelled, text);
            }
        }
    }
}

fn broken(call: &ToolCall, error: tokio::task::JoinError) -> ToolResult {
    let reason = match error.try_into_panic() {
        Ok(panic) => format!("it crashed ({})", panic_text(&*panic)),
        Err(_) => "it was stopped".to_owned(),
    };
    ToolResult::of(call, ToolOutcome::Failed, format!("The tool `{}` gave no result: {reason}.", call.tool))
}

/// Turns the news of one call into events.
struct Teller<'a> {
    turn: &'a Turn,
    call: &'a ToolCallId,
    /// The furthest progress so far.
    done: f64,
    told: usize,
}

impl Teller<'_> {
    /// Keeps a long message whole, as far as there is room.
    fn keep(&self, whole: &str) -> Option<MessageId> {
        if self.told >= MAX_NEWS {
            return None;
        }
        let kept = self.turn.input.store.keep_long(&self.turn.key.turn, whole);
        kept.inspect_err(|error| tracing::warn!(%error, "a long protocol message was not kept"))
            .ok()
            .flatten()
    }

    fn tell(&mut self, news: CallNews) {
        let call = self.call.clone();
        let event = match news {
            // Progress that falls back, or is no number, is a server's mistake.
            CallNews::Progress(progress) if progress.done.is_nan() || progress.done < self.done => return,
            CallNews::Progress(progress) => {
                self.done = progress.done;
                EventKind::ToolProgress { call, progress }
            }
            CallNews::Wire(direction, message) => {
                let message = bound::wire(message, |whole| self.keep(whole));
                EventKind::ToolWire { call, direction, message }
            }
            CallNews::Log(line) => EventKind::ToolLog { call, line: bound::log_line(line) },
        };
        self.told += 1;
        match self.told.cmp(&MAX_NEWS) {
            Ordering::Less => self.turn.journal.tell(event),
            Ordering::Equal => self.turn.journal.tell(EventKind::Notice {
                code: "news_dropped".to_owned(),
                message: format!("call {} sends too much; the rest of its news is dropped", self.call),
            }),
            Ordering::Greater => {}
        }
    }
}
