//! `/api`: what `/v1` cannot carry. Tools that run here and are told frame by frame, sessions, consent.
//!
//! Invariant: nothing of this is ever sent on `/v1`; each frame has a sequence number, and each frame about a call its id.

pub mod approvals;
pub mod chat;
pub mod events;
pub mod frames;
pub mod manual;
pub mod one;
pub mod sessions;
pub mod shape;
mod telling;
pub mod tools;

use utoipa::OpenApi as _;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::state::Api;

/// What is served here, and the numbers, with their descriptions.
pub fn routes() -> OpenApiRouter<Api> {
    /// What streams are made of, which no address names.
    #[derive(utoipa::OpenApi)]
    #[openapi(components(schemas(shape::frame::Frame, shape::event::SessionEvent)))]
    struct Described;

    OpenApiRouter::with_openapi(Described::openapi())
        .routes(routes!(chat::completions))
        .routes(routes!(tools::list))
        .routes(routes!(tools::call))
        .routes(routes!(approvals::list))
        .routes(routes!(approvals::answer))
        .routes(routes!(sessions::show, sessions::delete))
        .routes(routes!(events::follow))
        .routes(routes!(crate::metrics::http::show))
}
