//! Carries messages over streamable HTTP, of both eras, and over HTTP with SSE as before 2025-03-26.
//!
//! Each message is a POST of its own; the answer is JSON or a stream of events (MCP 2025-11-25, Transports; MCP
//! 2026-07-28, Streamable HTTP). In the era with `initialize` there is a session beside it, with a stream for what the
//! server says by itself. What a message is about is not known here, with three exceptions that the protocol makes:
//! `initialize` begins a session, `notifications/cancelled` ends an exchange, and some fields are repeated in headers.
//!
//! Invariant: every request settles: with its answer, with the server's error, or with a sentence about what happened
//! on the way. A request is sent twice only when the first one can't have had an effect, or would have none.
//!
//! # Why not `rmcp`'s transport
//!
//! Measured on rmcp 3.9.0: a server killed mid-call leaves the call waiting for more than 30 s; a server that was
//! restarted and answers 400 without an id leaves every later call waiting, while the connection claims to be open.
//! Both sit in its worker, between the HTTP client and the typed messages. Here the client is `reqwest`, the events are
//! read by `sse-stream`, and what is our own is the table of what each kind of answer means (`exchange`).
//!
//! | module | job |
//! |---|---|
//! | `client`, `reach` | the HTTP client, redirects, which addresses may be reached |
//! | `exchange`, `post` | one request: its POST, and what each kind of answer means |
//! | `answer` | the answer itself, in one piece or as a stream |
//! | `renew` | beginning anew with a server, or giving it up |
//! | `events` | bodies and streams of events, bounded |
//! | `session` | session id, revision |
//! | `listen` | the stream for what a server says by itself |
//! | `legacy` | HTTP with SSE (2024-11-05) |
//! | `headers` | `Mcp-Method`, `Mcp-Name`, `Mcp-Param-*` |

mod answer;
pub(crate) mod client;
pub(crate) mod events;
mod exchange;
mod headers;
mod legacy;
mod listen;
mod post;
pub(crate) mod reach;
mod renew;
mod session;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use reqwest::header::{AUTHORIZATION, HeaderMap};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinHandle};
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::auth::{Authorizer, Browser};
use crate::config::{Endpoint, HostOptions};
use crate::peer::{Carrier, Incoming, Outgoing};
use client::ClientError;
use session::{Session, method_of};

pub(crate) use headers::mirrored;

/// How long the end of a session may take.
const FAREWELL: Duration = Duration::from_secs(2);
/// How long the first word after `initialize` may hold up the rest.
const INITIALIZED: Duration = Duration::from_secs(10);

/// Why a connection ended by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    /// The server can't be reached any more.
    Unreachable(String),
    /// It wants the user to sign in.
    SignIn(String),
}

/// The way to one server.
pub(super) struct Route {
    url: Url,
    client: reqwest::Client,
    /// The user's own headers.
    headers: HeaderMap,
    auth: Authorizer,
    incoming: Incoming,
    max_message: usize,
    session: Session,
    params: headers::ParamHeaders,
    closing: CancellationToken,
    loss: Mutex<Option<Loss>>,
}

/// A remote server's end of a connection. Dropping it ends the connection without a word.
pub(crate) struct Remote {
    route: Arc<Route>,
    task: JoinHandle<()>,
}

/// Opens the way to a server. Nothing is sent yet.
pub(crate) fn carry(
    carrier: Carrier,
    endpoint: &Endpoint,
    options: &HostOptions,
) -> Result<Remote, ClientError> {
    let Carrier { outgoing, incoming, closing } = carrier;
    let url = client::address(&endpoint.url)?;
    let headers = client::headers(&endpoint.headers)?;
    let own_header = headers.contains_key(AUTHORIZATION);
    let (secrets, browser) = (options.secrets.clone(), options.browser.clone());
    let route = Arc::new(Route {
        client: client::for_server(&url)?,
        auth: Authorizer::new(&url, endpoint.sign_in.clone(), own_header, secrets, browser),
        headers,
        url,
        incoming,
        max_message: options.max_message,
        session: Session::default(),
        params: headers::ParamHeaders::default(),
        closing,
        loss: Mutex::default(),
    });
    let task = tokio::spawn(dispatch(Arc::clone(&route), outgoing));
    Ok(Remote { route, task })
}

impl Remote {
    /// Why the connection ended by itself.
    pub(crate) fn loss(&self) -> Option<Loss> {
        self.route.loss().clone()
    }

    /// Lets the user sign in although the start went well without.
    pub(crate) async fn visit(&self) -> Result<(), String> {
        self.route.auth.visit().await.map_err(|error| error.to_string())
    }

    /// The start is over. Returns at whose door somebody signed in.
    pub(crate) async fn started(&self, browser: Option<Arc<dyn Browser>>) -> Option<String> {
        self.route.auth.started(browser).await
    }

    /// Ends the connection, and the session with it, within a moment.
    pub(crate) async fn close(mut self) {
        self.route.closing.cancel();
        let _ = tokio::time::timeout(FAREWELL + Duration::from_millis(500), &mut self.task).await;
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        self.task.abort();
        self.route.incoming.end();
    }
}

impl Route {
    // A std mutex: nothing awaits while it is held.
    fn loss(&self) -> MutexGuard<'_, Option<Loss>> {
        self.loss.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the connection up. What still waits ends.
    fn lose(&self, loss: Loss) {
        self.loss().get_or_insert(loss);
        self.incoming.end();
    }
}

/// The exchanges that are on their way, by the id of their request.
#[derive(Default)]
struct Exchanges(HashMap<String, AbortHandle>);

impl Exchanges {
    fn begin(&mut self, id: &Value, task: &JoinHandle<()>) {
        self.0.retain(|_, other| !other.is_finished());
        self.0.insert(id.to_string(), task.abort_handle());
    }

    fn end(&mut self, id: &Value) {
        if let Some(task) = self.0.remove(&id.to_string()) {
            task.abort();
        }
    }
}

impl Drop for Exchanges {
    fn drop(&mut self) {
        self.0.values().for_each(AbortHandle::abort);
    }
}

/// Sends what is to be sent, each message as an exchange of its own.
async fn dispatch(route: Arc<Route>, mut outgoing: mpsc::Receiver<Outgoing>) {
    let mut exchanges = Exchanges::default();
    // Aborted with this task.
    let mut listener = listen::Listener::default();
    loop {
        let message = tokio::select! {
            () = route.closing.cancelled() => break,
            message = outgoing.recv() => match message { Some(message) => message.value().clone(), None => break },
        };
        match (method_of(Some(&message)), message.get("id")) {
            (Some(_), Some(id)) => {
                let id = id.clone();
                let task = tokio::spawn(exchange::run(Arc::clone(&route), message));
                exchanges.begin(&id, &task);
            }
            (Some("notifications/initialized"), None) => {
                // A server may refuse whatever comes before it has heard this.
                let _ = tokio::time::timeout(INITIALIZED, route.tell(&message)).await;
                listener.begin(&route).await;
            }
            (Some("notifications/cancelled"), None) => cancel(&route, &mut exchanges, message),
            (Some(_) | None, _) => {
                let route = Arc::clone(&route);
                drop(tokio::spawn(async move { route.tell(&message).await }));
            }
        }
    }
    drop(exchanges);
    drop(listener);
    if route.loss().is_none() {
        let _ = tokio::time::timeout(FAREWELL, route.say_goodbye()).await;
    }
    route.incoming.end();
}

/// Gives an exchange up. In the modern era the end of its stream says so (MCP 2026-07-28, Streamable HTTP,
/// Cancellation); before, the server is told.
fn cancel(route: &Arc<Route>, exchanges: &mut Exchanges, message: Value) {
    let id = message.pointer("/params/requestId").cloned().unwrap_or_default();
    if route.session.epoch() == 0 {
        exchanges.end(&id);
        return;
    }
    let task = exchanges.0.remove(&id.to_string());
    let route = Arc::clone(route);
    drop(tokio::spawn(async move {
        route.tell(&message).await;
        if let Some(task) = task {
            task.abort();
        }
    }));
}
