//! An answer as server-sent events.
//!
//! Invariant: every `data:` line is a chunk by OpenAI's schema, an error object or `[DONE]`; the first delta has the role;
//! one new call in a chunk at most, its name once; `choices` is empty only where the usage is told. All else that is worth
//! telling is a comment, which clients pass over (measured with the `openai` packages).

use bytes::Bytes;
use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt};
use serde_json::{Value, json};

use super::calls::{Piece, Pieces, broke_off};
use super::gather::Head;
use super::outcome::{finish_reason, usage};
use crate::sse;

/// The body of a stream.
pub fn frames(head: Head, include_usage: bool, pieces: Pieces) -> impl Stream<Item = Bytes> + Send + use<> {
    let writer = Writer { head, include_usage, called: false };
    let first = writer.delta(json!({"role": "assistant", "content": "", "refusal": null}), None);
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

struct Writer {
    head: Head,
    include_usage: bool,
    called: bool,
}

impl Writer {
    fn frame(&mut self, piece: Piece) -> Bytes {
        match piece {
            Piece::Working => Bytes::new(),
            Piece::Remark(text) => sse::comment(&text),
            Piece::Text(text) => self.delta(json!({"content": text}), None),
            Piece::Thinking(text) => self.delta(json!({"reasoning_content": text}), None),
            Piece::Call { index, id, tool } => {
                self.called = true;
                let function = json!({"name": tool, "arguments": ""});
                let call = json!({"index": index, "id": id, "type": "function", "function": function});
                self.delta(json!({"tool_calls": [call]}), None)
            }
            Piece::Arguments { index, fragment } => {
                let call = json!({"index": index, "function": {"arguments": fragment}});
                self.delta(json!({"tool_calls": [call]}), None)
            }
            Piece::Done { finish, usage: cost } => {
                let reason = finish_reason(finish, self.called).unwrap_or("stop");
                let mut out = self.delta(json!({}), Some(reason)).to_vec();
                if self.include_usage {
                    out.extend_from_slice(&sse::data(&self.chunk(json!([]), usage(&cost))));
                }
                out.extend_from_slice(sse::DONE);
                out.into()
            }
        }
    }

    fn delta(&self, delta: Value, finish: Option<&str>) -> Bytes {
        let choice = json!({"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish});
        sse::data(&self.chunk(json!([choice]), Value::Null))
    }

    fn chunk(&self, choices: Value, usage: Value) -> Value {
        let mut chunk = json!({
            "id": self.head.id,
            "object": "chat.completion.chunk",
            "created": self.head.created,
            "model": self.head.model,
            "choices": choices,
        });
        if let (true, Some(fields)) = (self.include_usage, chunk.as_object_mut()) {
            fields.insert("usage".to_owned(), usage);
        }
        chunk
    }
}
