//! Who goes away, and a server that ends.

use std::time::Duration;

use futures::StreamExt;
use lectern_api::{ApiOptions, Limits};
use lectern_core::testing::{Behaviour, ScriptedTools, calls, tool as server_tool};
use serde_json::json;

use crate::house::{Plan, ask, endless, parsed, until, with};

fn slow() -> ScriptedTools {
    let slow = Behaviour::Slow(Duration::from_secs(3_600), "late");
    ScriptedTools::new().with(server_tool("test__slow", true), slow)
}

#[tokio::test]
async fn a_client_that_goes_away_takes_its_turn_and_the_tool_under_it_along() {
    let house = Plan { tools: slow(), ..Plan::of([calls("test__slow", json!({}))]) }.build().await;
    let mut stream = house.ask(&with(ask("hi"), json!({"session_id": "s"}))).await.bytes_stream();
    let mut seen = String::new();
    while !seen.contains("tool_start") {
        seen.push_str(std::str::from_utf8(&stream.next().await.unwrap().unwrap()).unwrap());
    }
    drop(stream);
    let cancelled = || {
        let entries = house.store.audit(&Default::default()).unwrap();
        let mut outcomes = entries.iter().filter_map(|entry| entry.outcome.as_ref());
        outcomes.next_back().is_some_and(|end| end.outcome == lectern_core::ToolOutcome::Cancelled)
    };
    until(cancelled).await;
}

#[tokio::test]
async fn a_server_that_ends_tells_its_streams_why_and_keeps_what_was_said() {
    let limits = Limits { drain: Duration::from_millis(100), ..Limits::default() };
    let options = ApiOptions { limits, ..ApiOptions::default() };
    let house = Plan { options, ..Plan::of([endless()]) }.build().await;
    let mut asked = house.ask(&with(ask("hi"), json!({"session_id": "s"}))).await.bytes_stream();
    let mut text = String::from_utf8(asked.next().await.unwrap().unwrap().to_vec()).unwrap();
    let followed = house.get("/api/events?conversation=s").send().await.unwrap();
    let (key, folder) = (house.key.clone(), house.folder.clone());
    let end = tokio::spawn(house.server.end());
    while let Some(piece) = asked.next().await {
        text.push_str(std::str::from_utf8(&piece.unwrap()).unwrap());
    }
    let (done, values) = parsed(&text);
    assert!(done);
    let last = values.last().unwrap();
    assert_eq!((&last["type"], &last["error"]["code"]), (&json!("error"), &json!("server_ending")));
    assert!(followed.text().await.unwrap().ends_with("data: [DONE]\n\n"));
    end.await.unwrap();
    // The next server has the question, and what was said of the answer.
    let house = Plan { key, folder: Some(folder), ..Plan::of([]) }.build().await;
    let shown: serde_json::Value = house.get("/api/sessions/s").send().await.unwrap().json().await.unwrap();
    assert!(shown["messages"].to_string().contains("Once upon a time"), "{shown:#}");
}
