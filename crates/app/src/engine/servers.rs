//! The MCP servers: those of the vaults, and those of the settings.
//!
//! Invariant: only our own notes server is believed without the user's word; what a server says of itself is shown,
//! never used to tell servers apart.

mod bundles;
mod edit;
mod exports;
mod follow;
mod hosts;
mod imports;
mod notes;
mod plan;
mod sign;
mod sources;
mod values;
mod views;

use std::sync::Arc;
use std::time::Duration;

use lectern_core::ServerId;
use tokio::sync::broadcast::error::RecvError;

use super::{Engine, unknown_server};
use crate::view::{AppNews, Problem, ServerView};

pub(super) use edit::Removed;
pub use values::{NeededValue, ValueKind};

pub(super) use plan::{Planned, Unusable, host_options, planned, roots, vault_config};

/// How long a turn waits for servers that are still on their way. Who needs all of them waits with
/// [`Engine::servers_ready`].
const SEND_WAITS: Duration = Duration::from_secs(5);

/// How long the counts of resources and prompts are waited for.
const COUNT_WAITS: Duration = Duration::from_secs(5);

impl Engine {
    /// All servers as they are now, the vaults' first.
    pub fn servers(&self) -> Vec<ServerView> {
        let statuses = self.0.host.statuses().into_iter();
        let mut servers: Vec<ServerView> = statuses.map(|status| self.server_view(status)).collect();
        let unusable = self.state().unusable.clone();
        servers.extend(unusable.into_iter().map(|unusable| self.unusable_view(unusable)));
        servers
    }

    /// One server as it is now.
    pub fn server(&self, id: &ServerId) -> Result<ServerView, Problem> {
        self.servers().into_iter().find(|server| server.id == *id).ok_or_else(|| unknown_server(id))
    }

    /// Waits until no server is starting any more; each start has its own limit of time.
    pub async fn servers_ready(&self) {
        self.0.host.settled().await;
    }

    /// Waits until the resources and prompts of the running servers are counted, but not for long.
    pub async fn servers_counted(&self) {
        let _ = tokio::time::timeout(COUNT_WAITS, self.0.host.counted()).await;
    }

    /// Ends a server and starts it anew. Returns at once; the news tell what becomes of it.
    pub fn restart_server(&self, id: &ServerId) -> Result<(), Problem> {
        self.0.host.restart(id).map_err(|_| unknown_server(id))
    }

    /// Starts a server that is stopped or broken. Returns at once.
    pub fn start_server(&self, id: &ServerId) -> Result<(), Problem> {
        self.0.host.start_server(id).map_err(|_| unknown_server(id))
    }

    /// Ends a server until somebody starts it again, or Lectern is started anew.
    pub async fn stop_server(&self, id: &ServerId) -> Result<(), Problem> {
        self.0.host.stop(id).await.map_err(|_| unknown_server(id))
    }

    /// Waits until no server is starting any more, but not for long.
    pub async fn servers_settled(&self) {
        // A server that needs longer offers its tools from the next step on.
        let _ = tokio::time::timeout(SEND_WAITS, self.0.host.settled()).await;
    }

    /// Passes on what the host tells, for as long as there is an engine.
    pub(super) fn follow_servers(&self) {
        let mut changes = self.0.host.subscribe();
        let engine = Arc::downgrade(&self.0);
        tokio::spawn(async move {
            loop {
                let status = match changes.recv().await {
                    Ok(status) => status,
                    Err(RecvError::Lagged(_)) => continue,
                    Err(RecvError::Closed) => return,
                };
                let Some(inner) = engine.upgrade() else { return };
                let engine = Engine(inner);
                let server = Box::new(engine.server_view(status));
                engine.tell(AppNews::ServerChanged { server });
            }
        });
    }
}
