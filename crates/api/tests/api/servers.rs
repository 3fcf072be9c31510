//! The user's servers behind `/v1`: only when asked for, and without a word that a strict client would not know.

use lectern_api::{Key, Scope};
use lectern_core::store::AuditDecision;
use lectern_core::testing::Beat;
use lectern_core::testing::{Behaviour, ScriptedTools, calls, calls_all, says, tool as server_tool};
use lectern_core::{Delta, FinishReason, Message, ToolOutcome};
use serde_json::{Value, json};

use crate::house::{Plan, error, frames, question, tool, with};
use crate::schemas;

fn tools() -> ScriptedTools {
    ScriptedTools::new()
        .with(server_tool("test__look", true), Behaviour::LateNews(vec![1.0, 2.0]))
        .with(server_tool("test__change", false), Behaviour::Answers("changed"))
}

fn look() -> lectern_core::testing::Reply {
    calls("test__look", json!({}))
}

#[tokio::test]
async fn a_limit_of_tokens_before_any_word_is_an_end_and_no_error() {
    let key = Key::fresh("big-agi").with_server_tools(true);
    let thought = Beat::Delta(Delta::Thinking("hm".to_owned()));
    let cut = vec![thought, Beat::Delta(Delta::Finished(FinishReason::Length))];
    let house = Plan { tools: tools(), key, ..Plan::of([cut.clone(), cut]) }.build().await;
    let whole = house.completion(&with(question("hi"), json!({"max_tokens": 1}))).await;
    assert_eq!(whole["choices"][0]["finish_reason"], "length", "{whole}");
}

#[tokio::test]
async fn a_key_of_which_the_user_said_so_gets_them_in_each_request() {
    let key = Key::fresh("big-agi").with_server_tools(true);
    let house =
        Plan { tools: tools(), key, ..Plan::of([look(), says("seen"), look(), says("seen")]) }.build().await;
    let whole = house.completion(&question("hi")).await;
    assert_eq!(whole["choices"][0]["message"]["content"], "seen");
    assert_eq!(whole["choices"][0]["finish_reason"], "stop");
    assert!(whole["choices"][0]["message"].get("tool_calls").is_none());

    let response = house.ask(&with(question("hi"), json!({"stream": true}))).await;
    let (data, comments) = frames(&response.text().await.unwrap());
    assert_eq!(data.last().unwrap(), "[DONE]");
    for chunk in &data[..data.len() - 1] {
        let chunk: Value = serde_json::from_str(chunk).unwrap();
        schemas::chunk(&chunk);
        assert!(chunk["choices"][0]["delta"].get("tool_calls").is_none());
    }
    assert!(comments.iter().any(|line| line == "tool test__look started"), "{comments:?}");
    // The audit log has the key's name.
    let entries = house.store.audit(&Default::default()).unwrap();
    assert!(entries.iter().all(|entry| entry.who == "api:big-agi"));
    assert_eq!(entries[0].outcome.as_ref().unwrap().outcome, ToolOutcome::Succeeded);
    // Nothing of it is among the window's conversations.
    assert_eq!(house.store.conversations().unwrap(), []);
}

#[tokio::test]
async fn a_request_asks_for_them_by_name() {
    let server = json!({"type": "mcp", "server_label": "test", "allowed_tools": ["test__look"]});
    let bare = json!({"type": "function", "function": {"name": "test__look"}});
    for asked in [server, bare] {
        let house = Plan { tools: tools(), ..Plan::of([look(), says("seen")]) }.build().await;
        let body = with(question("hi"), json!({"tools": [asked]}));
        assert_eq!(house.completion(&body).await["choices"][0]["message"]["content"], "seen");
        let requests = house.model.requests();
        let offered: Vec<&str> = requests[0].tools.iter().map(|spec| spec.name.as_str()).collect();
        assert_eq!(offered, ["test__look"]);
    }
    let house = Plan { tools: tools(), ..Plan::of([look()]) }.build().await;
    // A tool of the same name that the client describes is the client's own.
    let whole = house.completion(&with(question("hi"), json!({"tools": [tool("test__look")]}))).await;
    assert_eq!(whole["choices"][0]["finish_reason"], "tool_calls");
    let unknown = json!({"type": "mcp", "server_label": "nobody"});
    let (status, said) = house.refusal(&with(question("hi"), json!({"tools": [unknown]}))).await;
    assert_eq!(
        (status, &said["code"], &said["param"]),
        (400, &json!("unknown_server"), &json!("tools[0].server_label"))
    );
}

#[tokio::test]
async fn a_call_that_is_asked_for_is_asked_for_once() {
    use lectern_core::ToolChoice;
    let server = json!({"type": "mcp", "server_label": "test"});
    let bare = json!({"type": "function", "function": {"name": "test__look"}});
    let named = json!({"type": "function", "function": {"name": "test__look"}});
    let some = json!({"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [named]}});
    for (tools_asked, choice, expected, count) in [
        (json!([server]), json!("required"), ToolChoice::Required, 2),
        (json!([server]), named.clone(), ToolChoice::Tool("test__look".into()), 2),
        (json!([bare]), named.clone(), ToolChoice::Tool("test__look".into()), 1),
        (json!([server, tool("mine")]), some, ToolChoice::Required, 1),
    ] {
        let house = Plan { tools: tools(), ..Plan::of([look(), says("seen")]) }.build().await;
        let body = with(question("hi"), json!({"tools": tools_asked, "tool_choice": choice}));
        assert_eq!(house.completion(&body).await["choices"][0]["message"]["content"], "seen");
        let requests = house.model.requests();
        assert_eq!((&requests[0].tool_choice, requests[0].tools.len()), (&expected, count));
        assert_eq!(requests[1].tool_choice, ToolChoice::Auto);
    }
    // A key with the user's servers can be asked for a call with no tools of its own.
    let key = Key::fresh("k").with_server_tools(true);
    let house = Plan { tools: tools(), key, ..Plan::of([look(), says("seen")]) }.build().await;
    house.completion(&with(question("hi"), json!({"tool_choice": "required"}))).await;
    assert_eq!(house.model.requests()[0].tool_choice, ToolChoice::Required);
    // What nobody has can't be asked for.
    let nobody = json!({"type": "function", "function": {"name": "nobody"}});
    for tools_asked in [json!([server]), json!([tool("mine")])] {
        let body = with(question("hi"), json!({"tools": tools_asked, "tool_choice": nobody}));
        let (status, said) = house.refusal(&body).await;
        assert_eq!((status, &said["param"]), (400, &json!("tool_choice.function.name")), "{said}");
    }
}

#[tokio::test]
async fn what_all_replies_cost_is_added_up() {
    use lectern_core::testing::Beat;
    use lectern_core::{Delta, Usage};
    let cost = Delta::Usage(Usage {
        prompt_tokens: 10,
        reused_tokens: 4,
        generated_tokens: 3,
        thinking_tokens: Some(1),
        image_tokens: Some(5),
        ..Usage::default()
    });
    let costly = |mut reply: lectern_core::testing::Reply| {
        reply.insert(0, Beat::Delta(cost.clone()));
        reply
    };
    let key = Key::fresh("k").with_server_tools(true);
    let house =
        Plan { tools: tools(), key, ..Plan::of([costly(look()), costly(says("seen"))]) }.build().await;
    let usage = house.completion(&question("hi")).await["usage"].clone();
    assert_eq!((&usage["prompt_tokens"], &usage["completion_tokens"]), (&json!(20), &json!(6)));
    assert_eq!(usage["prompt_tokens_details"]["cached_tokens"], 8);
    assert_eq!(usage["prompt_tokens_details"]["image_tokens"], 10);
    assert_eq!(usage["completion_tokens_details"]["reasoning_tokens"], 2);
}

#[tokio::test]
async fn one_call_of_the_clients_own_when_that_was_asked() {
    let replies = [calls_all([("mine", json!({"city": "a"})), ("mine", json!({"city": "b"}))])];
    let key = Key::fresh("k").with_server_tools(true);
    let house = Plan { tools: tools(), key, ..Plan::of(replies) }.build().await;
    let body = with(question("hi"), json!({"tools": [tool("mine")], "parallel_tool_calls": false}));
    let whole = house.completion(&body).await;
    assert_eq!(whole["choices"][0]["message"]["tool_calls"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_key_without_the_scope_gets_none() {
    let key = Key::fresh("plain").with_scopes([Scope::Models]).with_server_tools(true);
    let house = Plan { tools: tools(), key, ..Plan::of([says("no tools")]) }.build().await;
    house.completion(&question("hi")).await;
    assert_eq!(house.model.requests()[0].tools.len(), 0);
    let server = json!({"type": "mcp", "server_label": "test"});
    let response = house.ask(&with(question("hi"), json!({"tools": [server]}))).await;
    let (status, said) = error(response).await;
    assert_eq!((status, &said["code"]), (403, &json!("insufficient_scope")));
}

#[tokio::test]
async fn what_needs_consent_is_refused_when_nobody_can_give_it() {
    let key = Key::fresh("k").with_server_tools(true);
    let replies = [calls("test__change", json!({})), says("I may not.")];
    let house = Plan { tools: tools(), key, ..Plan::of(replies) }.build().await;
    let whole = house.completion(&question("hi")).await;
    assert_eq!(whole["choices"][0]["message"]["content"], "I may not.");
    let requests = house.model.requests();
    let Some(Message::Tool(result)) = requests[1].messages.last() else { panic!("{:?}", requests[1]) };
    assert_eq!(result.outcome, ToolOutcome::Denied);
    let entries = house.store.audit(&Default::default()).unwrap();
    assert_eq!(entries[0].decision, Some(AuditDecision::Denied));
}

#[tokio::test]
async fn what_needs_consent_waits_for_who_can_give_it() {
    let key = Key::fresh("k").with_server_tools(true);
    let replies = [calls("test__change", json!({})), says("Done.")];
    let house = Plan { tools: tools(), key, ..Plan::of(replies) }.build().await;
    let approvals = house.server.approvals();
    let _attended = approvals.attend();
    let mut changes = approvals.changes();
    let asked = tokio::spawn(house.post("/v1/chat/completions").json(&question("hi")).send());
    changes.wait_for(|()| !approvals.waiting().is_empty()).await.unwrap();
    let waiting = approvals.waiting().remove(0);
    assert_eq!(waiting.call.tool.as_str(), "test__change");
    let allow = lectern_core::PermissionAnswer::Allow { grant: lectern_core::Grant::Once };
    assert!(approvals.answer(&waiting.id, allow.clone()));
    let whole: Value = asked.await.unwrap().unwrap().json().await.unwrap();
    assert_eq!(whole["choices"][0]["message"]["content"], "Done.");
    assert!(!approvals.answer(&waiting.id, allow), "an answer counts once");
}

#[tokio::test]
async fn a_call_of_the_clients_own_tool_ends_the_answer_there() {
    let key = Key::fresh("k").with_server_tools(true);
    let replies = [
        look(),
        calls_all([("mine", json!({"city": "Rom"})), ("mine", json!({"city": "Bern"}))]),
        says("Both are warm."),
    ];
    let house = Plan { tools: tools(), key, ..Plan::of(replies) }.build().await;
    let tools = json!({"tools": [tool("mine")]});
    let first = house.completion(&with(question("hi"), tools.clone())).await;
    assert_eq!(first["choices"][0]["finish_reason"], "tool_calls");
    let message = first["choices"][0]["message"].clone();
    let calls = message["tool_calls"].as_array().unwrap().clone();
    assert_eq!(calls.len(), 2);
    let mut messages = vec![json!({"role": "user", "content": "hi"}), message];
    messages.extend(
        calls.iter().map(|call| json!({"role": "tool", "tool_call_id": call["id"], "content": "30"})),
    );
    let second = house.completion(&with(with(question("hi"), tools), json!({"messages": messages}))).await;
    assert_eq!(second["choices"][0]["message"]["content"], "Both are warm.");
}
