//! Sessions: what they know, whose they are, when they end.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use lectern_api::{ApiOptions, Key, SessionLimits};
use lectern_core::testing::{Behaviour, ScriptedTools, calls, says, tool as server_tool};
use lectern_core::{Message, message};
use serde_json::{Value, json};

use crate::house::{Plan, ask, endless, error, question, until, with};

#[tokio::test]
async fn a_session_knows_what_was_said_and_no_other_does() {
    let house = Plan::of([says("one"), says("two"), says("three"), says("four")]).build().await;
    for (text, session) in [("a", "s"), ("b", "s"), ("c", "t")] {
        let body = house.whole(&question(text, session)).await;
        assert_eq!(body["tool_execution"]["session_id"], session, "{body}");
    }
    let requests = house.model.requests();
    let said: Vec<usize> = requests.iter().map(|request| request.messages.len()).collect();
    assert_eq!(said, [1, 3, 1]);
    // Caches tell sessions apart by their conversations.
    assert_eq!(requests[0].conversation, requests[1].conversation);
    assert_ne!(requests[0].conversation, requests[2].conversation);
    // A client that says everything again says only the last thing anew.
    let history = json!([
        {"role": "user", "content": "a"}, {"role": "assistant", "content": "one"},
        {"role": "user", "content": "b"}, {"role": "assistant", "content": "two"},
        {"role": "user", "content": "d"},
    ]);
    house.whole(&json!({"messages": history, "session_id": "s"})).await;
    assert_eq!(house.model.requests().pop().unwrap().messages.len(), 5);

    let shown: Value = house.get("/api/sessions/s").send().await.unwrap().json().await.unwrap();
    assert_eq!(shown["messages"].as_array().unwrap().len(), 6);
    let workspace = std::path::PathBuf::from(shown["workspace_path"].as_str().unwrap());
    std::fs::write(workspace.join("file"), "x").unwrap();
    assert_eq!(house.delete("/api/sessions/s").send().await.unwrap().status(), 204);
    assert!(!workspace.exists());
    let (status, said) = error(house.get("/api/sessions/s").send().await.unwrap()).await;
    assert_eq!((status, &said["code"]), (404, &json!("session_not_found")));
    assert_eq!(house.forgotten.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_session_begins_with_all_that_was_said_elsewhere() {
    let house = Plan::of([says("three")]).build().await;
    let history = json!([
        {"role": "system", "content": "Be short."},
        {"role": "user", "content": "a"}, {"role": "assistant", "content": "one"},
        {"role": "user", "content": "b"},
    ]);
    house.whole(&json!({"messages": history, "session_id": "s"})).await;
    let request = house.model.requests().remove(0);
    assert_eq!(request.messages.len(), 3);
    assert!(request.system.unwrap().contains("Be short."));
}

#[tokio::test]
async fn a_session_outlives_its_server_and_belongs_to_its_key() {
    let house = Plan::of([says("one")]).build().await;
    house.stream(&with(ask("a"), json!({"session_id": "s"}))).await;
    let (key, folder) = (house.key.clone(), Arc::clone(&house.folder));
    house.server.end().await;
    // Another key, one of them of the same name.
    let others = vec![Key::fresh("other"), Key::fresh("test")];
    let plan = Plan {
        key,
        folder: Some(folder),
        others: others.clone(),
        ..Plan::of([says("two"), says("x"), says("y")])
    };
    let house = plan.build().await;
    house.stream(&with(ask("b"), json!({"session_id": "s"}))).await;
    let request = house.model.requests().remove(0);
    let Message::User(first) = &request.messages[0] else { panic!("{request:?}") };
    assert_eq!(message::text_of(&first.parts), "a");
    let url = format!("{}/api/sessions/s", house.server.url());
    for other in &others {
        let shown = house.client.get(&url).bearer_auth(other.secret()).send().await.unwrap();
        assert_eq!(error(shown).await.0, 404);
        let asked = house.client.post(format!("{}/api/chat/completions", house.server.url()));
        let body: Value = asked
            .bearer_auth(other.secret())
            .json(&question("c", "s"))
            .send()
            .await
            .unwrap()
            .json()
            .await
            .unwrap();
        assert!(!body["tool_execution"]["workspace_path"].is_null(), "{body}");
        assert_eq!(house.model.requests().pop().unwrap().messages.len(), 1);
    }
}

#[tokio::test]
async fn names_of_sessions_lead_nowhere() {
    let house = Plan::of([]).build().await;
    for name in ["../x", "/etc", "a/../../b", "..", "a\\b", "nul\0", "C:\\x", "", "~", "a b", "%2e%2e"] {
        let body = with(ask("hi"), json!({"session_id": name}));
        let (status, said) = error(house.ask(&body).await).await;
        let expected = (400, &json!("invalid_session_id"), &json!("session_id"));
        assert_eq!((status, &said["code"], &said["param"]), expected, "{name}");
    }
    for path in ["..%2f..%2fx", "%2e%2e", "a%00", "..%5cx"] {
        let shown = house.get(&format!("/api/sessions/{path}")).send().await.unwrap();
        assert!(matches!(error(shown).await.0, 400 | 404), "{path}");
    }
    assert_eq!(house.model.requests().len(), 0);
}

#[tokio::test]
async fn a_session_makes_one_answer_at_a_time_and_can_be_deleted_in_the_middle() {
    let house = Plan::of([endless(), says("two")]).build().await;
    let mut first = house.ask(&with(ask("a"), json!({"session_id": "s"}))).await.bytes_stream();
    first.next().await.unwrap().unwrap();
    let (status, said) = error(house.ask(&question("b", "s")).await).await;
    assert_eq!((status, &said["code"], &said["param"]), (409, &json!("session_busy"), &json!("session_id")));
    // Its stream holds the session until it has ended.
    let (deleted, rest) = tokio::join!(house.delete("/api/sessions/s").send(), async {
        let mut rest = String::new();
        while let Some(piece) = first.next().await {
            rest.push_str(std::str::from_utf8(&piece.unwrap()).unwrap());
        }
        rest
    });
    assert_eq!(deleted.unwrap().status(), 204);
    assert!(rest.contains("answer_stopped"), "{rest}");
    assert_eq!(house.whole(&question("b", "s")).await["choices"][0]["message"]["content"], "two");
    assert_eq!(house.model.requests().pop().unwrap().messages.len(), 1);
}

#[tokio::test]
async fn who_goes_away_leaves_the_session_free_for_the_next_question() {
    let house = Plan::of([endless(), says("two")]).build().await;
    let mut first = house.ask(&with(ask("a"), json!({"session_id": "s"}))).await.bytes_stream();
    first.next().await.unwrap().unwrap();
    drop(first);
    // The connection's end has to come through.
    let mut answer = house.ask(&question("b", "s")).await;
    while answer.status() == 409 {
        tokio::time::sleep(Duration::from_millis(5)).await;
        answer = house.ask(&question("b", "s")).await;
    }
    let body: Value = answer.json().await.unwrap();
    assert_eq!(body["choices"][0]["message"]["content"], "two", "{body}");
}

#[tokio::test]
async fn a_session_that_rests_too_long_is_gone_while_the_server_runs() {
    let sessions = SessionLimits {
        idle: Duration::from_millis(300),
        sweeps: Duration::from_millis(20),
        ..SessionLimits::default()
    };
    let options = ApiOptions { sessions, ..ApiOptions::default() };
    let house = Plan { options, ..Plan::of([says("one")]) }.build().await;
    let body = house.whole(&question("a", "s")).await;
    let workspace = std::path::PathBuf::from(body["tool_execution"]["workspace_path"].as_str().unwrap());
    until(|| !workspace.exists()).await;
    until(|| house.forgotten.lock().unwrap().len() == 1).await;
    assert_eq!(error(house.get("/api/sessions/s").send().await.unwrap()).await.0, 404);
}

#[tokio::test]
async fn a_full_session_runs_no_more_tools() {
    let sessions = SessionLimits { bytes: 100, ..SessionLimits::default() };
    let options = ApiOptions { sessions, ..ApiOptions::default() };
    let tools = ScriptedTools::new()
        .with(server_tool("test__read", true), Behaviour::Answers("what it says"))
        .with(server_tool("test__hang", true), Behaviour::Slow(Duration::from_secs(3_600), "late"));
    let replies = [says("one"), calls("test__read", json!({})), says("It is full.")];
    let house = Plan { options, tools, ..Plan::of(replies) }.build().await;
    let body = house.whole(&question("a", "s")).await;
    let workspace = std::path::PathBuf::from(body["tool_execution"]["workspace_path"].as_str().unwrap());
    // It fills while a call runs.
    let running = house.post("/api/tools/test__hang").json(&json!({"session_id": "s"})).send();
    let running = tokio::spawn(running);
    until(|| house.tools.calls().len() == 1).await;
    std::fs::write(workspace.join("file"), "x".repeat(200)).unwrap();
    let (status, said) = error(running.await.unwrap().unwrap()).await;
    assert_eq!(
        (status, &said["code"], &said["tool_name"]),
        (507, &json!("workspace_full"), &json!("test__hang"))
    );
    let (status, said) = error(house.call("test__read", &json!({"session_id": "s"})).await).await;
    assert_eq!((status, &said["code"]), (507, &json!("workspace_full")));
    let values = house.stream(&with(ask("b"), json!({"session_id": "s"}))).await;
    let result = values.iter().find(|value| value["type"] == "tool_result").unwrap();
    assert_eq!(result["result"]["success"], false);
    assert_eq!(house.tools.calls().len(), 1);
    // Others are not concerned.
    house.called("test__read", &json!({"session_id": "t"})).await;
}
