//! Makes a stored history valid for the next request of every provider.
//!
//! Invariant: pure. Afterwards each tool call has exactly one result, directly after its message, in call order; no
//! result stands alone; no message is empty; user messages never follow each other.

use std::collections::HashMap;

use crate::ids::ToolCallId;
use crate::message::{AssistantMessage, Message, Part, ToolCall, ToolOutcome, ToolResult, UserMessage};
use crate::store::StoredMessage;

/// What a call gets whose result was lost, e.g. in a crash.
pub const LOST_RESULT: &str = "This call was interrupted; whether it took effect is not known.";

/// Stored messages as the next request must have them.
pub(crate) fn of_stored(messages: Vec<StoredMessage>) -> Vec<Message> {
    for_request(messages.into_iter().map(|stored| stored.message).collect())
}

/// The history as the next request must have it.
pub fn for_request(messages: Vec<Message>) -> Vec<Message> {
    let mut out: Vec<Message> = Vec::with_capacity(messages.len());
    let mut messages = messages.into_iter().peekable();
    while let Some(message) = messages.next() {
        match message {
            Message::User(user) => push_user(&mut out, user),
            Message::Assistant(assistant) => {
                let mut results = HashMap::new();
                while let Some(Message::Tool(result)) = messages.next_if(|m| matches!(m, Message::Tool(_))) {
                    results.entry(result.call.clone()).or_insert(result);
                }
                push_step(&mut out, assistant, results);
            }
            // A result without its call answers nothing.
            Message::Tool(_) => {}
        }
    }
    out
}

fn push_user(out: &mut Vec<Message>, user: UserMessage) {
    // A turn that failed before its first word leaves two user messages in a row, which strict templates refuse.
    if let Some(Message::User(last)) = out.last_mut() {
        last.parts.push(Part::Text { text: "\n\n".to_owned() });
        last.parts.extend(user.parts);
        // The later one is the one that holds now.
        last.context = user.context.or(last.context.take());
    } else {
        out.push(Message::User(user));
    }
}

fn push_step(out: &mut Vec<Message>, step: AssistantMessage, mut results: HashMap<ToolCallId, ToolResult>) {
    let calls: Vec<ToolCall> = step.tool_calls().cloned().collect();
    if calls.is_empty() && step.says_nothing() {
        return;
    }
    out.push(Message::Assistant(step));
    for call in calls {
        let result = results.remove(&call.id);
        out.push(Message::Tool(
            result.unwrap_or_else(|| ToolResult::of(&call, ToolOutcome::Cancelled, LOST_RESULT)),
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{JsonObject, text_of};

    fn call(id: &str) -> ToolCall {
        ToolCall {
            id: id.into(),
            tool: "notes__read".into(),
            arguments: JsonObject::new(),
            malformed: None,
            provider_data: None,
        }
    }

    fn asks(ids: &[&str]) -> Message {
        let parts = ids.iter().map(|id| Part::ToolCall(call(id))).collect();
        Message::Assistant(AssistantMessage { parts, ..Default::default() })
    }

    fn says(text: &str) -> Message {
        let parts = vec![Part::Text { text: text.to_owned() }];
        Message::Assistant(AssistantMessage { parts, ..Default::default() })
    }

    fn result(id: &str) -> Message {
        Message::Tool(ToolResult::of(&call(id), ToolOutcome::Succeeded, id))
    }

    fn user(text: &str) -> Message {
        Message::User(UserMessage::text(text))
    }

    #[test]
    fn a_valid_history_stays_as_it_is() {
        let history =
            vec![user("hi"), asks(&["a", "b"]), result("a"), result("b"), says("done"), user("more")];
        assert_eq!(for_request(history.clone()), history);
    }

    #[test]
    fn results_are_ordered_completed_and_never_alone() {
        let lost = Message::Tool(ToolResult::of(&call("b"), ToolOutcome::Cancelled, LOST_RESULT));
        let history = vec![
            result("stray"),
            user("hi"),
            asks(&["a", "b", "c"]),
            result("c"),
            result("a"),
            result("a"),
            result("other"),
            says("done"),
            result("a"),
        ];
        let expected = vec![user("hi"), asks(&["a", "b", "c"]), result("a"), lost, result("c"), says("done")];
        assert_eq!(for_request(history), expected);
    }

    #[test]
    fn empty_answers_vanish_and_user_messages_join() {
        let thinking =
            Part::Thinking(crate::message::Thinking { text: "hm".to_owned(), provider_data: None });
        let only_thought =
            Message::Assistant(AssistantMessage { parts: vec![thinking], ..Default::default() });
        let history = vec![user("one"), says(" \n"), user("two"), only_thought, user("three")];
        let out = for_request(history);
        let [Message::User(joined)] = out.as_slice() else { panic!("{out:?}") };
        assert_eq!(text_of(&joined.parts), "one\n\ntwo\n\nthree");
    }
}
