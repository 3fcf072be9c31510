//! Takes a body in: JSON, of a limited size, in a limited time.

use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use serde_json::Value;

use crate::error::{ApiError, ErrorKind};
use crate::options::Limits;
use crate::state::Api;

/// A body of JSON.
pub struct JsonBody(pub Value);

impl FromRequest<Api> for JsonBody {
    type Rejection = ApiError;

    async fn from_request(request: Request, api: &Api) -> Result<Self, ApiError> {
        if !is_json(request.headers()) {
            return Err(ApiError::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                ErrorKind::InvalidRequestError,
                "unsupported_media_type",
                "the body has to be JSON, with the header `Content-Type: application/json`",
            ));
        }
        let bytes = taken(request.into_body(), &api.options.limits).await?;
        // Deep nesting is an error of the parser, which goes 128 levels down.
        serde_json::from_slice(&bytes)
            .map(Self)
            .map_err(|error| ApiError::invalid("invalid_json", "", format!("the body is not JSON: {error}")))
    }
}

/// The last part of an address: any text.
pub struct Name(pub String);

impl<S: Send + Sync> FromRequestParts<S> for Name {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let named = Path::<String>::from_request_parts(parts, state).await;
        named
            .map(|Path(name)| Self(name))
            .map_err(|_| ApiError::not_found("unknown_url", "the address is no text"))
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    kind == "application/json" || (kind.starts_with("application/") && kind.ends_with("+json"))
}

async fn taken(body: Body, limits: &Limits) -> Result<Bytes, ApiError> {
    let read = read(body, limits.body_bytes);
    tokio::time::timeout(limits.body_time, read).await.unwrap_or_else(|_| {
        Err(ApiError::new(
            StatusCode::REQUEST_TIMEOUT,
            ErrorKind::InvalidRequestError,
            "request_timeout",
            "the body did not come in time",
        ))
    })
}

async fn read(mut body: Body, most: usize) -> Result<Bytes, ApiError> {
    let mut out = BytesMut::new();
    let mut seen = 0_usize;
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else {
            return Err(ApiError::invalid("invalid_body", "", "the body broke off"));
        };
        let Ok(data) = frame.into_data() else { continue };
        seen = seen.saturating_add(data.len());
        if seen > most {
            out = BytesMut::new();
            // A client that still writes does not read: what it sends is thrown away for a while, so that it gets the
            // answer in place of a broken connection.
            if seen > most.saturating_mul(8) {
                break;
            }
        } else {
            out.extend_from_slice(&data);
        }
    }
    if seen <= most {
        return Ok(out.freeze());
    }
    Err(ApiError::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        ErrorKind::InvalidRequestError,
        "request_too_large",
        format!("the body can have {} MB", most >> 20),
    ))
}
