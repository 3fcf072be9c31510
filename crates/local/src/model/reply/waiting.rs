//! Waiting for a worker that the user may stop, and that may die or say nothing.
//!
//! Invariant: a cancelled reply ends within a tenth of a second; a worker that does not stop is killed afterwards.

use std::time::Duration;

use lectern_core::FinishReason;
use tokio::time::{Instant, sleep_until, timeout};

use super::ReplyTask;
use crate::child::Child;
use crate::model::Worker;
use crate::protocol::{Done, Event, Finish, Request};
use crate::saved::sweep_process;

/// What a cancelled reply waits for the worker's last words.
const LAST_WORDS: Duration = Duration::from_millis(80);
/// What a cancelled worker gets before it is killed.
const GRACE: Duration = Duration::from_secs(2);

/// How waiting for an event ended.
pub(super) enum Waited {
    Event(Event),
    Died,
    Cancelled,
    Silent,
}

impl ReplyTask {
    /// The next event, unless the user stops first. A stop is passed on to the worker.
    pub(super) async fn wait(&self, child: &mut Child, job: u64, silence: Option<Duration>) -> Waited {
        let deadline = silence.map(|silence| Instant::now() + silence);
        let silent = async {
            match deadline {
                Some(deadline) => sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        let waited = tokio::select! {
            biased;
            () = self.stopped() => Waited::Cancelled,
            event = child.event_of(job) => event.map_or(Waited::Died, Waited::Event),
            () = silent => Waited::Silent,
        };
        if matches!(waited, Waited::Cancelled) {
            child.send(&Request::Cancel { job }).await;
        }
        waited
    }

    /// The user cancelled, or nobody reads any more.
    pub(super) async fn stopped(&self) {
        tokio::select! {
            () = self.cancel.cancelled() => {}
            () = self.out.closed() => {}
        }
    }

    /// After a cancel: the worker's last words if they come at once, then the end of the stream. A worker that
    /// does not stop is killed afterwards.
    pub(super) async fn settle(&mut self, worker: &mut Worker, mut child: Child, job: u64) {
        let first = timeout(LAST_WORDS, last_event(&mut child, job)).await;
        match &first {
            Ok(Some(Event::Done(done))) => self.done(&Done { finish: Finish::Cancelled, ..(**done).clone() }),
            Ok(_) | Err(_) => self.finish(FinishReason::Cancelled),
        }
        let last = match first {
            Ok(last) => last,
            Err(_) => timeout(GRACE, last_event(&mut child, job)).await.unwrap_or(None),
        };
        match last {
            Some(Event::Loaded { notes, .. }) => {
                worker.loaded = true;
                worker.notes = notes;
            }
            Some(_) => {}
            None => {
                worker.loaded = false;
                let process = child.id();
                child.kill().await;
                if let (Some(process), Some(folder)) = (process, &self.shared.cache.folder) {
                    sweep_process(folder, process);
                }
                return;
            }
        }
        worker.child = Some(child);
    }
}

/// The event that ends a job; none when the worker is gone.
pub(super) async fn last_event(child: &mut Child, job: u64) -> Option<Event> {
    loop {
        let event = child.event_of(job).await?;
        if matches!(
            event,
            Event::Done(_) | Event::ReadAhead { .. } | Event::Failed { .. } | Event::Loaded { .. }
        ) {
            return Some(event);
        }
    }
}
