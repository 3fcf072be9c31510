//! What no turn does today must still not get through.

use super::*;
use crate::clock;
use crate::ids::{ConversationId, TurnId};
use crate::message::{JsonObject, Part, UserMessage};
use crate::store::NewTurn;

fn call(id: &str) -> ToolCall {
    ToolCall {
        id: id.into(),
        tool: "t".into(),
        arguments: JsonObject::new(),
        malformed: None,
        provider_data: None,
    }
}

fn journal() -> (Journal, Store, ConversationId) {
    let store = Store::in_memory().unwrap();
    let conversation = store.create_conversation().unwrap();
    let key = TurnKey { conversation: conversation.clone(), turn: TurnId::fresh() };
    let (message_id, message) = (MessageId::fresh(), UserMessage::text("go"));
    let kind = EventKind::TurnStarted {
        message_id: message_id.clone(),
        message: message.clone(),
        model: "scripted".into(),
    };
    let TurnKey { conversation: c, turn } = key.clone();
    let event = Event { conversation: c, turn, seq: 0, at: clock::now(), kind };
    let new = NewTurn { turn: key.clone(), message_id: &message_id, message: &message, event: &event };
    store.begin_turn(&new).unwrap();
    (Journal::new(store.clone(), key, Arc::default(), event), store, conversation)
}

fn ask(journal: &Journal, ids: &[&str]) {
    let parts = ids.iter().map(|id| Part::ToolCall(call(id))).collect();
    let message = AssistantMessage { parts, ..AssistantMessage::default() };
    journal.finish_step(0, message, FinishReason::ToolCalls, StepStats::default()).unwrap();
}

fn result(id: &str, text: &str) -> ToolResult {
    ToolResult::of(&call(id), ToolOutcome::Succeeded, text)
}

#[test]
fn only_the_first_result_of_a_call_counts() {
    let (journal, store, conversation) = journal();
    ask(&journal, &["a", "b"]);
    journal.settle(result("b", "first"));
    journal.settle(result("b", "second"));
    journal.settle(result("stranger", "?"));
    journal.settle(result("a", "first"));
    journal.settle(result("a", "second"));
    let texts: Vec<String> = store.history(&conversation).unwrap()[2..]
        .iter()
        .map(|message| match message {
            Message::Tool(result) => format!("{} {}", result.call, result.text()),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(texts, ["a first", "b first"]);
    assert_eq!(journal.page().next_seq, 4, "started, step finished, two results");
}

#[test]
fn nothing_is_told_after_the_end() {
    let (journal, store, conversation) = journal();
    ask(&journal, &["a"]);
    journal.finish(TurnOutcome::Completed, || {});
    journal.tell(EventKind::TextDelta { text: "late".to_owned() });
    journal.settle(result("a", "late"));
    journal.finish(TurnOutcome::Cancelled, || panic!("ended twice"));
    let events = store.turns(&conversation).unwrap().remove(0).events;
    assert_eq!(events.len(), 4, "started, step finished, settled, finished");
    assert!(matches!(events[3].kind, EventKind::TurnFinished { outcome: TurnOutcome::Completed }));
}
