//! Which address leads where, and past whom.

use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};
use tower_http::cors::{AllowOrigin, CorsLayer};

use crate::error::{ApiError, ErrorKind};
use crate::fields::shortened;
use crate::state::Api;
use crate::{auth, guard, limits, metrics, v1};

/// Everything that is served.
pub fn router(api: &Api) -> Router {
    let with_key = Router::new()
        .route("/v1/models", get(v1::models::list))
        .route("/v1/models/{*id}", get(v1::models::one))
        .route("/v1/chat/completions", post(v1::chat::completions))
        .route("/metrics", get(metrics::http::show))
        .fallback(no_such_address)
        .method_not_allowed_fallback(no_such_method)
        .layer(from_fn_with_state(api.clone(), limits::check))
        .layer(from_fn_with_state(api.clone(), auth::require));
    with_key
        .layer(cors(api))
        .layer(from_fn_with_state(api.clone(), guard::check))
        .layer(from_fn_with_state(api.clone(), metrics::http::account))
        .with_state(api.clone())
}

/// Pages of listed origins may read the answers. A preflight has no key.
fn cors(api: &Api) -> CorsLayer {
    let origins = api.options.origins.clone();
    let listed = move |origin: &HeaderValue, _: &axum::http::request::Parts| {
        origin.to_str().is_ok_and(|origin| guard::is_listed(origin, &origins))
    };
    CorsLayer::new()
        .allow_origin(AllowOrigin::predicate(listed))
        .allow_methods([Method::GET, Method::POST, Method::DELETE])
        .allow_headers(tower_http::cors::AllowHeaders::mirror_request())
        .expose_headers([header::RETRY_AFTER, header::ETAG, metrics::http::REQUEST_ID])
}

async fn no_such_address(request: Request) -> ApiError {
    let path = shortened(request.uri().path());
    ApiError::not_found("unknown_url", format!("nothing is served at `{path}`"))
}

async fn no_such_method(request: Request) -> ApiError {
    let message = format!("`{}` is not served here", shortened(request.method().as_str()));
    let status = StatusCode::METHOD_NOT_ALLOWED;
    ApiError::new(status, ErrorKind::InvalidRequestError, "method_not_allowed", message)
}
