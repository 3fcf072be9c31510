//! Makes a request fit the starter: long tool results are cut, and it sees the present question only. Other models
//! have their requests made to fit by the turn.
//!
//! Invariant: only what the model reads is changed, never what is stored or shown; the same history is always cut at
//! the same place, so that what was evaluated can be reused.

use std::sync::Arc;

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use lectern_core::{ChatModel, ChatRequest, Content, Delta, Message, ModelError, ModelInfo, ToolResult};
use tokio_util::sync::CancellationToken;

/// The starter, whose requests are made to fit.
pub struct Fitted {
    inner: Arc<dyn ChatModel>,
    /// Bytes of one tool result at most. Its tokens are short, and it may well read the same note twice.
    room: usize,
}

impl Fitted {
    /// With the context that the model says it has.
    pub fn new(inner: Arc<dyn ChatModel>) -> Self {
        let context = inner.info().context_length.and_then(|tokens| usize::try_from(tokens).ok());
        Self { inner, room: context.unwrap_or(usize::MAX) / 2 }
    }

    fn fit(&self, request: ChatRequest) -> ChatRequest {
        let mut messages: Vec<Message> =
            request.messages.into_iter().map(|message| self.cut(message)).collect();
        messages.drain(..present_turn(&messages));
        ChatRequest { messages, ..request }
    }

    fn cut(&self, message: Message) -> Message {
        match message {
            Message::Tool(result) => Message::Tool(cut_result(result, self.room)),
            Message::User(_) | Message::Assistant(_) => message,
        }
    }
}

impl ChatModel for Fitted {
    fn info(&self) -> &ModelInfo {
        self.inner.info()
    }

    fn stream(
        &self,
        request: ChatRequest,
        cancel: CancellationToken,
    ) -> BoxStream<'static, Result<Delta, ModelError>> {
        self.inner.stream(self.fit(request), cancel)
    }

    fn prepare(&self, request: ChatRequest, cancel: CancellationToken) -> BoxFuture<'static, ()> {
        self.inner.prepare(self.fit(request), cancel)
    }

    fn count(&self, request: ChatRequest) -> BoxFuture<'static, Result<Option<u32>, ModelError>> {
        self.inner.count(self.fit(request))
    }
}

fn cut_result(mut result: ToolResult, mut room: usize) -> ToolResult {
    for content in &mut result.content {
        match content {
            Content::Text { text } => cut_text(text, &mut room),
            Content::Resource(resource) => {
                if let Some(text) = &mut resource.text {
                    cut_text(text, &mut room);
                }
            }
            Content::Image(_) | Content::Audio(_) => {}
        }
    }
    result
}

fn cut_text(text: &mut String, room: &mut usize) {
    if text.len() <= *room {
        *room -= text.len();
        return;
    }
    let at = text.floor_char_boundary(*room);
    let left = text[at..].chars().count();
    text.truncate(at);
    text.push_str(&format!("\n[cut here, {left} more characters]"));
    *room = 0;
}

/// Where the present turn begins.
fn present_turn(messages: &[Message]) -> usize {
    messages.iter().rposition(|message| matches!(message, Message::User(_))).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use lectern_core::{ToolOutcome, UserMessage};

    use super::*;

    fn result(text: &str) -> ToolResult {
        ToolResult {
            call: "1".into(),
            tool: "t".into(),
            outcome: ToolOutcome::Succeeded,
            content: vec![Content::Text { text: text.to_owned() }],
            structured: None,
            sources: Vec::new(),
            note: None,
        }
    }

    #[test]
    fn a_long_result_is_cut_at_a_character_and_says_so() {
        assert_eq!(cut_result(result("short"), 10).text(), "short");
        assert_eq!(cut_result(result("红烧肉好吃"), 10).text(), "红烧肉\n[cut here, 2 more characters]");
    }

    #[test]
    fn the_present_turn_is_whole() {
        let user = |text: &str| Message::User(UserMessage::text(text));
        let history = [user("one"), Message::Tool(result("1")), user("two"), Message::Tool(result("2"))];
        assert_eq!(present_turn(&history), 2);
        assert_eq!(present_turn(&history[..1]), 0);
        assert_eq!(present_turn(&[]), 0);
    }
}
