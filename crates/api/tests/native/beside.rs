//! Calls of servers in a step that calls a tool of the client's own, too.

use lectern_api::{Key, Scope};
use lectern_core::testing::{Reply, calls_all, says};
use lectern_core::{Message, ToolOutcome};
use serde_json::{Value, json};

use crate::frames::tools;
use crate::house::{House, Plan, ask, kinds, tool, with};

fn both() -> Reply {
    calls_all([("mine", json!({"city": "Rom"})), ("test__look", json!({})), ("test__change", json!({}))])
}

fn more() -> Value {
    json!({"tools": [tool("mine"), {"type": "mcp", "server_label": "test"}], "session_id": "s"})
}

/// The results that the model read last.
fn results(house: &House) -> Vec<(String, ToolOutcome, String)> {
    let request = house.model.requests().pop().unwrap();
    let results = request.messages.into_iter().filter_map(|message| match message {
        Message::Tool(result) => Some((result.tool.0.clone(), result.outcome, result.text())),
        Message::User(_) | Message::Assistant(_) => None,
    });
    results.collect()
}

#[tokio::test]
async fn they_come_to_their_end_before_the_answer_does() {
    let house = Plan { tools: tools(), ..Plan::of([both(), says("Warm.")]) }.build().await;
    let values = house.stream(&with(ask("hi"), more())).await;
    let seen: Vec<&str> = kinds(&values).into_iter().filter(|kind| *kind != "tool_call").collect();
    let expected = [
        "approval_required",
        "tool_result",
        "tool_start",
        "tool_progress",
        "tool_progress",
        "tool_result",
        "usage",
        "done",
    ];
    assert_eq!(seen, expected, "{values:#?}");
    let done = values.last().unwrap();
    assert_eq!(done["finish_reason"], "tool_calls");
    assert_eq!(done["tool_execution"]["tools_called"], json!(["test__look"]));
    // Nobody was asked for consent to what the client runs itself, and the model waits for it.
    assert!(values.iter().all(|value| value["tool"] != "mine"));
    assert_eq!(house.model.requests().len(), 1);

    let own = values.iter().find(|value| value["type"] == "tool_call").unwrap()["tool_call_id"].clone();
    let messages = json!([
        {"role": "user", "content": "hi"},
        {"role": "assistant", "tool_calls": [{"id": own, "type": "function",
            "function": {"name": "mine", "arguments": "{\"city\":\"Rom\"}"}}]},
        {"role": "tool", "tool_call_id": own, "content": "30 degrees"},
    ]);
    let whole = house.whole(&with(more(), json!({"messages": messages}))).await;
    assert_eq!(whole["choices"][0]["message"]["content"], "Warm.");
    let results = results(&house);
    let outcomes: Vec<(&str, ToolOutcome)> =
        results.iter().map(|(tool, outcome, _)| (tool.as_str(), *outcome)).collect();
    let expected = [
        ("mine", ToolOutcome::Succeeded),
        ("test__look", ToolOutcome::Succeeded),
        ("test__change", ToolOutcome::Denied),
    ];
    assert_eq!(outcomes, expected);
    assert_eq!(results[0].2, "30 degrees");
    // The audit log has the servers' calls alone.
    let entries = house.store.audit(&Default::default()).unwrap();
    assert_eq!(entries.len(), 2);
    assert!(entries.iter().all(|entry| entry.server.as_str() == "test"), "{entries:#?}");
}

#[tokio::test]
async fn one_body_has_the_clients_calls_and_what_ran() {
    let house = Plan { tools: tools(), ..Plan::of([both()]) }.build().await;
    let question = json!({"messages": [{"role": "user", "content": "hi"}]});
    let body = house.whole(&with(question, more())).await;
    let choice = &body["choices"][0];
    assert_eq!(choice["finish_reason"], "tool_calls");
    let calls = choice["message"]["tool_calls"].as_array().unwrap();
    assert_eq!((calls.len(), &calls[0]["function"]["name"]), (1, &json!("mine")));
    assert_eq!(body["tool_execution"]["tools_called"], json!(["test__look"]));
}

#[tokio::test]
async fn what_needs_consent_waits_for_it_there_too() {
    let judge = Key::fresh("judge").with_scopes([Scope::Approvals]);
    let house = Plan { tools: tools(), others: vec![judge], ..Plan::of([both()]) }.build().await;
    let approvals = house.server.approvals();
    let mut changes = approvals.changes();
    let answered = async {
        changes.wait_for(|()| !approvals.waiting().is_empty()).await.unwrap();
        let waiting = approvals.waiting().remove(0);
        assert_eq!(waiting.call.tool.as_str(), "test__change");
        let allow = lectern_core::PermissionAnswer::Allow { grant: lectern_core::Grant::Once };
        assert!(approvals.answer(&waiting.id, allow));
    };
    let asked = with(ask("hi"), more());
    let (values, ()) = tokio::join!(house.stream(&asked), answered);
    let done = values.last().unwrap();
    assert_eq!(done["finish_reason"], "tool_calls");
    assert_eq!(done["tool_execution"]["tools_called"], json!(["test__look", "test__change"]));
}
