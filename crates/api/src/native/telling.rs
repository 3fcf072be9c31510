//! Tells a turn to its client: frame by frame, or in one body.
//!
//! Invariant: an error before the first frame has a status of its own; whatever ends a stream is its last frame.

use std::collections::VecDeque;

use axum::Json;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::{Stream, stream};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

use super::frames::{End, Frames};
use crate::error::ApiError;
use crate::sse;
use crate::state::{Api, ending_now, took_too_long};
use crate::turning::Turning;
use crate::v1::chat::TAKEN;
use crate::v1::gather::Head;

/// A turn and what of it was told.
struct Telling {
    api: Api,
    turning: Turning,
    frames: Frames,
    /// When the answer has taken too long.
    over: Instant,
    /// Frames that were made and not yet sent.
    ready: VecDeque<Value>,
    end: Option<End>,
}

impl Telling {
    fn new(api: Api, turning: Turning, frames: Frames) -> Self {
        let over = Instant::now() + api.options.limits.answer_time;
        Self { api, turning, frames, over, ready: VecDeque::new(), end: None }
    }

    /// Waits until there is something to tell. It may be dropped and asked again.
    async fn more(&mut self) {
        while self.ready.is_empty() && self.end.is_none() {
            let happening = tokio::select! {
                biased;
                () = self.api.ending.cancelled() => Err(ending_now()),
                happening = self.turning.next() => happening.ok_or_else(ending_now),
                () = sleep_until(self.over) => Err(took_too_long()),
            };
            match happening {
                Err(error) => self.end = Some(End::Failed(error)),
                Ok(happening) => {
                    let (values, end) = self.frames.take(&happening);
                    self.ready.extend(values);
                    self.end = end;
                }
            }
        }
    }
}

/// As frames.
pub async fn streamed(api: Api, turning: Turning, frames: Frames) -> Result<Response, ApiError> {
    let mut telling = Telling::new(api, turning, frames);
    // What comes later is a frame.
    let _ = timeout_at(Instant::now() + TAKEN, telling.more()).await;
    if telling.ready.is_empty()
        && let Some(End::Failed(error)) = telling.end
    {
        return Err(error);
    }
    Ok(sse::response(pieces(telling)))
}

fn pieces(telling: Telling) -> impl Stream<Item = Bytes> + Send + 'static {
    stream::unfold(Some(telling), |telling| async move {
        let mut telling = telling?;
        if timeout(sse::AWAKE, telling.more()).await.is_err() {
            return Some((sse::comment("working"), Some(telling)));
        }
        let mut out = Vec::new();
        for value in telling.ready.drain(..) {
            out.extend_from_slice(&sse::data(&value));
        }
        let Some(end) = telling.end.take() else { return Some((out.into(), Some(telling))) };
        if let End::Failed(error) = &end {
            telling.api.metrics.error(error.code);
        }
        out.extend_from_slice(&telling.frames.closing(&end));
        Some((out.into(), None))
    })
}

/// In one body.
pub async fn whole(api: &Api, head: &Head, turning: Turning, frames: Frames) -> Result<Response, ApiError> {
    let mut telling = Telling::new(api.clone(), turning, frames);
    let finish = loop {
        telling.more().await;
        telling.ready.clear();
        match telling.end.take() {
            None => {}
            Some(End::Done { finish }) => break finish,
            Some(End::Failed(error)) => return Err(error),
        }
    };
    Ok(Json(body(head, &telling.frames, finish)).into_response())
}

/// A body as OpenAI's, with what ran here.
fn body(head: &Head, frames: &Frames, finish: &str) -> Value {
    let last = frames.last.clone().unwrap_or_default();
    let text = last.text();
    let mut message = json!({"role": "assistant", "content": text, "refusal": null});
    if finish == "tool_calls" {
        let calls = last.tool_calls().filter(|call| frames.is_own(call.tool.as_str())).map(|call| {
            let arguments = Value::Object(call.arguments.clone()).to_string();
            json!({"id": call.id, "type": "function", "function": {"name": call.tool, "arguments": arguments}})
        });
        message["tool_calls"] = calls.collect();
        if text.is_empty() {
            message["content"] = Value::Null;
        }
    }
    json!({
        "id": head.id,
        "object": "chat.completion",
        "created": head.created,
        "model": head.model,
        "choices": [{"index": 0, "message": message, "logprobs": null, "finish_reason": finish}],
        "usage": frames.usage(),
        "tool_execution": frames.tool_execution(),
    })
}
