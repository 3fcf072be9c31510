//! What all requests share.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Instant;

use futures::{StreamExt, stream};
use tokio_util::sync::CancellationToken;

use crate::approvals::Approvals;
use crate::auth::{Keys, Scope};
use crate::backend::Backend;
use crate::cached::Cached;
use crate::error::{ApiError, ErrorKind};
use crate::limits::Meters;
use crate::metrics::Metrics;
use crate::options::ApiOptions;
use crate::prefix::Prefixes;
use crate::server::StartError;
use crate::sessions::Sessions;
use crate::v1::calls::{Piece, Pieces};

/// What all requests share. Clones are the same.
#[derive(Clone)]
pub struct Api(Arc<Shared>);

/// See [`Api`].
pub struct Shared {
    /// What answers.
    pub backend: Arc<dyn Backend>,
    /// Who may ask.
    pub keys: Keys,
    /// How it was started.
    pub options: ApiOptions,
    /// When, in seconds since 1970.
    pub started: u64,
    /// What each key uses now.
    pub meters: Meters,
    /// Which conversation of the caches a request goes on with.
    pub prefixes: Prefixes,
    /// The sessions of `/api`.
    pub sessions: Sessions,
    /// The calls that wait for the user.
    pub approvals: Approvals,
    /// Results of tools that only read.
    pub cached: Cached,
    /// What is counted.
    pub metrics: Metrics,
    /// Fires when streams have to end.
    pub ending: CancellationToken,
}

impl Api {
    /// For a server that starts now.
    pub fn new(backend: Arc<dyn Backend>, keys: Keys, options: ApiOptions) -> Result<Self, StartError> {
        let started = u64::try_from(lectern_core::clock::now().as_second()).unwrap_or_default();
        let (meters, ending) = (Meters::new(options.limits), CancellationToken::new());
        let (prefixes, approvals) = (Prefixes::default(), options.approvals.clone());
        let sessions = Sessions::open(&backend.folder(), &backend.store(), options.sessions);
        let sessions = sessions.map_err(StartError::Sessions)?;
        let metrics = Metrics::new().map_err(StartError::Metrics)?;
        Ok(Self(Arc::new(Shared {
            backend,
            keys,
            options,
            started,
            meters,
            prefixes,
            sessions,
            approvals,
            cached: Cached::default(),
            metrics,
            ending,
        })))
    }

    /// Whether there is anybody who can say yes to a call.
    pub fn can_approve(&self) -> bool {
        self.approvals.is_attended() || self.keys.any(Scope::Approvals)
    }

    /// The same pieces of one reply, counted.
    pub fn counted(&self, pieces: Pieces) -> Pieces {
        let (api, begun, mut spoken) = (self.clone(), Instant::now(), false);
        let count = move |piece: &Result<Piece, ApiError>| match piece {
            Ok(Piece::Text(_) | Piece::Thinking(_) | Piece::Call { .. }) if !spoken => {
                spoken = true;
                api.metrics.first_token(begun.elapsed());
            }
            Ok(Piece::Done { usage, .. }) => api.metrics.tokens(usage),
            Ok(_) | Err(_) => {}
        };
        pieces.inspect(count).boxed()
    }

    /// The same pieces; an error among them is counted, as it has no response of its own.
    pub fn failures_counted(&self, pieces: Pieces) -> Pieces {
        let api = self.clone();
        pieces
            .inspect(move |piece| _ = piece.as_ref().inspect_err(|error| api.metrics.error(error.code)))
            .boxed()
    }

    /// The pieces until the server ends or the answer's time is over; then the reason is the last one.
    pub fn until_end(&self, pieces: Pieces) -> Pieces {
        let ending = self.ending.clone();
        let over = Box::pin(tokio::time::sleep(self.options.limits.answer_time));
        let state = Some((pieces, ending, over));
        stream::unfold(state, |state| async move {
            let (mut pieces, ending, mut over) = state?;
            tokio::select! {
                biased;
                () = ending.cancelled() => Some((Err(ending_now()), None)),
                piece = pieces.next() => Some((piece?, Some((pieces, ending, over)))),
                () = &mut over => Some((Err(took_too_long()), None)),
            }
        })
        .boxed()
    }
}

impl Deref for Api {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}

/// The server ends under a request.
pub fn ending_now() -> ApiError {
    let status = axum::http::StatusCode::SERVICE_UNAVAILABLE;
    ApiError::failed(status, "server_ending", "Lectern's API is being stopped").retry_after(5)
}

/// Somebody stopped the answer: its session was deleted.
pub fn stopped() -> ApiError {
    let message = "the answer was stopped, as its session was deleted";
    ApiError::new(axum::http::StatusCode::CONFLICT, ErrorKind::InvalidRequestError, "answer_stopped", message)
}

/// The answer took longer than the limit.
pub fn took_too_long() -> ApiError {
    let status = axum::http::StatusCode::GATEWAY_TIMEOUT;
    ApiError::failed(status, "answer_timeout", "the answer took longer than the limit")
}
