//! Listens, serves each connection, and ends gracefully.
//!
//! Invariant: a slow or silent client costs a connection for a limited time, and nothing else.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use lectern_app::view::MetricsView;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio_io_timeout::TimeoutWriter;
use tokio_util::sync::CancellationToken;

use crate::approvals::Approvals;
use crate::auth::Keys;
use crate::backend::Backend;
use crate::options::{ApiOptions, Limits};
use crate::router::router;
use crate::state::Api;

/// How long streams may take to say that they end.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// After a failed accept (no more file handles) the next one waits so long.
const BREATH: Duration = Duration::from_millis(100);

/// The API at work.
pub struct Server {
    address: SocketAddr,
    /// Takes no more connections; those that are open end after what they do.
    closing: CancellationToken,
    api: Api,
    serving: tokio::task::JoinHandle<()>,
}

/// Why it did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Nobody can listen there.
    #[error("listen at {address}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Why not.
        source: std::io::Error,
    },
    /// What is kept of sessions can't be opened.
    #[error("open the sessions of the API")]
    Sessions(#[source] lectern_core::StoreError),
    /// Nothing can be counted.
    #[error("count what the API does")]
    Metrics(#[source] prometheus::Error),
}

impl Server {
    /// Listens, and serves in the background.
    pub async fn start(
        backend: Arc<dyn Backend>,
        keys: Keys,
        options: ApiOptions,
    ) -> Result<Self, StartError> {
        let asked = SocketAddr::new(options.bind, options.port);
        let listened = async {
            let listener = TcpListener::bind(asked).await?;
            let address = listener.local_addr()?;
            Ok((listener, address))
        };
        let (listener, address) =
            listened.await.map_err(|source| StartError::Listen { address: asked, source })?;
        let api = Api::new(backend, keys, options)?;
        let closing = CancellationToken::new();
        tokio::spawn(sweep(api.clone(), closing.clone()));
        let serving = tokio::spawn(serve(listener, api.clone(), closing.clone()));
        Ok(Self { address, closing, api, serving })
    }

    /// Where it is asked.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The address that it listens at.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The calls that wait for the user, for a window.
    pub fn approvals(&self) -> Approvals {
        self.api.approvals.clone()
    }

    /// What was counted since it was started: the numbers of `GET /metrics`, for a window.
    pub fn metrics(&self) -> MetricsView {
        self.api.metrics.view()
    }

    /// What its requests share.
    pub(crate) fn api(&self) -> &Api {
        &self.api
    }

    /// Takes no more connections, lets streams go on for a while, tells those that still run why they end, and stops.
    pub async fn end(mut self) {
        self.closing.cancel();
        let drained = tokio::time::timeout(self.api.options.limits.drain, &mut self.serving).await;
        if drained.is_err() {
            self.api.ending.cancel();
            let _ = tokio::time::timeout(LAST_WORDS, &mut self.serving).await;
            self.serving.abort();
        }
        self.api.sessions.settle(LAST_WORDS * 2).await;
        self.api.backend.forget(self.api.prefixes.take_all()).await;
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.closing.cancel();
        self.api.ending.cancel();
    }
}

async fn serve(listener: TcpListener, api: Api, closing: CancellationToken) {
    let limits = api.options.limits;
    let places = Arc::new(Semaphore::new(limits.connections));
    let router = router(&api);
    let mut connections = JoinSet::new();
    loop {
        // Beyond the limit connections wait in the system's queue.
        let place = tokio::select! {
            () = closing.cancelled() => break,
            place = Arc::clone(&places).acquire_owned() => place,
            Some(_) = connections.join_next() => continue,
        };
        let Ok(place) = place else { break };
        let stream = tokio::select! {
            () = closing.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        match stream {
            Ok((stream, _)) => {
                connections.spawn(connection(stream, router.clone(), limits, closing.clone(), place));
            }
            Err(error) => {
                tracing::warn!(%error, "accept a connection");
                tokio::time::sleep(BREATH).await;
            }
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

/// Lets go of sessions that rested too long: now, and while the server runs.
async fn sweep(api: Api, closing: CancellationToken) {
    loop {
        let swept = {
            let api = api.clone();
            tokio::task::spawn_blocking(move || api.sessions.sweep()).await
        };
        match swept {
            Ok(Ok(gone)) if gone.is_empty() => {}
            Ok(Ok(gone)) => api.backend.forget(gone).await,
            Ok(Err(error)) => tracing::warn!(%error, "sessions that rested too long"),
            Err(error) => tracing::warn!(%error, "sessions that rested too long"),
        }
        tokio::select! {
            () = closing.cancelled() => return,
            () = tokio::time::sleep(api.options.sessions.sweeps) => {}
        }
    }
}

async fn connection(
    stream: TcpStream,
    router: Router,
    limits: Limits,
    closing: CancellationToken,
    place: OwnedSemaphorePermit,
) {
    // Words are sent as they come.
    let _ = stream.set_nodelay(true);
    let mut stream = TimeoutWriter::new(stream);
    stream.set_timeout(Some(limits.write_time));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(limits.head_time)
        // Beyond our own limits, which have an answer of their own.
        .max_headers(limits.headers * 8)
        .max_buf_size(limits.header_bytes * 8);
    let service = TowerToHyperService::new(router);
    let serving = http.serve_connection(TokioIo::new(Box::pin(stream)), service);
    let mut serving = std::pin::pin!(serving);
    let served = tokio::select! {
        served = serving.as_mut() => served,
        () = closing.cancelled() => {
            serving.as_mut().graceful_shutdown();
            serving.as_mut().await
        }
    };
    if let Err(error) = served {
        tracing::debug!(%error, "a connection ended");
    }
    drop(place);
}
