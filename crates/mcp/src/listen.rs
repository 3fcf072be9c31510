//! What is heard of a server during a call: lines of its log, steps of its progress.
//!
//! A line belongs to the call on whose stream it came; without such a stream (stdio, stderr) to the only call that runs.
//! When several run, nobody can tell whose it is: then it stands in the server's log alone.
//!
//! Invariant: progress never falls and never comes faster than it can be drawn; a chatty server is cut short.

use std::time::Duration;

use lectern_core::Progress;
use serde_json::Value;
use tokio::sync::broadcast::{self, error::RecvError};
use tokio::time::Instant;

use crate::log::{Heard, ServerLog};

/// Steps of progress that are told at once; after that, one in [`PROGRESS_EVERY`].
const PROGRESS_BURST: u32 = 100;
const PROGRESS_EVERY: Duration = Duration::from_millis(50);
/// Lines of a server's log that are told during one call.
const LOG_LINES: usize = 200;

/// The server's log during a call, so many lines of it.
pub(crate) struct Lines {
    from: broadcast::Receiver<Heard>,
    /// Who listens.
    caller: u64,
    pub(crate) left: usize,
}

impl Lines {
    pub(crate) fn follow(log: &ServerLog, caller: u64) -> Self {
        Self { from: log.follow(), caller, left: LOG_LINES }
    }

    fn is_mine(&self, line: &Heard) -> bool {
        line.caller.is_none_or(|caller| caller == self.caller)
    }

    /// The next line. Never returns when there is none.
    pub(crate) async fn next(&mut self) -> String {
        loop {
            match self.from.recv().await {
                Ok(line) if self.is_mine(&line) => return self.counted(line.text.to_string()),
                Ok(_) => {}
                Err(RecvError::Lagged(missed)) => {
                    return self.counted(format!("[… {missed} lines left out]"));
                }
                Err(RecvError::Closed) => std::future::pending().await,
            }
        }
    }

    /// What is there already.
    pub(crate) fn try_next(&mut self) -> Option<String> {
        while self.left > 0 {
            let line = self.from.try_recv().ok()?;
            if self.is_mine(&line) {
                return Some(self.counted(line.text.to_string()));
            }
        }
        None
    }

    fn counted(&mut self, line: String) -> String {
        self.left -= 1;
        if self.left == 0 { "[… the rest is in the server's log]".into() } else { line }
    }
}

/// Keeps progress from falling and from coming too fast.
pub(crate) struct Meter {
    last: Option<Progress>,
    told: u32,
    last_told: Instant,
    /// The newest that waits for its time.
    pub(crate) held: Option<(Progress, Value)>,
}

impl Meter {
    pub(crate) fn new(now: Instant) -> Self {
        Self { last: None, told: 0, last_told: now, held: None }
    }

    /// When what is held may be told.
    pub(crate) fn due(&self) -> Instant {
        self.last_told + PROGRESS_EVERY
    }

    /// What is to be told now of a progress notification: nothing if it falls behind or comes too soon.
    pub(crate) fn read(&mut self, message: Value) -> Option<(Progress, Value)> {
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
