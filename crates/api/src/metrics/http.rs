//! `GET /metrics`, and the count of all requests.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{Extension, MatchedPath, Request, State};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use prometheus::TextEncoder;
use tracing::Instrument;

use super::{OTHER, add, observe};
use crate::auth::{Caller, Scope};
use crate::document::Failures;
use crate::error::{ApiError, Failed};
use crate::held::hold;
use crate::state::Api;

/// The header with a request's id, which stands in the log and the audit log, too.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Counts and times.
///
/// In Prometheus' text format, version 0.0.4.
#[utoipa::path(
    get,
    path = "/metrics",
    operation_id = "get_metrics",
    tag = "Lectern",
    responses((status = 200, description = "The numbers", body = String, content_type = "text/plain"), Failures),
)]
pub async fn show(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
) -> Result<Response, ApiError> {
    caller.must(Scope::Models)?;
    let text = TextEncoder::new().encode_to_string(&api.metrics.registry.gather());
    let text = text.map_err(|error| {
        tracing::warn!(%error, "write the metrics");
        let status = StatusCode::INTERNAL_SERVER_ERROR;
        ApiError::failed(status, "internal_error", "the metrics could not be written")
    })?;
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    Ok(([(header::CONTENT_TYPE, kind)], text).into_response())
}

/// A request's id, among its extensions.
#[derive(Clone, Debug)]
pub struct RequestId(pub Arc<str>);

/// Counts a request, and gives it an id.
pub async fn account(State(api): State<Api>, mut request: Request, next: Next) -> Response {
    let begun = Instant::now();
    let id: Arc<str> = format!("req_{}", uuid::Uuid::new_v4().simple()).into();
    request.extensions_mut().insert(RequestId(Arc::clone(&id)));
    // The address as it is served: what a client made up is no label.
    let path = request.extensions().get::<MatchedPath>().map_or(OTHER, MatchedPath::as_str).to_owned();
    api.metrics.running.inc();
    let running = Running { api: api.clone(), path: path.clone(), begun };
    let span = tracing::info_span!("request", %id);
    let mut response = next.run(request).instrument(span).await;
    let status = response.status();
    let code = response.extensions().get::<Failed>().map(|failed| failed.code);
    tracing::info!(%id, %path, status = status.as_u16(), code, "answered");
    add(&api.metrics.requests, &[&path, status.as_str()], 1);
    if let Some(code) = code {
        api.metrics.error(code);
    }
    if let Ok(id) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(REQUEST_ID, id);
    }
    hold(response, running)
}

/// A request until its last byte.
struct Running {
    api: Api,
    path: String,
    begun: Instant,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.api.metrics.running.dec();
        observe(&self.api.metrics.request_time, &self.path, self.begun.elapsed());
    }
}
