//! Many at once.

use std::collections::HashSet;

use futures::future::join_all;
use lectern_core::testing::{Beat, Reply, ScriptedModel};
use lectern_core::{Delta, FinishReason};
use serde_json::{Value, json};

use crate::house::{Plan, frames, question, with};
use crate::schemas;

const STREAMS: usize = 200;
const PIECES: usize = 100;

fn reply() -> Reply {
    let words = (0..PIECES).map(|number| Beat::Delta(Delta::Text(format!("{number} "))));
    words.chain([Beat::Delta(Delta::Finished(FinishReason::Stop))]).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_streams_lose_and_swap_nothing() {
    let house = Plan { model: ScriptedModel::new([reply()]).repeating(), ..Plan::of([]) }.build().await;
    let body = with(question("hi"), json!({"stream": true}));
    let asked = join_all((0..STREAMS).map(|_| async {
        let response = house.ask(&body).await;
        assert_eq!(response.status(), 200);
        response.text().await.unwrap()
    }));
    let expected: String = (0..PIECES).map(|number| format!("{number} ")).collect();
    let mut ids = HashSet::new();
    for text in asked.await {
        let (data, _) = frames(&text);
        assert_eq!(data.last().unwrap(), "[DONE]");
        let chunks: Vec<Value> =
            data[..data.len() - 1].iter().map(|data| serde_json::from_str(data).unwrap()).collect();
        let said: String =
            chunks.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str()).collect();
        assert_eq!(said, expected);
        ids.insert(chunks[0]["id"].as_str().unwrap().to_owned());
        schemas::chunk(&chunks[0]);
    }
    assert_eq!(ids.len(), STREAMS);
    // Each has had a conversation of its own in the cache while it ran.
    assert_eq!(house.model.requests().len(), STREAMS);
}
