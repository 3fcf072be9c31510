//! The tools of a running server as it lists them, and how it is heard of when they are others.
//!
//! A list may say how long it holds (MCP 2026-07-28, `ttlMs`). When that is over it is asked for again as soon as somebody
//! wants to use it, and not before. Most servers say 0, for want of anything better: such a list, and one that says nothing,
//! holds until the server says that it changed.
//!
//! Invariant: the old list stays until there is a new one.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::{Live, Server};
use crate::handshake::Session;
use crate::log::ServerLog;
use crate::peer::{Peer, PeerError};
use crate::status::ServerState;
use crate::tools::{Listing, Tools};

/// A server that changes its tools in a burst is asked once.
pub(super) const SETTLING: Duration = Duration::from_millis(100);
/// Pause before a subscription that broke is taken again; each further one is longer.
const LISTEN_AGAIN: Duration = Duration::from_secs(1);
/// A subscription that lasted this long was a good one.
const LISTENED: Duration = Duration::from_secs(10);
/// Subscriptions in a row that ended sooner than that, each in good order.
const SHORT_ENDS: u32 = 3;
/// A list that did not come is not asked for again sooner, by its time alone.
const REFUSED_HOLDS: Duration = Duration::from_secs(60);
/// How long a list may take after the start.
pub(super) const RELIST_LIMIT: Duration = Duration::from_secs(30);

impl Server {
    pub(super) fn listing(&self) -> Listing<'_> {
        let approval = self.options.approval.as_deref();
        Listing { config: &self.config, approval, most: self.options.max_tools }
    }

    /// The tools may be others now. A server that changes them in a burst is asked once.
    pub(super) async fn relist(&self, live: Live) {
        live.peer.desk().cache.forget(&["tools/call"]);
        tokio::time::sleep(SETTLING).await;
        if let Some(tools) = self.asked(&live).await {
            self.publish(&Live { tools: Arc::new(tools), ..live });
        }
        self.listed.notify_waiters();
    }

    /// The list is old, and nobody said that it changed. What is the same is no news.
    pub(super) async fn refresh(&self, live: Live) {
        match self.asked(&live).await {
            Some(tools) if self.live().is_some_and(|now| now.tools.is_same(&tools)) => self.hold(tools.holds),
            Some(tools) => {
                live.peer.desk().cache.forget(&["tools/call"]);
                self.publish(&Live { tools: Arc::new(tools), ..live });
            }
            None => {}
        }
        self.listed.notify_waiters();
    }

    /// Asks for the tools; the old ones stay when there is no answer.
    async fn asked(&self, live: &Live) -> Option<Tools> {
        let listing = self.listing();
        let fetched = tokio::time::timeout(RELIST_LIMIT, listing.fetch(&live.peer, &live.session)).await;
        let why = match fetched {
            Ok(Ok(tools)) => return Some(tools),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "no answer".to_owned(),
        };
        self.log.line(&format!("[lectern] tools not listed again: {why}"));
        self.hold(live.tools.holds.map(|holds| holds.max(REFUSED_HOLDS)));
        None
    }

    /// Waits for the tools as they are now, when those that are known have held for as long as the server said.
    pub(super) async fn refreshed(&self) {
        let Some(live) = self.live().filter(|live| !live.peer.is_closed()) else { return };
        let listed = self.listed.notified();
        tokio::pin!(listed);
        listed.as_mut().enable();
        if !self.take_due() {
            return;
        }
        self.old.notify_one();
        tokio::select! {
            () = listed => {}
            () = live.peer.closed() => {}
        }
    }

    /// Whether the list has to be asked for again; says so once.
    fn take_due(&self) -> bool {
        let mut due = self.due.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = due.is_some_and(|due| due <= Instant::now());
        if is_due {
            *due = None;
        }
        is_due
    }

    fn hold(&self, holds: Option<Duration>) {
        *self.due.lock().unwrap_or_else(PoisonError::into_inner) = holds.map(|holds| Instant::now() + holds);
    }

    pub(super) fn publish(&self, live: &Live) {
        self.hold(live.tools.holds);
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
