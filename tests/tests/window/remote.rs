//! A remote model, from adding its provider to a turn with a call, through the real window and a server of this test.

use std::sync::Arc;

use lectern_fake_provider::{Answer, Piece, Seen, Server};
use lectern_tests::window::{Setting, Window};
use serde_json::{Value, json};

use crate::{answered, ask, card_states, tools};

/// Typed into the window; must be nowhere but in the requests.
const KEY: &str = "sk-lectern-window-0815";
const MODEL: &str = "tiny-remote";

#[tokio::test]
async fn an_endpoint_is_added_tested_and_answers_with_a_call() {
    let server = Server::start(Arc::new(endpoint)).await;
    let setting = Setting::fresh();
    let window = Window::open(setting).await;
    window.run("location.hash = '#/settings/providers'", vec![]).await;
    window.see_text("[data-testid=what-leaves]", "leaves this computer").await;
    window.picture("20-providers-empty").await;

    window.click("[data-testid=add-provider]").await;
    window.type_into("[data-testid=provider-address]", &format!("{}/v1", server.url())).await;
    window.see_text("[data-testid=reach-note]", "stays on this computer").await;
    window.type_into("[data-testid=provider-key]", KEY).await;
    window.type_into("[data-testid=provider-name]", "Ours").await;
    window.picture("21-provider-form").await;
    window.click("[data-testid=provider-save]").await;
    window.see_text("[data-testid=login]", "Signed in").await;

    window.click("[data-testid=fetch-models]").await;
    window.click(&format!("[data-offered='{MODEL}'] .btn")).await;
    window.click("[data-testid=test-run]").await;
    window.see("[data-testid=tested][data-passed=true]").await;
    window
        .until("both were tested", || async {
            (window.count("[data-testid=tested][data-passed=true]").await == 2).then_some(())
        })
        .await;
    window.picture("22-provider-tested").await;
    window.click("[data-testid=use-model]").await;
    window.see_text("[data-testid=provider-models]", "In use").await;

    window.run("location.hash = '#/'", vec![]).await;
    ask(&window, "What is in my notes?").await;
    answered(&window, "Those are your notes.").await;
    assert_eq!(
        (tools(&window).await, card_states(&window).await),
        (vec!["list_notes".to_owned()], vec!["done".to_owned()])
    );
    window.see_text("[data-testid=turn-usage]", "240 read").await;
    window.picture("23-remote-answer").await;
    window.click("[data-testid=model-picker]").await;
    window.see_text(".panel", MODEL).await;
    window.picture("24-model-list").await;

    assert!(server.seen().iter().all(|seen| seen.header("authorization") == format!("Bearer {KEY}")));
    let page = window
        .run("return document.documentElement.outerHTML + JSON.stringify({...localStorage})", vec![])
        .await;
    assert!(!page.to_string().contains(KEY), "the key is in the page");
    assert!(!holds(&window.home(), KEY.as_bytes()), "the key is in a file");
}

/// Calls a tool when there is one that was not called yet, else says something.
fn endpoint(seen: &Seen) -> Answer {
    if seen.path.ends_with("/models") {
        return Answer::json(200, &json!({ "object": "list", "data": [{ "id": MODEL, "object": "model" }] }));
    }
    let request = seen.json();
    let called =
        request["messages"].as_array().into_iter().flatten().any(|message| message["role"] == "tool");
    let names =
        request["tools"].as_array().into_iter().flatten().map(|tool| tool["function"]["name"].as_str());
    let names: Vec<&str> = names.flatten().collect();
    let wanted = names.iter().find(|name| name.ends_with("list_notes")).or(names.first());
    match wanted {
        Some(name) if !called => {
            let call = json!({ "index": 0, "id": "call_1", "type": "function",
                "function": { "name": name, "arguments": arguments_for(&request, name).to_string() } });
            reply(&json!({ "role": "assistant", "tool_calls": [call] }), "tool_calls")
        }
        _ => reply(&json!({ "role": "assistant", "content": "Those are your notes." }), "stop"),
    }
}

/// What the tool requires, with the smallest values that fit.
fn arguments_for(request: &Value, name: &str) -> Value {
    let tools = request["tools"].as_array().into_iter().flatten();
    let schema = tools
        .filter(|tool| tool["function"]["name"] == name)
        .map(|tool| &tool["function"]["parameters"])
        .next();
    let Some(schema) = schema else { return json!({}) };
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let value = |key: &str| match schema["properties"][key]["type"].as_str() {
        Some("integer" | "number") => json!(2),
        _ => schema["properties"][key]["enum"][0].as_str().map_or_else(|| json!("a"), |first| json!(first)),
    };
    required.map(|key| (key.to_owned(), value(key))).collect::<serde_json::Map<_, _>>().into()
}

fn reply(delta: &Value, finish: &str) -> Answer {
    let chunk = |choices: Value| json!({ "id": "c", "object": "chat.completion.chunk", "created": 1, "model": MODEL, "choices": choices });
    let mut usage = chunk(json!([]));
    usage["usage"] = json!({ "prompt_tokens": 120, "completion_tokens": 8, "total_tokens": 128 });
    let chunks = [
        chunk(json!([{ "index": 0, "delta": delta, "finish_reason": null }])),
        chunk(json!([{ "index": 0, "delta": {}, "finish_reason": finish }])),
        usage,
    ];
    Answer::events(&chunks).then(Piece::Bytes(b"data: [DONE]\n\n".to_vec()))
}

/// Whether a file below the folder holds the text.
pub(crate) fn holds(folder: &std::path::Path, text: &[u8]) -> bool {
    std::fs::read_dir(folder).unwrap().map(Result::unwrap).any(|entry| {
        let path = entry.path();
        match path.is_dir() {
            true => holds(&path, text),
            false => {
                std::fs::read(&path).is_ok_and(|bytes| bytes.windows(text.len()).any(|part| part == text))
            }
        }
    })
}
