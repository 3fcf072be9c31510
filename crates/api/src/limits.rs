//! How much one key may have at once, and in a second.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::Response;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::auth::Caller;
use crate::error::{ApiError, ErrorKind};
use crate::held::hold;
use crate::options::Limits;
use crate::state::Api;

/// What each key uses.
pub struct Meters {
    limits: Limits,
    // A std mutex: nothing awaits while it is held. There are no more entries than keys.
    keys: Mutex<HashMap<Arc<str>, Meter>>,
}

struct Meter {
    running: Arc<Semaphore>,
    calls: Arc<Semaphore>,
    /// Requests that may come now; fills up as time goes by.
    bucket: f64,
    seen: Instant,
}

impl Meters {
    /// Nothing is used yet.
    pub fn new(limits: Limits) -> Self {
        Self { limits, keys: Mutex::default() }
    }

    /// Takes one request of this key in.
    pub fn enter(&self, key: &Arc<str>) -> Result<OwnedSemaphorePermit, ApiError> {
        let limits = self.limits;
        let now = Instant::now();
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        let meter = keys.entry(Arc::clone(key)).or_insert_with(|| Meter::new(&limits));
        let passed = now.duration_since(meter.seen).as_secs_f64();
        meter.bucket = (meter.bucket + passed * limits.per_second).min(limits.burst);
        meter.seen = now;
        if meter.bucket < 1.0 {
            return Err(too_many("rate_limit_exceeded", "too many requests a second with this key"));
        }
        let permit = Arc::clone(&meter.running).try_acquire_owned();
        let permit =
            permit.map_err(|_| too_many("too_many_concurrent", "too many requests at once with this key"))?;
        meter.bucket -= 1.0;
        Ok(permit)
    }

    /// The places for calls of tools of this key.
    pub fn calls(&self, key: &Arc<str>) -> Arc<Semaphore> {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        let meter = keys.entry(Arc::clone(key)).or_insert_with(|| Meter::new(&self.limits));
        Arc::clone(&meter.calls)
    }
}

impl Meter {
    fn new(limits: &Limits) -> Self {
        Self {
            running: Arc::new(Semaphore::new(limits.concurrent)),
            calls: Arc::new(Semaphore::new(limits.calls)),
            bucket: limits.burst,
            seen: Instant::now(),
        }
    }
}

/// Lets a request on while its key has not too many.
pub async fn check(State(api): State<Api>, request: Request, next: Next) -> Result<Response, ApiError> {
    let Some(caller) = request.extensions().get::<Caller>() else { return Ok(next.run(request).await) };
    let permit = api.meters.enter(&caller.name)?;
    // A stream counts until its last word.
    Ok(hold(next.run(request).await, permit))
}

fn too_many(code: &'static str, message: &str) -> ApiError {
    ApiError::new(StatusCode::TOO_MANY_REQUESTS, ErrorKind::RateLimitError, code, message).retry_after(1)
}
