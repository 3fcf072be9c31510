//! An answer as server-sent events.
//!
//! Invariant: every `data:` line is a chunk by OpenAI's schema, an error object or `[DONE]`; the first delta has the role;
//! one new call in a chunk at most, its name once; `choices` is empty only where the usage is told. All else that is worth
//! telling is a comment, which clients pass over (measured with the `openai` packages).

use bytes::Bytes;
use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt};
use serde::Serialize;
use serde_json::json;

use super::calls::{Piece, Pieces, broke_off};
use super::gather::Head;
use super::outcome::{finish_reason, usage};
use crate::sse;

/// The body of a stream.
pub fn frames(head: Head, include_usage: bool, pieces: Pieces) -> impl Stream<Item = Bytes> + Send + use<> {
    let writer = Writer::new(&head, include_usage);
    let first = writer.delta(&json!({"role": "assistant", "content": "", "refusal": null}), None);
    let state = Some((writer, pieces));
    let rest = stream::unfold(state, |state| async move {
        let (mut writer, mut pieces) = state?;
        let frame = match tokio::time::timeout(sse::AWAKE, pieces.next()).await {
            Err(_) => sse::comment("working"),
            Ok(Some(Ok(piece @ Piece::Done { .. }))) => return Some((writer.frame(piece), None)),
            Ok(Some(Ok(piece))) => writer.frame(piece),
            // An error is the last word; whoever reads it raises it.
            Ok(Some(Err(error))) => return Some((sse::data(&error.body()), None)),
            Ok(None) => return Some((sse::data(&broke_off().body()), None)),
        };
        Some((frame, Some((writer, pieces))))
    });
    let rest: BoxStream<'static, Bytes> = rest.filter(|frame| std::future::ready(!frame.is_empty())).boxed();
    stream::once(std::future::ready(first)).chain(rest)
}

/// Writes chunks. What is the same in all of them is written once: a fast model sends thousands a second.
struct Writer {
    /// Up to the choices.
    opening: String,
    /// Behind the choices.
    closing: &'static str,
    include_usage: bool,
    called: bool,
}

/// Words that are new.
#[derive(Serialize)]
struct Words<'a> {
    content: &'a str,
}

impl Writer {
    fn new(head: &Head, include_usage: bool) -> Self {
        let same = json!({
            "id": head.id, "object": "chat.completion.chunk", "created": head.created, "model": head.model,
        });
        let same = same.to_string();
        let opening = format!("data: {},\"choices\":[", same.trim_end_matches('}'));
        let closing = if include_usage { "],\"usage\":null}\n\n" } else { "]}\n\n" };
        Self { opening, closing, include_usage, called: false }
    }

    fn frame(&mut self, piece: Piece) -> Bytes {
        match piece {
            Piece::Working => Bytes::new(),
            Piece::Remark(text) => sse::comment(&text),
            Piece::Text(text) => self.delta(&Words { content: &text }, None),
            Piece::Thinking(text) => self.delta(&json!({"reasoning_content": text}), None),
            Piece::Call { index, id, tool } => {
                self.called = true;
                let function = json!({"name": tool, "arguments": ""});
                let call = json!({"index": index, "id": id, "type": "function", "function": function});
                self.delta(&json!({"tool_calls": [call]}), None)
            }
            Piece::Arguments { index, fragment } => {
                let call = json!({"index": index, "function": {"arguments": fragment}});
                self.delta(&json!({"tool_calls": [call]}), None)
            }
            Piece::Done { finish, usage: cost } => {
                let reason = finish_reason(finish, self.called).unwrap_or("stop");
                let mut out = self.delta(&json!({}), Some(reason)).to_vec();
                if self.include_usage {
                    out.extend_from_slice(
                        format!("{}],\"usage\":{}}}\n\n", self.opening, usage(&cost)).as_bytes(),
                    );
                }
                out.extend_from_slice(sse::DONE);
                out.into()
            }
        }
    }

    fn delta(&self, delta: &impl Serialize, finish: Option<&str>) -> Bytes {
        let mut out = Vec::with_capacity(self.opening.len() + 192);
        out.extend_from_slice(self.opening.as_bytes());
        out.extend_from_slice(b"{\"index\":0,\"delta\":");
        // Values of ours always have a text.
        let _ = serde_json::to_writer(&mut out, delta);
        out.extend_from_slice(b",\"logprobs\":null,\"finish_reason\":");
        let _ = serde_json::to_writer(&mut out, &finish);
        out.push(b'}');
        out.extend_from_slice(self.closing.as_bytes());
        out.into()
    }
}
