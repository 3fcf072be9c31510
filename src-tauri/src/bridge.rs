//! Carries the events of a turn to the page, batched so that a fast model doesn't slow the window down.
//!
//! Invariant: every event crosses exactly once and in order; only deltas ever wait, and never past one frame.

use std::time::Duration;

use futures::{FutureExt, Stream, StreamExt};
use lectern_core::{Event, EventKind};
use tokio::time::{Instant, sleep_until};

/// Deltas wait this long for company: about two frames of a screen.
const FRAME: Duration = Duration::from_millis(33);

/// Messages from 8192 bytes on take a slower way into the page.
const BATCH_BYTES: usize = 8000;

/// Sends each batch as a JSON array until the events end or `send` says that nobody listens any more.
pub async fn forward<E, S>(mut events: E, mut send: S)
where
    E: Stream<Item = Event> + Unpin,
    S: FnMut(String) -> Listening,
{
    let mut batch = Batch::default();
    loop {
        let due = batch.due;
        let arrived = tokio::select! {
            event = events.next() => event,
            () = until(due) => {
                if batch.flush(&mut send) == Listening::No { return }
                continue;
            }
        };
        let Some(event) = arrived else { break };
        if batch.take(&event, &mut send) == Listening::No {
            return;
        }
        // What is already there travels along; a burst of log lines is one message, not hundreds.
        while let Some(Some(event)) = events.next().now_or_never() {
            if batch.take(&event, &mut send) == Listening::No {
                return;
            }
        }
        if batch.urgent && batch.flush(&mut send) == Listening::No {
            return;
        }
    }
    batch.flush(&mut send);
}

/// Whether the page still takes events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listening {
    /// It does.
    Yes,
    /// The page was closed or loaded anew; it attaches to the turn again if it wants more.
    No,
}

/// Events that wait, already as JSON.
#[derive(Default)]
struct Batch {
    json: String,
    due: Option<Instant>,
    urgent: bool,
}

impl Batch {
    fn take(&mut self, event: &Event, send: &mut impl FnMut(String) -> Listening) -> Listening {
        let Ok(json) = serde_json::to_string(event) else {
            // The types of `lectern-core` always serialise; a lost event must not end the turn's view.
            tracing::error!(seq = event.seq, "an event could not be written as JSON");
            return Listening::Yes;
        };
        let too_much = !self.json.is_empty() && self.json.len() + json.len() + 2 > BATCH_BYTES;
        if too_much && self.flush(send) == Listening::No {
            return Listening::No;
        }
        self.json.push(if self.json.is_empty() { '[' } else { ',' });
        self.json.push_str(&json);
        self.due.get_or_insert_with(|| Instant::now() + FRAME);
        self.urgent |= !is_delta(&event.kind);
        Listening::Yes
    }

    fn flush(&mut self, send: &mut impl FnMut(String) -> Listening) -> Listening {
        let mut batch = std::mem::take(self);
        if batch.json.is_empty() {
            return Listening::Yes;
        }
        batch.json.push(']');
        send(batch.json)
    }
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => std::future::pending().await,
    }
}

/// Whether the next event of the same kind makes this one old. The list is closed on purpose: a new kind of event
/// has to choose.
fn is_delta(kind: &EventKind) -> bool {
    match kind {
        EventKind::TextDelta { .. }
        | EventKind::ThinkingDelta { .. }
        | EventKind::ToolCallDelta { .. }
        | EventKind::PromptProgress { .. }
        | EventKind::ModelLoading { .. } => true,
        EventKind::TurnStarted { .. }
        | EventKind::StepStarted { .. }
        | EventKind::StepFinished { .. }
        | EventKind::PermissionRequested { .. }
        | EventKind::PermissionAnswered { .. }
        | EventKind::ToolStarted { .. }
        | EventKind::ToolProgress { .. }
        | EventKind::ToolWire { .. }
        | EventKind::ToolLog { .. }
        | EventKind::QuestionAsked { .. }
        | EventKind::QuestionAnswered { .. }
        | EventKind::SampleFinished { .. }
        | EventKind::ToolFinished { .. }
        | EventKind::Retrying { .. }
        | EventKind::Notice { .. }
        | EventKind::TurnFinished { .. } => false,
    }
}

#[cfg(test)]
mod tests;
