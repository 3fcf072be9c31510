//! The task that owns a server's process: runs it, waits for orders, starts it again.
//!
//! Invariant: an order is obeyed in every state, also during a pause before a restart, and whoever waits for an order
//! is answered.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;

use super::restart::Streak;
use super::{Ended, Order, Server, Starter};
use crate::status::{Failure, FailureCode, ServerState, StartStep};

/// What the task does next.
enum Next {
    Run,
    Pause(Duration),
    Idle,
    Leave,
}

impl Server {
    pub(super) async fn supervise(self: Arc<Self>, mut orders: mpsc::UnboundedReceiver<Order>) {
        let mut streak = Streak::default();
        let mut next = if self.config.disabled { Next::Idle } else { Next::Run };
        loop {
            let ended = match next {
                Next::Run => self.run(&mut orders).await,
                Next::Pause(pause) => self.idle(&mut orders, Some(Instant::now() + pause)).await,
                Next::Idle => self.idle(&mut orders, None).await,
                Next::Leave => return,
            };
            self.set_live(None);
            next = match ended {
                Ended::Failed { failure, ready_for } => self.failed(&mut streak, *failure, ready_for),
                Ended::Waiting(state) => {
                    // In one step: who waits for the end of the start sees this state and no other.
                    self.withdraw(state);
                    Next::Idle
                }
                Ended::Paused => Next::Run,
                Ended::Ordered(order) => self.obey(order, &mut streak),
                Ended::Forgotten => Next::Leave,
            };
        }
    }

    /// Plans another start, or gives up.
    fn failed(&self, streak: &mut Streak, mut failure: Failure, ready_for: Option<Duration>) -> Next {
        tracing::warn!(server = %self.id(), failure = %failure, "MCP server failed");
        if failure.code == FailureCode::SignIn {
            self.log.line(&format!("[lectern] {}", failure.message));
            self.rest(ServerState::NeedsSignIn);
            return Next::Idle;
        }
        match streak.after(&self.options.restart, failure.code, ready_for) {
            Some(planned) => {
                let (attempt, of, delay) = (planned.attempt, planned.of, planned.pause);
                self.log.line(&format!("[lectern] {}", failure.message));
                self.log.line(&format!("[lectern] restart {attempt} of {of} in {} ms", delay.as_millis()));
                self.rest(ServerState::Restarting { attempt, of, delay, failure });
                Next::Pause(delay)
            }
            None => {
                match streak.restarts() {
                    0 => {}
                    1 => failure.message.push_str("; it was started again once, in vain"),
                    times => failure.message += &format!("; it was started again {times} times, in vain"),
                }
                self.log.line(&format!("[lectern] {}", failure.message));
                self.rest(ServerState::Failed(failure));
                Next::Idle
            }
        }
    }

    fn obey(&self, order: Order, streak: &mut Streak) -> Next {
        match order {
            Order::Start { by: Starter::Call, .. } => Next::Run,
            Order::Start { by: Starter::User, .. } | Order::Restart => {
                *streak = Streak::default();
                Next::Run
            }
            Order::Stop(done) => {
                self.withdraw(ServerState::Stopped);
                let _ = done.send(());
                Next::Idle
            }
            Order::Close(done) => {
                self.withdraw(ServerState::Stopped);
                let _ = done.send(());
                Next::Leave
            }
        }
    }

    /// It has no process now.
    fn rest(&self, state: ServerState) {
        self.change(|status| {
            status.state = state;
            status.pid = None;
        });
    }

    /// It has no process now, and what an earlier one offered is not offered any more.
    fn withdraw(&self, state: ServerState) {
        self.change(|status| {
            status.state = state;
            status.pid = None;
            status.tools = Arc::default();
            status.unseen = Arc::default();
            status.resources = None;
            status.prompts = None;
        });
    }

    /// Waits for an order that means something to a server that does not run, at most until `end`.
    async fn idle(&self, orders: &mut mpsc::UnboundedReceiver<Order>, end: Option<Instant>) -> Ended {
        loop {
            let order = tokio::select! {
                order = orders.recv() => order,
                () = until(end) => return Ended::Paused,
            };
            match order {
                None => return Ended::Forgotten,
                Some(Order::Start { seen, .. }) if seen != self.status.borrow().starts => {}
                Some(order) => return Ended::Ordered(order),
            }
        }
    }

    /// Runs the process once, from its start to its end.
    async fn run(&self, orders: &mut mpsc::UnboundedReceiver<Order>) -> Ended {
        if !self.may_start() {
            return Ended::Waiting(ServerState::NeedsApproval);
        }
        self.traffic.begin();
        self.change(|status| {
            status.starts += 1;
            status.state = ServerState::Starting(StartStep::Spawn);
        });
        let started = tokio::select! {
            started = self.begin() => started,
            // Dropping the start kills what it started.
            order = meaningful(orders) => return order,
        };
        match started {
            Ok((connection, live)) => {
                self.publish(&live);
                self.serve(connection, live, orders).await
            }
            Err(ended) => ended,
        }
    }
}

async fn until(end: Option<Instant>) {
    match end {
        Some(end) => tokio::time::sleep_until(end).await,
        None => std::future::pending().await,
    }
}

/// The next order that means something to a server that is running or starting.
pub(super) async fn meaningful(orders: &mut mpsc::UnboundedReceiver<Order>) -> Ended {
    loop {
        match orders.recv().await {
            None => return Ended::Forgotten,
            Some(Order::Start { .. }) => {}
            Some(order) => return Ended::Ordered(order),
        }
    }
}
