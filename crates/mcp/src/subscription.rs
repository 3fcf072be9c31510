//! News of one resource, for as long as somebody wants them (MCP 2025-11-25 and 2026-07-28, Resources, Subscriptions).
//!
//! Invariant: a subscription outlives its connection: a server that comes back is asked again, and whoever listens is
//! told to look, for what happened in between was not heard. Dropped, it ends.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use crate::peer::{Peer, PeerError, Reports};
use crate::server::{Live, Server};

const METHOD: &str = "resources/subscribe";
/// Pause before news that ended are asked for again; each further one is longer.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// News that came for this long ended for a good reason.
const LASTED: Duration = Duration::from_secs(10);

/// Keeps the news of one resource coming; dropped, it ends them.
pub struct Subscription {
    _task: AbortOnDropHandle<()>,
}

impl Subscription {
    /// Subscribes now; a refusal is the caller's.
    pub(crate) async fn begin(server: Arc<Server>, live: Live, uri: String) -> Result<Self, PeerError> {
        greet(&server, &live, &uri).await?;
        Ok(Self { _task: AbortOnDropHandle::new(tokio::spawn(keep(server, live, uri))) })
    }
}

/// In the era with `initialize` the server is told once; later its news come as long as the host listens.
async fn greet(server: &Server, live: &Live, uri: &str) -> Result<(), PeerError> {
    if live.session.is_modern() {
        return Ok(());
    }
    let asked = live.peer.ask(METHOD, live.session.params(json!({ "uri": uri })));
    let limit = server.limits(None).silence;
    let silent = || PeerError::Lost(format!("no answer within {} seconds", limit.as_secs_f32()));
    tokio::time::timeout(limit, asked).await.unwrap_or_else(|_| Err(silent())).map(drop)
}

async fn keep(server: Arc<Server>, mut live: Live, uri: String) {
    let mut pause = FIRST_PAUSE;
    loop {
        let begun = Instant::now();
        follow(&server, &live, &uri).await;
        if begun.elapsed() > LASTED {
            pause = FIRST_PAUSE;
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
        live = server.next_live().await;
        if live.session.can("/resources/subscribe") {
            match greet(&server, &live, &uri).await {
                Ok(()) => live.peer.desk().noticed("notifications/resources/updated", &json!({ "uri": uri })),
                Err(error) => {
                    server.log().line(&format!("[lectern] no news of `{uri}` any more: {error}"));
                    live.peer.closed().await;
                }
            }
        }
    }
}

/// Returns when the connection, or the server's readiness to tell, has ended.
async fn follow(server: &Server, live: &Live, uri: &str) {
    let (peer, session) = (&live.peer, &live.session);
    if !session.is_modern() {
        let over = Unsubscribe { peer: peer.clone(), uri: uri.to_owned() };
        peer.closed().await;
        return drop(over);
    }
    let filter = json!({"notifications": {"resourceSubscriptions": [uri]}});
    let listening = peer.request("subscriptions/listen", session.params(filter), Reports::Unwanted).await;
    let Ok(mut request) = listening else { return };
    let mut over = Cancelled { peer: peer.clone(), id: Some(request.id) };
    let ended = request.result().await;
    // It is over by itself: there is nothing to cancel.
    over.id = None;
    match ended {
        Err(PeerError::Rpc { code, message, .. }) => {
            server.log().line(&format!("[lectern] no news of `{uri}`: error {code}: {message}"));
            peer.closed().await;
        }
        Ok(_) | Err(_) if peer.is_closed() => {}
        Ok(_) | Err(_) => {
            server.log().line(&format!("[lectern] the news of `{uri}` ended; asking for them again"))
        }
    }
}

/// Tells a server of the older era that its news are no longer wanted.
struct Unsubscribe {
    peer: Peer,
    uri: String,
}

impl Drop for Unsubscribe {
    fn drop(&mut self) {
        if self.peer.is_closed() {
            return;
        }
        let (peer, uri) = (self.peer.clone(), Value::from(self.uri.as_str()));
        // Its answer changes nothing; without a runtime the connection is about to end anyway.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                let asked = peer.ask("resources/unsubscribe", Map::from_iter([("uri".to_owned(), uri)]));
                let _ = tokio::time::timeout(Duration::from_secs(5), asked).await;
            });
        }
    }
}

/// Tells a server of the modern era that nobody listens any more.
struct Cancelled {
    peer: Peer,
    /// None when it is over.
    id: Option<i64>,
}

impl Drop for Cancelled {
    fn drop(&mut self) {
        if let Some(id) = self.id.filter(|_| !self.peer.is_closed()) {
            let params = Map::from_iter([("requestId".to_owned(), json!(id))]);
            self.peer.notify("notifications/cancelled", params);
        }
    }
}
