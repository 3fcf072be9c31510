//! Makes a request fit its model: long tool results are cut, and the starter sees the present question only.
//!
//! Invariant: only what the model reads is changed, never what is stored or shown; the same history is always cut at
//! the same place, so that what was evaluated can be reused.

use std::sync::Arc;

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use lectern_core::{ChatModel, ChatRequest, Content, Delta, Message, ModelError, ModelInfo, ToolResult};
use tokio_util::sync::CancellationToken;

/// What happens to earlier turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EarlierTurns {
    /// They are sent; the model says when its context is full.
    Sent,
    /// They are left out: they only lead a model astray that copies what it sees.
    LeftOut,
}

/// A model whose requests are made to fit.
pub struct Fitted {
    inner: Arc<dyn ChatModel>,
    /// Bytes of one tool result at most. A token holds two bytes at least, four usually.
    room: usize,
    earlier: EarlierTurns,
}

impl Fitted {
    /// With the context that the model says it has.
    pub fn new(inner: Arc<dyn ChatModel>, earlier: EarlierTurns) -> Self {
        let context = inner.info().context_length.and_then(|tokens| usize::try_from(tokens).ok());
        let context = context.unwrap_or(usize::MAX);
        let room = match earlier {
            EarlierTurns::Sent => context,
            // Its tokens are short, and it may well read the same note twice.
            EarlierTurns::LeftOut => context / 2,
        };
        Self { inner, room, earlier }
    }

    fn fit(&self, messages: Vec<Message>) -> Vec<Message> {
        let mut messages: Vec<Message> = messages.into_iter().map(|message| self.cut(message)).collect();
        if self.earlier == EarlierTurns::LeftOut {
            messages.drain(..present_turn(&messages));
        }
        messages
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
        let messages = self.fit(request.messages);
        self.inner.stream(ChatRequest { messages, ..request }, cancel)
    }

    fn prepare(&self, request: ChatRequest, cancel: CancellationToken) -> BoxFuture<'static, ()> {
        let messages = self.fit(request.messages);
        self.inner.prepare(ChatRequest { messages, ..request }, cancel)
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
