//! Makes a request fit the starter: long tool results are cut, and it sees the present question and what that points
//! back to. Other models have their requests made to fit by the turn.
//!
//! Invariant: only what the model reads is changed, never what is stored or shown; the same history is always cut at
//! the same place, so that what was evaluated can be reused.

use std::sync::Arc;

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use lectern_core::{
    ChatModel, ChatRequest, Content, Delta, Message, ModelError, ModelInfo, ToolResult, keep_pointed_to,
};
use tokio_util::sync::CancellationToken;

/// Bytes of a note that was read in an earlier turn.
const SEEN: usize = 300;

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
        ChatRequest { messages: seen(request.messages, self.room), ..request }
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

/// What it sees of these messages, when one result may have so many bytes.
fn seen(mut messages: Vec<Message>, room: usize) -> Vec<Message> {
    keep_pointed_to(&mut messages, |message| message);
    let present = present_turn(&messages);
    let results = messages.iter_mut().enumerate().filter_map(|(at, message)| match message {
        Message::Tool(result) => Some((at, result)),
        Message::User(_) | Message::Assistant(_) => None,
    });
    // What is pointed to stands in the first result; of notes that were read then, only the answer counts.
    for (number, (at, result)) in results.enumerate() {
        cut_result(result, if at > present || number == 0 { room } else { room.min(SEEN) });
    }
    messages
}

fn cut_result(result: &mut ToolResult, mut room: usize) {
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
        let cut = |text: &str| {
            let mut result = result(text);
            cut_result(&mut result, 10);
            result.text()
        };
        assert_eq!(cut("short"), "short");
        assert_eq!(cut("红烧肉好吃"), "红烧肉\n[cut here, 2 more characters]");
    }

    #[test]
    fn what_a_question_points_back_to_is_seen_and_notes_read_then_are_short() {
        let user = |text: &str| Message::User(UserMessage::text(text));
        let tool = |text: &str| Message::Tool(result(&text.repeat(200)));
        let begun = [user("boats"), tool("x"), user("hives"), tool("found "), tool("read ")];
        let lengths = |question: &str| {
            let messages: Vec<_> = begun.iter().cloned().chain([user(question), tool("again ")]).collect();
            let seen = seen(messages, 1_100);
            let lengths = seen.iter().filter_map(|message| match message {
                Message::Tool(result) => Some(result.text().len()),
                Message::User(_) | Message::Assistant(_) => None,
            });
            (seen[0].clone(), lengths.collect::<Vec<_>>())
        };
        let (first, results) = lengths("And the other one?");
        assert_eq!(first, user("hives"));
        let short = SEEN + "\n[cut here, 700 more characters]".len();
        let cut = 1_100 + "\n[cut here, 100 more characters]".len();
        assert_eq!(results, [cut, short, cut]);
        assert_eq!(lengths("And the smoker?"), (user("And the smoker?"), vec![cut]));
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
