//! `POST /api/chat/completions`.

use futures::StreamExt;
use lectern_api::{Key, Scope};
use lectern_core::testing::{Behaviour, ScriptedTools, calls, calls_all, fails, says, tool as server_tool};
use lectern_core::{Message, ModelErrorCode};
use serde_json::{Value, json};

use crate::house::{Plan, ask, error, kinds, parsed, tool, with};

pub fn tools() -> ScriptedTools {
    ScriptedTools::new()
        .with(server_tool("test__look", true), Behaviour::LateNews(vec![1.0, 2.0]))
        .with(server_tool("test__read", true), Behaviour::Answers("what it says"))
        .with(server_tool("test__broken", true), Behaviour::Fails("Permission denied"))
        .with(server_tool("test__change", false), Behaviour::Answers("changed"))
}

#[tokio::test]
async fn tools_that_run_here_are_told_frame_by_frame() {
    let replies = [calls("test__look", json!({"a": 1})), says("seen")];
    let house = Plan { tools: tools(), ..Plan::of(replies) }.build().await;
    let values = house.stream(&with(ask("hi"), json!({"session_id": "sess_abc123"}))).await;
    let mut expected = vec!["tool_start", "tool_progress", "tool_progress", "tool_result"];
    expected.extend(["content", "usage", "done"]);
    let seen: Vec<&str> = kinds(&values).into_iter().filter(|kind| *kind != "tool_call").collect();
    assert_eq!(seen, expected);
    let call = values[0]["delta"]["tool_calls"][0]["id"].clone();
    let about: Vec<&Value> =
        values.iter().filter(|v| v["type"].as_str().unwrap().starts_with("tool")).collect();
    assert!(about.len() >= 5 && about.iter().all(|value| value["tool_call_id"] == call));
    let pieces = values.iter().filter(|value| value["type"] == "tool_call");
    let arguments: String = pieces
        .map(|value| value["delta"]["tool_calls"][0]["function"]["arguments"].as_str().unwrap_or_default())
        .collect();
    assert_eq!(serde_json::from_str::<Value>(&arguments).unwrap(), json!({"a": 1}));
    let result = values.iter().find(|value| value["type"] == "tool_result").unwrap();
    assert_eq!((&result["result"]["success"], &result["tool"]), (&json!(true), &json!("test__look")));
    let done = values.last().unwrap();
    assert_eq!(done["finish_reason"], "stop");
    let execution = &done["tool_execution"];
    assert_eq!((&execution["executed"], &execution["tools_called"]), (&json!(true), &json!(["test__look"])));
    assert_eq!(execution["session_id"], "sess_abc123");
    let workspace = std::path::Path::new(execution["workspace_path"].as_str().unwrap());
    assert!(workspace.is_dir() && workspace.starts_with(house.folder.path()));
    // The audit log names the key.
    let entries = house.store.audit(&Default::default()).unwrap();
    assert!(!entries.is_empty() && entries.iter().all(|entry| entry.who == "api:test"));
}

#[tokio::test]
async fn a_call_without_arguments_has_an_empty_object_and_a_failed_one_goes_on() {
    let replies = [calls("test__broken", json!({})), says("It failed.")];
    let house = Plan { tools: tools(), ..Plan::of(replies) }.build().await;
    let values = house.stream(&ask("hi")).await;
    let pieces = values.iter().filter(|value| value["type"] == "tool_call");
    let arguments: String = pieces
        .map(|value| value["delta"]["tool_calls"][0]["function"]["arguments"].as_str().unwrap_or_default())
        .collect();
    assert_eq!(arguments, "{}");
    let result = values.iter().find(|value| value["type"] == "tool_result").unwrap();
    assert_eq!(result["result"]["success"], false);
    assert!(result["result"]["content"].as_str().unwrap().contains("Permission denied"));
    assert!(values.last().unwrap()["tool_execution"]["session_id"].as_str().unwrap().starts_with("sess_"));
}

#[tokio::test]
async fn one_body_has_the_answer_and_what_ran() {
    let replies = [calls("test__read", json!({})), says("It says so.")];
    let house = Plan { tools: tools(), ..Plan::of(replies) }.build().await;
    let body = house.whole(&with(ask("hi"), json!({"stream": false}))).await;
    assert_eq!((&body["object"], &body["model"]), (&json!("chat.completion"), &json!("scripted")));
    assert_eq!(body["choices"][0]["message"]["content"], "It says so.");
    assert_eq!(body["choices"][0]["finish_reason"], "stop");
    assert_eq!(body["tool_execution"]["tools_called"], json!(["test__read"]));
    assert!(body["usage"]["total_tokens"].is_u64());
}

#[tokio::test]
async fn what_fails_before_the_first_frame_has_a_status_and_later_it_is_a_frame() {
    let refuses = || fails(ModelErrorCode::Unauthorized, "the key is wrong");
    let late = [calls("test__read", json!({})), refuses()];
    let replies = [refuses(), refuses()].into_iter().chain(late);
    let house = Plan { tools: tools(), ..Plan::of(replies) }.build().await;
    for stream in [true, false] {
        let (status, said) = error(house.ask(&with(ask("hi"), json!({"stream": stream}))).await).await;
        assert_eq!((status, &said["code"]), (502, &json!("provider_unauthorized")));
    }
    let values = house.stream(&ask("hi")).await;
    let last = values.last().unwrap();
    assert_eq!((&last["type"], &last["error"]["code"]), (&json!("error"), &json!("provider_unauthorized")));
    assert!(last["error"].get("param").is_some());
}

#[tokio::test]
async fn a_request_without_tools_works_as_it_does_elsewhere() {
    let house = Plan { tools: tools(), ..Plan::of([says("Hello."), says("Hello.")]) }.build().await;
    let values =
        house.stream(&with(ask("hi"), json!({"tools": [], "temperature": 0.7, "max_tokens": null}))).await;
    assert_eq!(kinds(&values), ["content", "usage", "done"]);
    assert_eq!(values.last().unwrap()["tool_execution"]["executed"], false);
    assert_eq!(house.model.requests()[0].tools.len(), 0);
    // Without the field all tools of the servers are there.
    house.stream(&ask("hi")).await;
    assert_eq!(house.model.requests()[1].tools.len(), 4);
}

#[tokio::test]
async fn manual_mode_leaves_the_tools_to_the_client() {
    let reply = || calls_all([("test__read", json!({"x": 1})), ("test__look", json!({}))]);
    let house = Plan { tools: tools(), ..Plan::of([reply(), reply(), says("done")]) }.build().await;
    let values = house.stream(&with(ask("hi"), json!({"mode": "manual"}))).await;
    assert_eq!(values.last().unwrap()["finish_reason"], "tool_calls");
    assert!(!kinds(&values).contains(&"tool_start"));
    let body = with(ask("hi"), json!({"mode": "manual", "stream": false, "session_id": "m"}));
    let message = house.whole(&body).await["choices"][0]["message"].clone();
    let mut messages = vec![json!({"role": "user", "content": "hi"}), message.clone()];
    for call in message["tool_calls"].as_array().unwrap() {
        let arguments: Value = serde_json::from_str(call["function"]["arguments"].as_str().unwrap()).unwrap();
        let name = call["function"]["name"].as_str().unwrap();
        let content = house.called(name, &json!({"arguments": arguments, "session_id": "m"})).await;
        messages.push(json!({"role": "tool", "tool_call_id": call["id"], "content": content}));
    }
    let whole = house.whole(&json!({"mode": "manual", "messages": messages})).await;
    assert_eq!(whole["choices"][0]["message"]["content"], "done");
}

#[tokio::test]
async fn a_call_of_the_clients_own_tool_ends_the_frames_and_its_result_goes_on() {
    let replies = [says("first"), calls("mine", json!({"city": "Rom"})), says("It is warm.")];
    let house = Plan { tools: tools(), ..Plan::of(replies) }.build().await;
    let more = json!({"tools": [tool("mine")], "session_id": "s"});
    house.stream(&with(ask("before"), more.clone())).await;
    let values = house.stream(&with(ask("hi"), more.clone())).await;
    assert_eq!(values.last().unwrap()["finish_reason"], "tool_calls");
    assert_eq!(values.last().unwrap()["tool_execution"]["executed"], false);
    let call = values.iter().find(|value| value["type"] == "tool_call").unwrap()["tool_call_id"].clone();
    let function = json!({"name": "mine", "arguments": "{\"city\":\"Rom\"}"});
    let messages = |id: &Value| {
        json!([
            {"role": "user", "content": "hi"},
            {"role": "assistant", "tool_calls": [{"id": id, "type": "function", "function": function}]},
            {"role": "tool", "tool_call_id": id, "content": "30 degrees"},
        ])
    };
    let (status, said) =
        error(house.ask(&with(more.clone(), json!({"messages": messages(&json!("other"))}))).await).await;
    assert_eq!((status, &said["code"]), (400, &json!("unknown_tool_call_id")));
    let whole = house.whole(&with(more, json!({"messages": messages(&call)}))).await;
    assert_eq!(whole["choices"][0]["message"]["content"], "It is warm.");
    // What the session had before is still there.
    let request = house.model.requests().pop().unwrap();
    let result = request.messages.iter().find_map(|message| match message {
        Message::Tool(result) => Some(result.text()),
        Message::User(_) | Message::Assistant(_) => None,
    });
    assert_eq!(result.as_deref(), Some("30 degrees"));
    assert_eq!(request.messages.len(), 6);
}

#[tokio::test]
async fn what_needs_consent_is_refused_when_nobody_can_give_it() {
    let replies = [calls("test__change", json!({})), says("I may not.")];
    let house = Plan { tools: tools(), ..Plan::of(replies) }.build().await;
    let values = house.stream(&ask("hi")).await;
    let asked = values.iter().find(|value| value["type"] == "approval_required").unwrap();
    assert_eq!((&asked["tool"], &asked["approval_id"]), (&json!("test__change"), &Value::Null));
    assert!(asked["tool_call_id"].is_string());
    let result = values.iter().find(|value| value["type"] == "tool_result").unwrap();
    assert_eq!(result["result"]["outcome"], "denied");
    assert!(!kinds(&values).contains(&"tool_start"));
    assert_eq!(house.tools.calls(), []);
}

#[tokio::test]
async fn a_key_that_may_answers_for_the_user() {
    let judge = Key::fresh("judge").with_scopes([Scope::Approvals]);
    let replies = [calls("test__change", json!({})), says("Done.")];
    let house = Plan { tools: tools(), others: vec![judge.clone()], ..Plan::of(replies) }.build().await;
    let mut pieces = house.ask(&ask("hi")).await.bytes_stream();
    let mut seen = String::new();
    let id = loop {
        seen.push_str(std::str::from_utf8(&pieces.next().await.unwrap().unwrap()).unwrap());
        let (_, values) = parsed(&seen[..seen.rfind("\n\n").map_or(0, |at| at + 2)]);
        if let Some(value) = values.iter().find(|value| value["type"] == "approval_required") {
            break value["approval_id"].as_str().unwrap().to_owned();
        }
    };
    let url = format!("{}/api/approvals", house.server.url());
    let listed: Value =
        house.client.get(&url).bearer_auth(judge.secret()).send().await.unwrap().json().await.unwrap();
    assert_eq!((&listed["data"][0]["id"], &listed["data"][0]["key"]), (&json!(id), &json!("test")));
    let answer = |key: &Key, body: Value| {
        house.client.post(format!("{url}/{id}")).bearer_auth(key.secret()).json(&body).send()
    };
    let allow = json!({"decision": "allow"});
    let (status, said) = error(answer(&house.key, allow.clone()).await.unwrap()).await;
    assert_eq!((status, &said["code"]), (403, &json!("insufficient_scope")));
    let (status, said) = error(answer(&judge, json!({"decision": "perhaps"})).await.unwrap()).await;
    assert_eq!((status, &said["param"]), (400, &json!("decision")));
    assert_eq!(answer(&judge, allow.clone()).await.unwrap().status(), 200);
    while let Some(piece) = pieces.next().await {
        seen.push_str(std::str::from_utf8(&piece.unwrap()).unwrap());
    }
    assert!(seen.contains("\"Done.\""), "{seen}");
    assert_eq!(house.tools.calls().len(), 1);
    let (status, said) = error(answer(&judge, allow).await.unwrap()).await;
    assert_eq!((status, &said["code"]), (404, &json!("approval_not_found")));
}
