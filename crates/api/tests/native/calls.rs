//! `GET /api/tools` and `POST /api/tools/{name}`.

use std::time::Duration;

use lectern_api::{ApiOptions, Key, Limits, Scope};
use lectern_core::testing::{Behaviour, ScriptedTools, tool as server_tool};
use serde_json::{Value, json};

use crate::frames::tools;
use crate::house::{House, Plan, error, until};

async fn fails(house: &House, name: &str, body: Value) -> (u16, Value) {
    error(house.call(name, &body).await).await
}

#[tokio::test]
async fn a_single_call_says_what_came_of_it() {
    let house = Plan { tools: tools(), ..Plan::of([]) }.build().await;
    let (status, said) = fails(&house, "unknown_tool", json!({})).await;
    assert_eq!(
        (status, &said["code"], &said["tool_name"]),
        (404, &json!("tool_not_found"), &json!("unknown_tool"))
    );
    assert_eq!(said["message"], "Tool 'unknown_tool' not found");
    let (status, said) = fails(&house, "test__broken", json!({})).await;
    let expected = (422, &json!("tool_failed"), &json!("tool_execution_error"), &json!("test__broken"));
    assert_eq!((status, &said["code"], &said["type"], &said["tool_name"]), expected);
    assert_eq!(said["message"], "Tool execution failed: Permission denied");
    let (status, said) = fails(&house, "test__change", json!({})).await;
    assert_eq!((status, &said["code"]), (403, &json!("approval_required")));
    let (status, said) = fails(&house, "test__read", json!({"arguments": []})).await;
    assert_eq!((status, &said["param"]), (400, &json!("arguments")));
    let (status, said) = fails(&house, "test__read", json!({"argument": {}})).await;
    assert_eq!((status, &said["code"]), (400, &json!("unknown_parameter")));
    assert_eq!(house.called("test__read", &json!({"arguments": {"x": 1}})).await, "what it says");
    let entries = house.store.audit(&Default::default()).unwrap();
    assert!(entries.len() >= 3 && entries.iter().all(|entry| entry.who == "api:test"));
    let plain = Key::fresh("plain").with_scopes([Scope::Models]);
    let house = Plan { tools: tools(), key: plain, ..Plan::of([]) }.build().await;
    assert_eq!(fails(&house, "test__read", json!({})).await.0, 403);
    assert_eq!(error(house.get("/api/tools").send().await.unwrap()).await.0, 403);
}

#[tokio::test]
async fn arguments_are_held_to_their_schema() {
    let mut spec = server_tool("test__strict", true);
    spec.input_schema = json!({"type": "object", "properties": {
        "unit": {"enum": ["c", "f"], "default": "c"}}, "required": ["unit"]});
    let tools = ScriptedTools::new().with(spec.clone(), Behaviour::Answers("20"));
    let house = Plan { tools, ..Plan::of([]) }.build().await;
    for arguments in [json!({}), json!({"unit": "k"}), json!({"unit": 1})] {
        let (status, said) = fails(&house, "test__strict", json!({"arguments": arguments})).await;
        let expected = (400, &json!("invalid_arguments"), &json!("arguments"));
        assert_eq!((status, &said["code"], &said["param"]), expected);
    }
    assert_eq!(house.tools.calls(), []);
    assert_eq!(house.called("test__strict", &json!({"arguments": {"unit": "f"}})).await, "20");
    // Schemas are told as they are.
    let list: Value = house.get("/api/tools").send().await.unwrap().json().await.unwrap();
    assert_eq!(list["data"][0]["input_schema"], spec.input_schema);
}

#[tokio::test]
async fn the_list_and_results_that_only_read_have_tags() {
    let mut outside = server_tool("test__outside", true);
    outside.annotations.open_world = Some(true);
    let mut doubtful = server_tool("test__doubtful", true);
    doubtful.trusted = false;
    let tools =
        tools().with(outside, Behaviour::Answers("news")).with(doubtful, Behaviour::Answers("perhaps"));
    let judge = Key::fresh("judge").with_scopes([Scope::Approvals]);
    let house = Plan { tools, others: vec![judge.clone()], ..Plan::of([]) }.build().await;
    let list = house.get("/api/tools").send().await.unwrap();
    let tag = list.headers()["etag"].clone();
    assert_eq!(list.json::<Value>().await.unwrap()["data"].as_array().unwrap().len(), 6);
    let again = house.get("/api/tools").header("if-none-match", tag).send().await.unwrap();
    assert_eq!(again.status(), 304);

    let body = json!({"session_id": "s", "arguments": {"x": 1}});
    let first = house.call("test__read", &body).await;
    let tag = first.headers()["etag"].clone();
    let said: Value = first.json().await.unwrap();
    let second: Value = house.call("test__read", &body).await.json().await.unwrap();
    assert_eq!(said, second, "the same answer, the same call");
    let conditional = house.post("/api/tools/test__read").json(&body).header("if-none-match", &tag);
    let same = conditional.send().await.unwrap();
    assert_eq!((same.status().as_u16(), &same.headers()["etag"]), (304, &tag));
    assert_eq!(same.text().await.unwrap(), "");
    assert_eq!(house.tools.calls().len(), 1);
    // Another question, another session, or who wants it anew.
    house.call("test__read", &json!({"session_id": "s", "arguments": {"x": 2}})).await;
    house.call("test__read", &json!({"session_id": "t", "arguments": {"x": 1}})).await;
    let anew = house.post("/api/tools/test__read").json(&body).header("cache-control", "no-cache");
    assert_eq!(anew.header("if-none-match", &tag).send().await.unwrap().status(), 304);
    assert_eq!(house.tools.calls().len(), 4);
    // What may say something else each time has none.
    for name in ["test__outside", "test__doubtful"] {
        let call = house.post(&format!("/api/tools/{name}")).json(&body).send();
        let answer = async {
            let approvals = format!("{}/api/approvals", house.server.url());
            loop {
                let get = house.client.get(&approvals).bearer_auth(judge.secret());
                let listed: Value = get.send().await.unwrap().json().await.unwrap();
                if let Some(id) = listed["data"][0]["id"].as_str() {
                    let post = house.client.post(format!("{approvals}/{id}")).bearer_auth(judge.secret());
                    post.json(&json!({"decision": "allow"})).send().await.unwrap();
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let response = tokio::select! { response = call => response.unwrap(), () = answer => unreachable!() };
        assert_eq!(response.status(), 200, "{name}");
        assert!(response.headers().get("etag").is_none(), "{name}");
    }
    // A call that may change something makes all of it old: `doubtful` was one.
    let calls = house.tools.calls().len();
    house.call("test__read", &body).await;
    assert_eq!(house.tools.calls().len(), calls + 1);
}

#[tokio::test]
async fn an_answer_from_memory_stands_in_the_audit_log_with_its_request() {
    let house = Plan { tools: tools(), ..Plan::of([]) }.build().await;
    let body = json!({"session_id": "s", "arguments": {"x": 1}});
    let first = house.call("test__read", &body).await;
    let again = house.call("test__read", &body).await;
    let known =
        house.post("/api/tools/test__read").json(&body).header("if-none-match", &first.headers()["etag"]);
    let known = known.send().await.unwrap();
    assert_eq!((again.status().as_u16(), known.status().as_u16()), (200, 304));
    assert_eq!(house.tools.calls().len(), 1);
    let entries = house.store.audit(&Default::default()).unwrap();
    assert_eq!(entries.len(), 3);
    for (entry, response) in entries.iter().zip([&first, &again, &known]) {
        let request = response.headers()["x-request-id"].to_str().unwrap();
        assert_eq!((entry.who.as_str(), entry.request.as_deref()), ("api:test", Some(request)));
        assert_eq!((&entry.call, &entry.conversation), (&entries[0].call, &entries[0].conversation));
        let (outcome, ran) = (entry.outcome.as_ref().unwrap(), entries[0].outcome.as_ref().unwrap());
        assert_eq!(outcome.result_sha256, ran.result_sha256);
    }
    let reasons: Vec<&str> = entries.iter().map(|entry| entry.reason.as_str()).collect();
    assert_eq!(reasons, ["read-only", "answered from memory", "answered from memory"]);
}

#[tokio::test]
async fn an_answer_from_memory_names_the_session_that_is_answered() {
    let house = Plan { tools: tools(), ..Plan::of([]) }.build().await;
    let body = json!({"arguments": {"x": 1}});
    let first = house.call("test__read", &body).await;
    let tag = first.headers()["etag"].clone();
    let first: Value = first.json().await.unwrap();
    let second: Value = house.call("test__read", &body).await.json().await.unwrap();
    assert_eq!(house.tools.calls().len(), 1);
    assert_eq!(
        (&second["tool_call_id"], &second["result"]),
        (&first["tool_call_id"], &first["result"]),
        "it is from memory"
    );
    for field in ["session_id", "workspace_path"] {
        assert_ne!(first[field], second[field], "{field}");
    }
    // The session that it names is there.
    let shown = house.get(&format!("/api/sessions/{}", second["session_id"].as_str().unwrap()));
    let shown: Value = shown.send().await.unwrap().json().await.unwrap();
    assert_eq!(shown["workspace_path"], second["workspace_path"]);
    // Where the client has the result already, no session is named at all.
    let known = house.post("/api/tools/test__read").json(&body).header("if-none-match", &tag);
    let known = known.send().await.unwrap();
    assert_eq!((known.status().as_u16(), known.text().await.unwrap().as_str()), (304, ""));
    assert_eq!(house.tools.calls().len(), 1);
}

#[tokio::test]
async fn a_call_has_a_limit_of_time_and_calls_wait_for_their_turn() {
    let limits = Limits { call_time: Duration::from_millis(300), calls: 1, ..Limits::default() };
    let options = ApiOptions { limits, ..ApiOptions::default() };
    let tools = ScriptedTools::new()
        .with(server_tool("test__hang", true), Behaviour::Hangs)
        .with(server_tool("test__read", true), Behaviour::Answers("read"));
    let house = Plan { options, tools, ..Plan::of([]) }.build().await;
    let (status, said) = fails(&house, "test__hang", json!({})).await;
    let expected = (504, &json!("tool_timeout"), &json!("tool_execution_error"), &json!("test__hang"));
    assert_eq!((status, &said["code"], &said["type"], &said["tool_name"]), expected);
    // The place of the call that never came back is free again.
    assert_eq!(house.called("test__read", &json!({})).await, "read");
}

#[tokio::test]
async fn a_client_that_goes_away_takes_its_call_along() {
    let tools = ScriptedTools::new()
        .with(server_tool("test__slow", true), Behaviour::Slow(Duration::from_secs(3_600), "late"));
    let limits = Limits { concurrent: 1, ..Limits::default() };
    let options = ApiOptions { limits, ..ApiOptions::default() };
    let house = Plan { options, tools, ..Plan::of([]) }.build().await;
    let asked = tokio::spawn(house.post("/api/tools/test__slow").json(&json!({})).send());
    until(|| house.tools.calls().len() == 1).await;
    asked.abort();
    let ended = || {
        let entries = house.store.audit(&Default::default()).unwrap();
        entries.iter().any(|entry| entry.outcome.is_some())
    };
    until(ended).await;
}
