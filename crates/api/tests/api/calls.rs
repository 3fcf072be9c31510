//! Calls of the client's own tools.

use std::collections::HashSet;

use lectern_core::testing::{Beat, calls, calls_all, says};
use lectern_core::{Delta, FinishReason};
use serde_json::{Value, json};

use crate::house::{house, question, tool, with};

/// The calls of a stream, put together as a strict client does: one new call in a chunk, its name once.
fn put_together(chunks: &[Value]) -> Vec<(String, String, String)> {
    let mut calls: Vec<(String, String, String)> = Vec::new();
    for chunk in chunks {
        let Some(pieces) = chunk["choices"][0]["delta"]["tool_calls"].as_array() else { continue };
        assert_eq!(pieces.len(), 1, "one call in a chunk: {chunk}");
        let index = usize::try_from(pieces[0]["index"].as_u64().unwrap()).unwrap();
        let function = &pieces[0]["function"];
        match pieces[0]["id"].as_str() {
            Some(id) => {
                assert_eq!(index, calls.len());
                assert_eq!(pieces[0]["type"], "function");
                calls.push((id.to_owned(), function["name"].as_str().unwrap().to_owned(), String::new()));
            }
            None => assert!(function.get("name").is_none()),
        }
        calls[index].2.push_str(function["arguments"].as_str().unwrap());
    }
    calls
}

#[tokio::test]
async fn one_two_and_five_calls_come_with_ids_of_their_own() {
    for count in [1, 2, 5] {
        let reply = || calls_all((0..count).map(|number| ("weather", json!({"city": number.to_string()}))));
        let house = house([reply(), reply()]).await;
        let body = with(question("hi"), json!({"tools": [tool("weather")]}));
        let whole = house.completion(&body).await;
        assert_eq!(whole["choices"][0]["finish_reason"], "tool_calls");
        assert_eq!(whole["choices"][0]["message"]["content"], Value::Null);
        let listed = whole["choices"][0]["message"]["tool_calls"].as_array().unwrap().clone();
        assert_eq!(listed.len(), count);

        let chunks = house.chunks(&with(body, json!({"stream": true}))).await;
        assert_eq!(chunks.last().unwrap()["choices"][0]["finish_reason"], "tool_calls");
        let streamed = put_together(&chunks);
        let ids: HashSet<&String> = streamed.iter().map(|(id, ..)| id).collect();
        assert_eq!(ids.len(), count);
        for (whole, (_, name, arguments)) in listed.iter().zip(&streamed) {
            assert_eq!(whole["function"], json!({"name": name, "arguments": arguments}));
        }
    }
}

#[tokio::test]
async fn an_id_that_the_history_has_is_not_given_again() {
    let house = house([calls("f", json!({})), calls("f", json!({}))]).await;
    let tools = json!({"tools": [tool("f")]});
    let first = house.completion(&with(question("hi"), tools.clone())).await;
    let message = first["choices"][0]["message"].clone();
    let id = message["tool_calls"][0]["id"].clone();
    let messages = json!([{"role": "user", "content": "hi"}, message, {"role": "tool", "tool_call_id": id, "content": "1"}]);
    let second = house.completion(&with(with(question("hi"), tools), json!({"messages": messages}))).await;
    assert_ne!(second["choices"][0]["message"]["tool_calls"][0]["id"], id);
}

#[tokio::test]
async fn a_call_without_arguments_has_an_empty_object() {
    let reply = || {
        vec![
            Beat::Delta(Delta::ToolCallStarted {
                index: 4,
                id: "".into(),
                tool: "f".into(),
                provider_data: None,
            }),
            Beat::Delta(Delta::Finished(FinishReason::Stop)),
        ]
    };
    let house = house([reply(), reply()]).await;
    let body = with(question("hi"), json!({"tools": [tool("f")]}));
    let whole = house.completion(&body).await;
    assert_eq!(whole["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"], "{}");
    let streamed = put_together(&house.chunks(&with(body, json!({"stream": true}))).await);
    assert_eq!(streamed[0].2, "{}");
    assert!(!streamed[0].0.is_empty());
}

#[tokio::test]
async fn one_call_at_a_time_when_that_was_asked() {
    let reply = || calls_all([("f", json!({"city": "a"})), ("f", json!({"city": "b"}))]);
    let house = house([reply(), reply()]).await;
    let body = with(question("hi"), json!({"tools": [tool("f")], "parallel_tool_calls": false}));
    let whole = house.completion(&body).await;
    assert_eq!(whole["choices"][0]["message"]["tool_calls"].as_array().unwrap().len(), 1);
    assert_eq!(whole["choices"][0]["finish_reason"], "tool_calls");
    let streamed = put_together(&house.chunks(&with(body, json!({"stream": true}))).await);
    assert_eq!(streamed.len(), 1);
    assert_eq!(streamed[0].2, json!({"city": "a"}).to_string());
}

#[tokio::test]
async fn a_round_trip_ends_in_words() {
    let house = house([calls("weather", json!({"city": "Rom"})), says("It is warm.")]).await;
    let tools = json!({"tools": [tool("weather")]});
    let first = house.completion(&with(question("hi"), tools.clone())).await;
    let message = first["choices"][0]["message"].clone();
    let result = json!({"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "30 °C"});
    let messages = json!([{"role": "user", "content": "hi"}, message, result]);
    let second = house.completion(&with(with(question("hi"), tools), json!({"messages": messages}))).await;
    assert_eq!(second["choices"][0]["message"]["content"], "It is warm.");
    let requests = house.model.requests();
    assert_eq!(requests[0].conversation, requests[1].conversation);
}
