//! Which address leads where, and past whom.

use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::from_fn_with_state;
use tower_http::cors::{AllowOrigin, CorsLayer};
use utoipa_axum::router::OpenApiRouter;

use crate::error::{ApiError, ErrorKind};
use crate::fields::shortened;
use crate::state::Api;
use crate::{auth, document, guard, limits, metrics, native, v1};

/// Everything that is served.
pub fn router(api: &Api) -> Router {
    let (described, document) = described().split_for_parts();
    let with_key = described
        .fallback(no_such_address)
        .method_not_allowed_fallback(no_such_method)
        .layer(from_fn_with_state(api.clone(), limits::check))
        .layer(from_fn_with_state(api.clone(), auth::require));
    with_key
        .merge(document::routes(&document))
        .layer(cors(api))
        .layer(from_fn_with_state(api.clone(), guard::check))
        .layer(from_fn_with_state(api.clone(), metrics::http::account))
        .with_state(api.clone())
}

/// All that needs a key, and what the document says about it.
fn described() -> OpenApiRouter<Api> {
    OpenApiRouter::with_openapi(document::frame()).merge(v1::routes()).merge(native::routes())
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// axum lists its routes for debugging only: all texts with a slash at the beginning are addresses.
    fn addresses(router: &Router<Api>) -> BTreeSet<String> {
        let shown = format!("{router:?}");
        let addresses = shown.split('"').filter(|text| text.starts_with('/'));
        addresses.map(|address| address.replace("{*", "{")).collect()
    }

    #[test]
    fn each_address_that_is_routed_is_described() {
        let (routes, document) = described().split_for_parts();
        // A router without routes has what it answers everything else with.
        let routed = &addresses(&routes) - &addresses(&Router::new());
        assert!(routed.len() > 9, "{routes:?}");
        assert_eq!(routed, document.paths.paths.keys().cloned().collect());
    }
}
