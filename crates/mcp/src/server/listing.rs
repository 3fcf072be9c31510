//! The tools of a running server as it lists them, and how it is heard of when they are others.
//!
//! Invariant: the old list stays until there is a new one.

use std::sync::Arc;
use std::time::Duration;

use super::{Live, Server};
use crate::handshake::Session;
use crate::log::ServerLog;
use crate::peer::{Peer, PeerError};
use crate::status::ServerState;
use crate::tools::Listing;

/// A server that changes its tools in a burst is asked once.
pub(super) const SETTLING: Duration = Duration::from_millis(100);
/// Pause before a subscription that broke is taken again; each further one is longer.
const LISTEN_AGAIN: Duration = Duration::from_secs(1);
/// A subscription that lasted this long was a good one.
const LISTENED: Duration = Duration::from_secs(10);
/// Subscriptions in a row that ended sooner than that, each in good order.
const SHORT_ENDS: u32 = 3;
/// How long a list may take after the start.
pub(super) const RELIST_LIMIT: Duration = Duration::from_secs(30);

impl Server {
    pub(super) fn listing(&self) -> Listing<'_> {
        let approval = self.options.approval.as_deref();
        Listing { config: &self.config, approval, most: self.options.max_tools }
    }

    /// Asks for the tools again; the old ones stay when there is no answer.
    pub(super) async fn relist(&self, live: Live) {
        live.peer.desk().cache.forget(&["tools/call"]);
        tokio::time::sleep(SETTLING).await;
        match tokio::time::timeout(RELIST_LIMIT, self.listing().fetch(&live.peer, &live.session)).await {
            Ok(Ok(tools)) => self.publish(&Live { tools: Arc::new(tools), ..live }),
            Ok(Err(error)) => self.log.line(&format!("[lectern] tools not listed again: {error}")),
            Err(_) => self.log.line("[lectern] tools not listed again: no answer"),
        }
    }

    pub(super) fn publish(&self, live: &Live) {
        self.set_live(Some(live.clone()));
        for reason in &live.tools.dropped {
            self.log.line(&format!("[lectern] {reason}"));
        }
        self.change(|status| {
            status.tools = Arc::clone(&live.tools.specs);
            status.unseen = Arc::clone(&live.tools.unseen);
            status.state = match live.tools.dropped.as_slice() {
                [] => ServerState::Ready,
                reasons => ServerState::Degraded(reasons.to_vec()),
            };
        });
    }
}

/// In the modern era changes of the lists are only told to who listens. Never returns.
pub(super) async fn subscribe(peer: Peer, session: Arc<Session>, log: Arc<ServerLog>) {
    let lists = [
        ("toolsListChanged", "/tools/listChanged"),
        ("resourcesListChanged", "/resources/listChanged"),
        ("promptsListChanged", "/prompts/listChanged"),
    ];
    let told = lists.into_iter().filter(|(_, capability)| session.can(capability));
    let filter: serde_json::Map<_, _> = told.map(|(name, _)| (name.to_owned(), true.into())).collect();
    if session.is_modern() && !filter.is_empty() {
        let why = listen(&peer, &session, &serde_json::json!({ "notifications": filter })).await;
        if let Some(why) = why.filter(|_| !peer.is_closed()) {
            log.line(&format!("[lectern] the server tells of no more changes: {why}"));
        }
    }
    std::future::pending().await
}

/// Listens for as long as the server lets anybody; after a break it begins anew, ever more slowly. Returns why it gave up;
/// none when the connection is gone, of which others tell.
async fn listen(peer: &Peer, session: &Session, filter: &serde_json::Value) -> Option<String> {
    let mut pause = LISTEN_AGAIN;
    let mut short = 0;
    loop {
        let begun = tokio::time::Instant::now();
        match peer.ask("subscriptions/listen", session.params(filter.clone())).await {
            Err(PeerError::Lost(_) | PeerError::Damaged(_)) => {}
            // It ended in good order: after a while, as a proxy or a restart may end it, or at once.
            Ok(_) if begun.elapsed() > LISTENED => short = 0,
            Ok(_) if short < SHORT_ENDS => short += 1,
            Ok(_) => return Some("it ended the listening again and again".into()),
            Err(PeerError::Closed) => return None,
            Err(error) => return Some(error.to_string()),
        }
        pause = if begun.elapsed() > LISTENED { LISTEN_AGAIN } else { (pause * 2).min(RELIST_LIMIT) };
        tokio::time::sleep(pause).await;
        // What was told in the meantime was not heard.
        peer.tools_may_have_changed();
        peer.desk().lists_may_have_changed();
    }
}
