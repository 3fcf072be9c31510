//! Holds calls of servers' tools to the limits of the API: how many at once, for how long, and how much a session may keep.
//!
//! Invariant: a call that is stopped is told to stop, and given a moment to settle; its place is free afterwards.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use lectern_core::{
    CallContext, JsonObject, ToolCall, ToolName, ToolOutcome, ToolProvider, ToolResult, ToolSpec,
};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::sessions::Session;
use crate::state::Api;

/// How long a call that is told to stop may take for it.
const SETTLES: Duration = Duration::from_secs(1);

/// How often a session's folder is measured while a call runs.
const LOOKS: Duration = Duration::from_secs(1);

/// Which limit a call came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// It took too long.
    Time,
    /// The session's folder is full.
    Room,
}

/// The same tools within limits.
pub struct Bounded {
    inner: Arc<dyn ToolProvider>,
    limit: Limit,
}

#[derive(Clone)]
struct Limit {
    api: Api,
    places: Arc<Semaphore>,
    session: Option<Session>,
    stopped: Arc<OnceLock<Stopped>>,
}

impl Bounded {
    /// For calls with this key, in this session. What stops one is noted in `stopped`.
    pub fn new(
        inner: Arc<dyn ToolProvider>,
        api: &Api,
        key: &Arc<str>,
        session: Option<Session>,
        stopped: Arc<OnceLock<Stopped>>,
    ) -> Self {
        let places = api.meters.calls(key);
        Self { inner, limit: Limit { api: api.clone(), places, session, stopped } }
    }
}

impl ToolProvider for Bounded {
    fn tools(&self) -> Arc<[ToolSpec]> {
        self.inner.tools()
    }

    fn withheld(&self, tool: &ToolName) -> Option<String> {
        self.inner.withheld(tool)
    }

    fn masked(&self, call: &ToolCall) -> JsonObject {
        self.inner.masked(call)
    }

    fn call(&self, call: ToolCall, context: CallContext) -> BoxFuture<'static, ToolResult> {
        let (inner, limit) = (Arc::clone(&self.inner), self.limit.clone());
        let reads = inner.tools().iter().any(|spec| spec.name == call.tool && spec.is_read_only());
        async move {
            let result = limit.run(&*inner, call, context).await;
            if !reads {
                limit.api.cached.changed();
            }
            result
        }
        .boxed()
    }
}

impl Limit {
    async fn run(&self, inner: &dyn ToolProvider, call: ToolCall, context: CallContext) -> ToolResult {
        let until = Instant::now() + self.api.options.limits.call_time;
        let place = tokio::select! {
            place = Arc::clone(&self.places).acquire_owned() => place,
            () = context.cancel.cancelled() => {
                return ToolResult::of(&call, ToolOutcome::Cancelled, "The call waited for others and was stopped.");
            }
            () = sleep_until(until) => return self.stop(&call, Stopped::Time),
        };
        if self.is_full().await {
            return self.stop(&call, Stopped::Room);
        }
        let cancel = context.cancel.child_token();
        let running = inner.call(call.clone(), CallContext { cancel: cancel.clone(), ..context });
        let mut running = std::pin::pin!(running);
        let stopped = tokio::select! {
            result = running.as_mut() => {
                drop(place);
                return result;
            }
            () = sleep_until(until) => Stopped::Time,
            () = self.filled() => Stopped::Room,
        };
        cancel.cancel();
        let _ = timeout(SETTLES, running).await;
        self.stop(&call, stopped)
    }

    fn stop(&self, call: &ToolCall, stopped: Stopped) -> ToolResult {
        // The first reason is the one that is told.
        let _ = self.stopped.set(stopped);
        let text = match stopped {
            Stopped::Time => {
                let seconds = self.api.options.limits.call_time.as_secs_f64();
                format!("The call took more than {seconds} seconds and was stopped.")
            }
            Stopped::Room => "The session's folder is full; nothing more can be kept in it.".to_owned(),
        };
        ToolResult::of(call, ToolOutcome::Failed, text)
    }

    async fn is_full(&self) -> bool {
        match &self.session {
            Some(session) => self.api.sessions.is_full(session).await,
            None => false,
        }
    }

    /// Returns when the session's folder is full.
    async fn filled(&self) {
        loop {
            let begun = Instant::now();
            if self.is_full().await {
                return;
            }
            // Measuring is never more than a small part of the work.
            sleep(LOOKS.max(begun.elapsed() * 10)).await;
        }
    }
}
