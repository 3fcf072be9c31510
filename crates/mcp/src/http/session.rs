//! What a server and the host have agreed on, as far as the way between them must know it.
//!
//! Invariant: one at a time renews a session; whoever comes second finds it renewed.

use std::sync::{Mutex, MutexGuard, PoisonError};

use reqwest::header::{HeaderMap, HeaderValue};
use serde_json::Value;
use url::Url;

/// The first revision whose requests carry their context themselves.
pub(super) const MODERN: &str = "2026-07-28";
/// Where a request of the modern era says which revision it speaks.
const VERSION_IN_META: &str = "/params/_meta/io.modelcontextprotocol~1protocolVersion";

/// The state of the way to one server.
#[derive(Debug, Default)]
pub(super) struct Session {
    state: Mutex<State>,
    pub(super) renewing: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct State {
    id: Option<HeaderValue>,
    protocol: Option<String>,
    /// The `initialize` request, to say it again to a server that forgot it.
    greeting: Option<Value>,
    /// How often a session began.
    epoch: u64,
    /// Where messages go with HTTP+SSE (2024-11-05).
    post_to: Option<Url>,
}

/// What a message is sent with.
#[derive(Clone, Debug)]
pub(super) struct Context {
    pub(super) epoch: u64,
    pub(super) has_session: bool,
    pub(super) modern: bool,
    pub(super) post_to: Option<Url>,
}

impl Session {
    // A std mutex: nothing awaits while it is held.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the headers of the session to a message, and says under which session it is sent.
    pub(super) fn mark(&self, message: Option<&Value>, headers: &mut HeaderMap) -> Context {
        let state = self.state();
        let own = message.and_then(|message| message.pointer(VERSION_IN_META)).and_then(Value::as_str);
        let greeting = method_of(message) == Some("initialize");
        let version = own.or(state.protocol.as_deref()).filter(|_| !greeting);
        if let Some(version) = version.and_then(|version| HeaderValue::try_from(version).ok()) {
            headers.insert("mcp-protocol-version", version);
        }
        let modern = own.is_some();
        let id = state.id.as_ref().filter(|_| !modern && !greeting);
        if let Some(id) = id {
            headers.insert("mcp-session-id", id.clone());
        }
        Context { epoch: state.epoch, has_session: id.is_some(), modern, post_to: state.post_to.clone() }
    }

    /// A session has begun: `initialize` was answered.
    pub(super) fn begin(&self, greeting: &Value, reply: &Value, id: Option<HeaderValue>) {
        let Some(protocol) = reply.pointer("/result/protocolVersion").and_then(Value::as_str) else { return };
        let mut state = self.state();
        state.protocol = Some(protocol.to_owned());
        state.id = id.filter(|id| id.as_bytes().iter().all(|byte| (0x21..0x7f).contains(byte)));
        state.greeting = Some(greeting.clone());
        state.epoch += 1;
    }

    /// The `initialize` request that began this session, and which session it was.
    pub(super) fn greeting(&self) -> Option<(Value, u64)> {
        let state = self.state();
        state.greeting.clone().map(|greeting| (greeting, state.epoch))
    }

    pub(super) fn epoch(&self) -> u64 {
        self.state().epoch
    }

    /// Whether there is a session of the era with `initialize`, in which a server may speak up by itself.
    pub(super) fn listens(&self) -> bool {
        let state = self.state();
        state.post_to.is_none() && state.protocol.as_deref().is_some_and(|protocol| protocol != MODERN)
    }

    pub(super) fn has_id(&self) -> bool {
        self.state().id.is_some()
    }

    /// From now on messages go there, and answers come over the stream (2024-11-05).
    pub(super) fn post_to(&self, url: Url) {
        self.state().post_to = Some(url);
    }
}

pub(super) fn method_of(message: Option<&Value>) -> Option<&str> {
    message?.get("method")?.as_str()
}
