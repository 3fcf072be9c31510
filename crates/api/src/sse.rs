//! Server-sent events (HTML Living Standard, section 9.2): lines of data and comments.

use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use bytes::Bytes;
use futures::{Stream, StreamExt};
use serde_json::Value;

/// After so long without a word a comment keeps the connection awake.
pub const AWAKE: Duration = Duration::from_secs(15);

/// The last line of a stream, as OpenAI has it.
pub const DONE: &[u8] = b"data: [DONE]\n\n";

/// A line of data. JSON has no line breaks of its own.
pub fn data(value: &Value) -> Bytes {
    let mut out = Vec::with_capacity(256);
    out.extend_from_slice(b"data: ");
    // Values of ours always have a text.
    let _ = serde_json::to_writer(&mut out, value);
    out.extend_from_slice(b"\n\n");
    out.into()
}

/// A comment, which readers pass over. The text may come from a tool: it can't end its line.
pub fn comment(text: &str) -> Bytes {
    let line: String = text.chars().filter(|c| !c.is_control()).take(200).collect();
    format!(": {line}\n\n").into()
}

/// A response of these frames.
pub fn response(frames: impl Stream<Item = Bytes> + Send + 'static) -> Response {
    let body = Body::from_stream(frames.map(Ok::<_, std::convert::Infallible>));
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    // Proxies that gather what they pass on would hold the words back.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}
