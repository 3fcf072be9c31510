//! `/v1`: what OpenAI's clients speak, strictly.
//!
//! Invariant: every body and every chunk is valid by OpenAI's public schema, whatever happens below; nothing is kept from
//! one request to the next but what makes the next one faster.

pub mod calls;
pub mod chat;
pub mod chunk;
pub mod form;
pub mod gather;
pub mod messages;
pub mod models;
pub mod outcome;
pub mod parts;
pub mod request;
pub mod served;
pub mod shape;
pub mod tools;

use axum::routing::get;
use utoipa::OpenApi as _;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::state::Api;

/// What is served here, with its descriptions.
pub fn routes() -> OpenApiRouter<Api> {
    /// The document knows no parameter that has slashes, so its route is not the path that is described.
    #[derive(utoipa::OpenApi)]
    #[openapi(paths(models::one), components(schemas(shape::answer::ChatCompletionChunk)))]
    struct Described;

    OpenApiRouter::with_openapi(Described::openapi())
        .routes(routes!(models::list))
        .routes(routes!(chat::completions))
        .route("/v1/models/{*id}", get(models::one))
}
