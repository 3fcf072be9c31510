//! What a client reads when something is wrong: `{"error":{"message","type","code","param"}}` with a real HTTP status.
//!
//! Invariant: every code is in the table of docs/api.md; all four fields are always there, as OpenAI's schema wants.
//! Clients decide by status and code, never by the message.

use axum::Json;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Map, Value, json};

/// Why a request was not served.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    /// The HTTP status.
    pub status: StatusCode,
    /// The class, as OpenAI names them.
    pub kind: ErrorKind,
    /// What exactly, for programs.
    pub code: &'static str,
    /// One sentence for people.
    pub message: String,
    /// The field of the request that is at fault, e.g. `messages[0].content`.
    pub param: Option<String>,
    /// The tool that failed.
    pub tool_name: Option<String>,
    /// Seconds after which it may be tried again.
    pub retry_after: Option<u64>,
}

/// Classes of errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The request can't be served as it is.
    InvalidRequestError,
    /// The key is missing or wrong.
    AuthenticationError,
    /// The key, or the place that the request comes from, does not allow it.
    PermissionError,
    /// Too much at once.
    RateLimitError,
    /// A tool of the user's servers failed.
    ToolExecutionError,
    /// The model, its provider or Lectern failed.
    ServerError,
}

impl ErrorKind {
    /// As it stands in the body.
    pub fn name(self) -> &'static str {
        match self {
            Self::InvalidRequestError => "invalid_request_error",
            Self::AuthenticationError => "authentication_error",
            Self::PermissionError => "permission_error",
            Self::RateLimitError => "rate_limit_error",
            Self::ToolExecutionError => "tool_execution_error",
            Self::ServerError => "server_error",
        }
    }
}

impl ApiError {
    /// An error of this status and class.
    pub fn new(status: StatusCode, kind: ErrorKind, code: &'static str, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { status, kind, code, message, param: None, tool_name: None, retry_after: None }
    }

    /// A field of the request is wrong.
    pub fn invalid(code: &'static str, param: impl Into<String>, message: impl Into<String>) -> Self {
        let error = Self::new(StatusCode::BAD_REQUEST, ErrorKind::InvalidRequestError, code, message);
        error.at(param)
    }

    /// A field of the request that exists, with a value that is not served here.
    pub fn unsupported(param: impl Into<String>, message: impl Into<String>) -> Self {
        Self::invalid("unsupported_value", param, message)
    }

    /// There is no such thing.
    pub fn not_found(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, ErrorKind::InvalidRequestError, code, message)
    }

    /// The key, or where the request comes from, does not allow it.
    pub fn forbidden(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, ErrorKind::PermissionError, code, message)
    }

    /// Something here failed.
    pub fn failed(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self::new(status, ErrorKind::ServerError, code, message)
    }

    /// With the field that is at fault.
    #[must_use]
    pub fn at(mut self, param: impl Into<String>) -> Self {
        let param = param.into();
        self.param = (!param.is_empty()).then_some(param);
        self
    }

    /// With the tool that failed.
    #[must_use]
    pub fn tool(mut self, name: impl Into<String>) -> Self {
        self.tool_name = Some(name.into());
        self
    }

    /// With a word about when to try again.
    #[must_use]
    pub fn retry_after(mut self, seconds: u64) -> Self {
        self.retry_after = Some(seconds);
        self
    }

    /// `{"error": …}`
    pub fn body(&self) -> Value {
        let mut error = Map::new();
        error.insert("message".to_owned(), json!(self.message));
        error.insert("type".to_owned(), json!(self.kind.name()));
        error.insert("code".to_owned(), json!(self.code));
        error.insert("param".to_owned(), json!(self.param));
        if let Some(tool) = &self.tool_name {
            error.insert("tool_name".to_owned(), json!(tool));
        }
        json!({ "error": error })
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(self.body())).into_response();
        let headers = response.headers_mut();
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            // RFC 9110, section 11.6.1: a 401 says how to authenticate.
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if !should_retry(self.status) {
            // The OpenAI packages ask again by themselves unless they are told not to.
            headers.insert(HeaderName::from_static("x-should-retry"), HeaderValue::from_static("false"));
        }
        response.extensions_mut().insert(Failed { code: self.code });
        response
    }
}

/// What a response failed with, for who counts.
#[derive(Clone, Copy, Debug)]
pub struct Failed {
    /// The error's code.
    pub code: &'static str,
}

/// Whether the same request may come through a little later.
fn should_retry(status: StatusCode) -> bool {
    matches!(status.as_u16(), 408 | 429 | 503)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_fields_are_there_also_when_they_are_empty() {
        let error = ApiError::not_found("model_not_found", "there is no model `x`");
        let expected = json!({"error": {
            "message": "there is no model `x`", "type": "invalid_request_error",
            "code": "model_not_found", "param": null,
        }});
        assert_eq!(error.body(), expected);
    }
}
