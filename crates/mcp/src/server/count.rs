//! Counts the resources and prompts of a running server.
//!
//! Invariant: nobody waits for it. A list is asked for once after a start and once after the server said that it
//! changed; a server that declares no such thing is not asked.

use tokio::time::timeout;

use super::listing::{RELIST_LIMIT, SETTLING};
use super::{Live, Server};
use crate::handshake::Session;
use crate::prompts;
use crate::resources::{self, whole_list};
use crate::status::{ServerState, ServerStatus};

/// One of the lists that are counted.
#[derive(Clone, Copy)]
struct List {
    method: &'static str,
    field: &'static str,
    capability: &'static str,
    /// What makes an entry one, as who lists them sees it.
    key: &'static str,
}

const RESOURCES: List =
    List { method: resources::LIST, field: "resources", capability: "/resources", key: "uri" };
const PROMPTS: List = List { method: prompts::LIST, field: "prompts", capability: "/prompts", key: "name" };

/// What is known before anything was listed: what is not declared is not there.
pub(super) fn at_start(status: &mut ServerStatus, session: &Session) {
    let known = |count: Option<u32>, list: List| if session.can(list.capability) { count } else { Some(0) };
    status.resources = known(status.resources, RESOURCES);
    status.prompts = known(status.prompts, PROMPTS);
}

impl Server {
    /// Waits until it is not starting any more and, when it runs, its resources and prompts are counted.
    pub(crate) async fn counted(&self) {
        let mut watch = self.status.subscribe();
        let over = |status: &ServerStatus| match status.state {
            ServerState::Ready | ServerState::Degraded(_) => {
                status.resources.is_some() && status.prompts.is_some()
            }
            ServerState::Starting(_)
            | ServerState::Restarting { .. }
            | ServerState::Stopped
            | ServerState::NeedsApproval
            | ServerState::NeedsSignIn
            | ServerState::Failed(_) => !status.state.is_starting(),
        };
        // The sender lives in the server that `self` holds.
        let _ = watch.wait_for(over).await;
    }

    /// Counts now and whenever the lists change. Never returns.
    pub(super) async fn keep_counts(&self, live: Live) {
        let mut changes = live.peer.desk().list_changes();
        let mut seen = *changes.borrow_and_update();
        let before = self.status();
        let (resources, prompts) = tokio::join!(
            self.count(&live, RESOURCES, before.resources),
            self.count(&live, PROMPTS, before.prompts)
        );
        self.counts_are(resources, prompts);
        while changes.changed().await.is_ok() {
            tokio::time::sleep(SETTLING).await;
            let now = *changes.borrow_and_update();
            let status = self.status();
            let resources = match now.resources == seen.resources {
                true => status.resources,
                false => self.count(&live, RESOURCES, status.resources).await,
            };
            let prompts = match now.prompts == seen.prompts {
                true => status.prompts,
                false => self.count(&live, PROMPTS, status.prompts).await,
            };
            seen = now;
            self.counts_are(resources, prompts);
        }
        std::future::pending().await
    }

    /// How many entries there are; the number before when the server does not say.
    async fn count(&self, live: &Live, list: List, before: Option<u32>) -> Option<u32> {
        if !live.session.can(list.capability) {
            return Some(0);
        }
        let why = match timeout(RELIST_LIMIT, whole_list(live, list.method, list.field)).await {
            Ok(Ok(entries)) => {
                let count = entries.iter().filter(|entry| entry[list.key].is_string()).count();
                return u32::try_from(count).ok();
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => "no answer".to_owned(),
        };
        self.log.line(&format!("[lectern] {} not counted: {why}", list.field));
        before.or(Some(0))
    }

    fn counts_are(&self, resources: Option<u32>, prompts: Option<u32>) {
        let status = self.status();
        if (status.resources, status.prompts) != (resources, prompts) {
            self.change(|status| (status.resources, status.prompts) = (resources, prompts));
        }
    }
}
