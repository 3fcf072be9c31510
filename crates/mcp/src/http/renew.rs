//! What is done when a server is not what it was: its session begun anew, or the server given up.
//!
//! Invariant: a session is begun anew once for all requests that miss it.

use std::sync::Arc;

use lectern_core::WireDirection;
use serde_json::json;

use super::events::cause;
use super::exchange::PAUSES;
use super::post::described;
use super::{Loss, Route};
use crate::peer::PeerError;

impl Route {
    /// Begins the session anew with a server that has forgotten it (MCP 2025-11-25, Transports, Session Management).
    pub(super) async fn renew(self: &Arc<Self>, seen: u64) -> Result<(), PeerError> {
        let _one = self.session.renewing.lock().await;
        let Some((mut greeting, epoch)) = self.session.greeting() else { return Ok(()) };
        if epoch != seen {
            return Ok(());
        }
        let id = json!(format!("again-{epoch}"));
        greeting["id"] = id.clone();
        let lost = |why: String| {
            PeerError::Lost(format!("the server forgot the session and began no new one: {why}"))
        };
        self.incoming.carried(WireDirection::Sent, &greeting);
        let answer = self.post(&greeting).await.map_err(|error| lost(cause(&error)))?;
        let session = answer.response.headers().get("mcp-session-id").cloned();
        if !answer.response.status().is_success() {
            return Err(lost(described(answer.response).await));
        }
        let reply = self.read_reply(answer.response, &id).await?;
        reply.iter().for_each(|reply| self.incoming.carried(WireDirection::Received, reply));
        let reply = reply.filter(|reply| reply.pointer("/result/protocolVersion").is_some());
        let reply = reply.ok_or_else(|| lost("it gave no answer".into()))?;
        self.session.begin(&greeting, &reply, session);
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        self.incoming.carried(WireDirection::Sent, &initialized);
        self.tell(&initialized).await;
        self.incoming.log("[lectern] the server had forgotten the session; a new one has begun".into());
        // It may be another version of itself now.
        self.incoming.tools_may_have_changed();
        Ok(())
    }

    /// The address for people: without what may be secret.
    pub(super) fn shown_url(&self) -> String {
        let mut url = self.url.clone();
        url.set_query(None);
        let _ = url.set_password(None);
        let _ = url.set_username("");
        url.to_string()
    }

    /// After a broken connection: is the server still there? If not, everything else that waits should know.
    pub(super) fn doubt(self: &Arc<Self>) {
        let route = Arc::clone(self);
        drop(tokio::spawn(async move {
            for pause in PAUSES {
                match route.get(None).await {
                    Err(error) if error.is_connect() => tokio::time::sleep(pause).await,
                    // Whatever it says, it is there.
                    Ok(_) | Err(_) => return,
                }
            }
            route.lose(Loss::Unreachable(format!("`{}` can't be reached any more", route.shown_url())));
        }));
    }
}
