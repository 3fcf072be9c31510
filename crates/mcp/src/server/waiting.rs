//! Waiting for a server: until it is ready, has settled, is over.
//!
//! Invariant: whoever waits is told what is in the way; nothing here ends a server.

use std::sync::PoisonError;
use std::time::Duration;

use super::{Live, Order, Server, Starter};
use crate::status::ServerState;

impl Server {
    /// The running server; a dead one is started first. What is in the way is said in a sentence.
    pub(crate) async fn ready(&self) -> Result<Live, String> {
        let mut watch = self.status.subscribe();
        // The number of starts before the one that this call waits for.
        let mut waits_since: Option<u64> = None;
        loop {
            let (state, starts) = {
                let status = watch.borrow_and_update();
                (status.state.clone(), status.starts)
            };
            match state {
                ServerState::Stopped => return Err(format!("the server `{}` is stopped", self.id())),
                ServerState::NeedsApproval => {
                    return Err(format!("the server `{}` waits for the user's approval", self.id()));
                }
                ServerState::NeedsSignIn => {
                    return Err(format!("the server `{}` waits for the user to sign in", self.id()));
                }
                ServerState::Failed(failure) | ServerState::Restarting { failure, .. }
                    if waits_since.is_some_and(|since| since < starts) =>
                {
                    return Err(failure.to_string());
                }
                ServerState::Failed(_) | ServerState::Restarting { .. } => {
                    waits_since = Some(starts);
                    self.order(Order::Start { seen: starts, by: Starter::Call });
                }
                ServerState::Starting(_) => waits_since = waits_since.or(Some(starts.saturating_sub(1))),
                ServerState::Ready | ServerState::Degraded(_) => {
                    let live = self.live.read().unwrap_or_else(PoisonError::into_inner).clone();
                    // Without an open connection it has just ended, and its state will say so in a moment.
                    if let Some(live) = live.filter(|live| !live.peer.is_closed()) {
                        return Ok(live);
                    }
                }
            }
            if watch.changed().await.is_err() {
                return Err(format!("the server `{}` is gone", self.id()));
            }
        }
    }

    /// What became of a server whose connection just ended, as a sentence.
    pub(crate) async fn epitaph(&self) -> String {
        let mut watch = self.status.subscribe();
        let over =
            watch.wait_for(|status| !matches!(status.state, ServerState::Ready | ServerState::Degraded(_)));
        let state = tokio::time::timeout(Duration::from_secs(5), over).await;
        match state.ok().and_then(Result::ok).map(|status| status.state.clone()) {
            Some(ServerState::Failed(failure) | ServerState::Restarting { failure, .. }) => {
                failure.to_string()
            }
            Some(
                ServerState::Stopped
                | ServerState::NeedsApproval
                | ServerState::NeedsSignIn
                | ServerState::Starting(_)
                | ServerState::Ready
                | ServerState::Degraded(_),
            )
            | None => format!("the server `{}` ended during the call", self.id()),
        }
    }

    /// Waits until it is not starting any more, and its tools are those of now. A start that is tried again soon is not
    /// over.
    pub(crate) async fn settled(&self) {
        let mut watch = self.status.subscribe();
        let _ = watch.wait_for(|status| !status.state.is_starting()).await;
        self.refreshed().await;
    }

    /// The running server, as soon as it runs. Starts nothing; never returns when it is not started again.
    pub(crate) async fn next_live(&self) -> Live {
        let mut watch = self.status.subscribe();
        loop {
            if let Some(live) = self.live().filter(|live| !live.peer.is_closed()) {
                return live;
            }
            if watch.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}
