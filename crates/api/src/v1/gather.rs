//! A whole answer in one body.

use futures::StreamExt;
use serde_json::{Map, Value, json};

use super::calls::{Piece, Pieces, broke_off};
use super::outcome::{finish_reason, usage};
use crate::error::ApiError;

/// What every body of an answer begins with.
#[derive(Clone, Debug)]
pub struct Head {
    /// `chatcmpl-…`
    pub id: String,
    /// Seconds since 1970.
    pub created: i64,
    /// The model that answers, by its id.
    pub model: String,
}

impl Head {
    /// An answer of this model that begins now.
    pub fn new(model: &str) -> Self {
        Self {
            id: format!("chatcmpl-{}", uuid::Uuid::new_v4().simple()),
            created: lectern_core::clock::now().as_second(),
            model: model.to_owned(),
        }
    }
}

/// Waits for the end and puts all pieces together.
pub async fn gather(head: Head, mut pieces: Pieces) -> Result<Value, ApiError> {
    let mut message = Gathered::default();
    while let Some(piece) = pieces.next().await {
        if let Some(body) = message.take(&head, piece?) {
            return Ok(body);
        }
    }
    Err(broke_off())
}

#[derive(Default)]
struct Gathered {
    text: String,
    thinking: String,
    calls: Vec<(String, String, String)>,
}

impl Gathered {
    /// The body, when it was the last piece.
    fn take(&mut self, head: &Head, piece: Piece) -> Option<Value> {
        match piece {
            Piece::Working | Piece::Remark(_) => {}
            Piece::Text(text) => self.text.push_str(&text),
            Piece::Thinking(text) => self.thinking.push_str(&text),
            Piece::Call { id, tool, .. } => self.calls.push((id.0, tool, String::new())),
            Piece::Arguments { index, fragment } => {
                let call = usize::try_from(index).ok().and_then(|index| self.calls.get_mut(index));
                if let Some((_, _, arguments)) = call {
                    arguments.push_str(&fragment);
                }
            }
            Piece::Done { finish, usage: cost } => {
                // What was stopped without an error was stopped by nobody who still listens.
                let reason = finish_reason(finish, !self.calls.is_empty()).unwrap_or("stop");
                return Some(json!({
                    "id": head.id,
                    "object": "chat.completion",
                    "created": head.created,
                    "model": head.model,
                    "choices": [{
                        "index": 0,
                        "message": self.message(),
                        "logprobs": null,
                        "finish_reason": reason,
                    }],
                    "usage": usage(&cost),
                }));
            }
        }
        None
    }

    fn message(&self) -> Value {
        let mut message = Map::new();
        let content = (!self.text.is_empty() || self.calls.is_empty()).then_some(&self.text);
        message.insert("role".to_owned(), json!("assistant"));
        message.insert("content".to_owned(), json!(content));
        message.insert("refusal".to_owned(), Value::Null);
        if !self.thinking.is_empty() {
            message.insert("reasoning_content".to_owned(), json!(self.thinking));
        }
        if !self.calls.is_empty() {
            let calls = self.calls.iter().map(|(id, tool, arguments)| {
                json!({"id": id, "type": "function", "function": {"name": tool, "arguments": arguments}})
            });
            message.insert("tool_calls".to_owned(), calls.collect());
        }
        Value::Object(message)
    }
}
