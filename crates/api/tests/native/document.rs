//! What `/openapi.json` says about `/api`, and what is served.

use lectern_api::{Key, Scope};
use lectern_core::testing::{Beat, ScriptedModel, calls, fails, says};
use lectern_core::{Delta, FinishReason, ModelErrorCode};
use serde_json::{Value, json};

use crate::frames::tools;
use crate::house::{House, Plan, ask, kinds, parsed, question, tool, with};

/// A key that may do everything.
fn key() -> Key {
    Key::fresh("test").with_scopes([Scope::Models, Scope::Tools, Scope::Approvals])
}

/// A house with replies of all kinds.
async fn busy() -> House {
    let thinking = vec![
        Beat::Delta(Delta::Thinking("Hm.".to_owned())),
        Beat::Delta(Delta::Text("Yes.".to_owned())),
        Beat::Delta(Delta::Finished(FinishReason::Stop)),
    ];
    let replies = [
        calls("test__look", json!({"a": 1})),
        calls("test__broken", json!({})),
        thinking,
        calls("test__change", json!({})),
        fails(ModelErrorCode::Unauthorized, "the key is wrong"),
        calls("mine", json!({"city": "Rom"})),
        calls("mine", json!({"city": "Rom"})),
        calls("test__read", json!({})),
        says("manual"),
    ];
    Plan { tools: tools(), key: key(), ..Plan::of(replies) }.build().await
}

#[tokio::test]
async fn frames_are_as_it_says() {
    let house = busy().await;
    let described = house.described().await;
    let mut values = house.stream(&with(ask("hi"), json!({"session_id": "s"}))).await;
    // The call that waits is denied, and then the model breaks down.
    let approvals = house.server.approvals();
    let mut changes = approvals.changes();
    let denied = async {
        changes.wait_for(|()| !approvals.waiting().is_empty()).await.unwrap();
        let listed: Value = house.get("/api/approvals").send().await.unwrap().json().await.unwrap();
        described.hold("ApprovalList", &listed);
        let id = listed["data"][0]["id"].as_str().unwrap();
        let post = house.post(&format!("/api/approvals/{id}")).json(&json!({"decision": "deny"}));
        described.hold("ApprovalAnswered", &post.send().await.unwrap().json().await.unwrap());
    };
    let asked = with(ask("hi"), json!({"session_id": "s"}));
    let (more, ()) = tokio::join!(house.stream(&asked), denied);
    values.extend(more);
    values.extend(house.stream(&with(ask("hi"), json!({"tools": [tool("mine")]}))).await);
    for value in &values {
        described.hold("Frame", value);
    }
    let mut seen = kinds(&values);
    seen.sort_unstable();
    seen.dedup();
    let expected = [
        "approval_required",
        "content",
        "done",
        "error",
        "thinking",
        "tool_call",
        "tool_progress",
        "tool_result",
        "tool_start",
        "usage",
    ];
    assert_eq!(seen, expected);

    let session: Value = house.get("/api/sessions/s").send().await.unwrap().json().await.unwrap();
    described.hold("SessionShown", &session);
    let events = house.get("/api/events?conversation=s&once=true&after=-1").send().await.unwrap();
    for event in parsed(&events.text().await.unwrap()).1 {
        described.hold("SessionEvent", &event);
    }
    let whole = with(question("hi", "t"), json!({"tools": [tool("mine")]}));
    described.hold("SessionCompletion", &house.whole(&whole).await);
    let manual = with(question("hi", "m"), json!({"mode": "manual"}));
    described.hold("SessionCompletion", &house.whole(&manual).await);
    for value in house.stream(&with(ask("hi"), json!({"mode": "manual"}))).await {
        described.hold("Frame", &value);
    }
}

#[tokio::test]
async fn single_calls_and_lists_are_as_it_says() {
    let house = busy().await;
    let described = house.described().await;
    let list: Value = house.get("/api/tools").send().await.unwrap().json().await.unwrap();
    described.hold("ToolList", &list);
    let called: Value = house.call("test__read", &json!({"session_id": "s"})).await.json().await.unwrap();
    described.hold("ToolCallResult", &called);
    for (name, status) in [("test__broken", 422), ("nobody", 404)] {
        let response = house.call(name, &json!({})).await;
        assert_eq!(response.status(), status);
        described.hold("ErrorBody", &response.json().await.unwrap());
    }
    let none: Value = house.get("/api/approvals").send().await.unwrap().json().await.unwrap();
    described.hold("ApprovalList", &none);
}

#[tokio::test]
async fn requests_have_the_fields_that_it_names_and_no_others() {
    let model = ScriptedModel::new([says("hi")]).repeating();
    let house = Plan { tools: tools(), key: key(), model, ..Plan::of([]) }.build().await;
    let described = house.described().await;
    let cases = [
        ("SessionRequest", "/api/chat/completions"),
        ("ToolCallRequest", "/api/tools/test__read"),
        ("ApprovalAnswer", "/api/approvals/x"),
    ];
    for (name, path) in cases {
        let schema = &described.0["components"]["schemas"][name];
        assert_eq!(schema["additionalProperties"], json!(false), "{name}");
        let fields = schema["properties"].as_object().unwrap().keys().map(String::as_str);
        for field in fields.chain(["nonsense"]) {
            let body = with(
                json!({"messages": [{"role": "user", "content": "hi"}], "decision": "deny"}),
                json!({field: {"nonsense": true}}),
            );
            let body = match name {
                "SessionRequest" => without(body, "decision"),
                "ToolCallRequest" => json!({field: {"nonsense": true}}),
                _ => without(body, "messages"),
            };
            let said: Value = house.post(path).json(&body).send().await.unwrap().json().await.unwrap();
            let unknown = said["error"]["code"] == "unknown_parameter" && said["error"]["param"] == field;
            assert_eq!(unknown, field == "nonsense", "{name}.{field}: {said:#}");
        }
    }
    let fields = described.0["components"]["schemas"]["SessionRequest"]["properties"].as_object().unwrap();
    let openai = described.0["components"]["schemas"]["ChatRequest"]["properties"].as_object().unwrap();
    assert_eq!(fields.len(), openai.len() + 2);
    for name in openai.keys().map(String::as_str).chain(["session_id", "mode"]) {
        assert!(fields.contains_key(name), "{name}");
    }
}

fn without(mut body: Value, field: &str) -> Value {
    body.as_object_mut().unwrap().remove(field);
    body
}
