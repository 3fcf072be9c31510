//! The errors, and the events of a stream, as the document describes them.

use std::collections::BTreeMap;

use axum::http::StatusCode;
use utoipa::openapi::content::ContentBuilder;
use utoipa::openapi::response::{Response, ResponseBuilder};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{IntoResponses, ToSchema};

use crate::error::ErrorKind;

/// Why a request was not served.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it is only described; `ApiError` writes it")]
pub struct ErrorBody {
    error: ErrorFields,
}

#[derive(ToSchema)]
#[expect(dead_code, reason = "as above")]
pub struct ErrorFields {
    /// One sentence for people.
    message: String,
    r#type: ErrorKind,
    /// What exactly, for programs; all of them are in the handbook's table.
    code: String,
    /// The field that is at fault.
    #[schema(required = true)]
    param: Option<String>,
    /// The tool that failed.
    #[schema(nullable = false)]
    tool_name: Option<String>,
}

/// One event of a stream. Comments are none.
#[derive(ToSchema)]
#[expect(dead_code, reason = "as above")]
pub struct ServerSentEvent {
    /// JSON, or `[DONE]` at the end.
    data: String,
}

/// The statuses of all errors, for `responses(…)` of an operation.
pub struct Failures;

/// The statuses, as docs/api.md has them.
const STATUSES: [u16; 17] =
    [400, 401, 403, 404, 405, 408, 409, 413, 415, 422, 429, 431, 500, 502, 503, 504, 507];

impl IntoResponses for Failures {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        let content = || {
            let schema = Ref::from_schema_name(ErrorBody::name());
            ContentBuilder::new().schema(Some(schema)).build()
        };
        let response = |status: u16| {
            let said = StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
            ResponseBuilder::new()
                .description(said.unwrap_or("Error"))
                .content("application/json", content())
                .build()
        };
        STATUSES.into_iter().map(|status| (status.to_string(), RefOr::T(response(status)))).collect()
    }
}
