//! Makes a request fit a small context: long tool results are cut, and the starter forgets its oldest turns.
//!
//! Invariant: only what the model reads is changed, never what is stored or shown; the same history is always cut at
//! the same place, so that what was evaluated can be reused.

use std::sync::Arc;

use futures::stream::BoxStream;
use lectern_core::message::text_of;
use lectern_core::{ChatModel, ChatRequest, Content, Delta, Message, ModelError, ModelInfo, ToolResult};
use tokio_util::sync::CancellationToken;

/// What happens to turns that no longer fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OldTurns {
    /// They are sent; the model says when its context is full.
    Kept,
    /// They are left out. For a model that only ever needs the last question.
    Forgotten,
}

/// A model whose requests are made to fit.
pub struct Fitted {
    inner: Arc<dyn ChatModel>,
    /// Bytes of one tool result at most. A token holds two bytes at least, four usually.
    room: usize,
    old_turns: OldTurns,
}

impl Fitted {
    /// With the context that the model says it has.
    pub fn new(inner: Arc<dyn ChatModel>, old_turns: OldTurns) -> Self {
        let context = inner.info().context_length.and_then(|tokens| usize::try_from(tokens).ok());
        let context = context.unwrap_or(usize::MAX);
        let room = match old_turns {
            OldTurns::Kept => context,
            // Its tokens are short, and it may well read the same note twice.
            OldTurns::Forgotten => context / 2,
        };
        Self { inner, room, old_turns }
    }

    fn fit(&self, messages: Vec<Message>) -> Vec<Message> {
        let mut messages: Vec<Message> = messages.into_iter().map(|message| self.cut(message)).collect();
        if self.old_turns == OldTurns::Forgotten {
            let forgotten = forgotten(&messages, self.room);
            messages.drain(..forgotten);
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

/// How many messages at the beginning are left out so that the turns before the last one take at most `room` bytes.
fn forgotten(messages: &[Message], room: usize) -> usize {
    let is_user = |message: &Message| matches!(message, Message::User(_));
    let last = messages.iter().rposition(is_user).unwrap_or(0);
    let sizes: Vec<usize> = messages[..last].iter().map(size).collect();
    let surplus = sizes.iter().sum::<usize>().saturating_sub(room);
    // In steps: were it exact, each turn would move the cut, and the whole prompt would be read anew.
    let step = (room / 2).max(1);
    let wanted = surplus.div_ceil(step) * step;
    let mut left_out = 0;
    for (place, size) in sizes.iter().enumerate() {
        if left_out >= wanted && is_user(&messages[place]) {
            return place;
        }
        left_out += size;
    }
    if wanted == 0 { 0 } else { last }
}

/// About as many bytes as the message takes in the prompt.
fn size(message: &Message) -> usize {
    match message {
        Message::User(user) => text_of(&user.parts).len(),
        Message::Assistant(assistant) => {
            let calls = assistant.tool_calls().map(|call| {
                call.tool.as_str().len() + serde_json::to_string(&call.arguments).map_or(0, |json| json.len())
            });
            assistant.text().len() + calls.sum::<usize>()
        }
        Message::Tool(result) => result.text().len(),
    }
}

#[cfg(test)]
mod tests {
    use lectern_core::{AssistantMessage, Part, ToolOutcome, UserMessage};

    use super::*;

    fn result(text: &str) -> ToolResult {
        ToolResult {
            call: "1".into(),
            tool: "t".into(),
            outcome: ToolOutcome::Succeeded,
            content: vec![Content::Text { text: text.to_owned() }],
            structured: None,
            sources: Vec::new(),
        }
    }

    fn turn(number: usize) -> [Message; 2] {
        let parts = vec![Part::Text { text: format!("answer {number:03} {}", "x".repeat(300)) }];
        [
            Message::User(UserMessage::text(format!("question {number:03}"))),
            Message::Assistant(AssistantMessage { parts, ..AssistantMessage::default() }),
        ]
    }

    #[test]
    fn a_long_result_is_cut_at_a_character_and_says_so() {
        assert_eq!(cut_result(result("short"), 10).text(), "short");
        assert_eq!(cut_result(result("红烧肉好吃"), 10).text(), "红烧肉\n[cut here, 2 more characters]");
    }

    #[test]
    fn old_turns_go_whole_the_last_question_stays_and_the_cut_seldom_moves() {
        let mut history = Vec::new();
        let mut cuts = Vec::new();
        for number in 0..40 {
            history.extend(turn(number));
            let mut asked = history.clone();
            asked.push(Message::User(UserMessage::text("now")));
            let cut = forgotten(&asked, 4_000);
            let kept = &asked[cut..];
            assert!(matches!(kept[0], Message::User(_)));
            assert!(kept[..kept.len() - 1].iter().map(size).sum::<usize>() <= 4_000);
            assert!(kept.len() > 1, "something of what went before is kept");
            cuts.push(cut);
        }
        assert_eq!(cuts[0], 0);
        let distinct = cuts.iter().collect::<std::collections::BTreeSet<_>>().len();
        assert!(distinct <= 12, "{cuts:?}");
    }

    #[test]
    fn the_present_turn_is_never_touched() {
        let mut asked = turn(0).to_vec();
        asked.extend(turn(1));
        let present = asked.len();
        asked.push(Message::User(UserMessage::text("x".repeat(10_000))));
        asked.push(Message::Tool(result(&"y".repeat(10_000))));
        assert_eq!(forgotten(&asked, 100), present);
    }
}
