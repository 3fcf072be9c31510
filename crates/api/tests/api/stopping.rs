//! Who goes away, and a server that ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::StreamExt;
use lectern_api::{ApiOptions, Limits};
use lectern_core::Delta;
use lectern_core::testing::{Beat, Reply};
use serde_json::{Value, json};

use crate::house::{House, Plan, frames, question, with};
use crate::schemas;

fn endless() -> Reply {
    vec![Beat::Delta(Delta::Text("Once upon a time".to_owned())), Beat::Wait(Duration::from_secs(3_600))]
}

/// Waits until the only place of the key is free.
async fn is_free(house: &House) {
    while house.get("/v1/models").send().await.unwrap().status() != 200 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_client_that_goes_away_takes_its_answer_along() {
    let limits = Limits { concurrent: 1, ..Limits::default() };
    let options = ApiOptions { limits, ..ApiOptions::default() };
    let house = Plan { options, ..Plan::of([endless(), endless()]) }.build().await;
    let mut stream = house.ask(&with(question("hi"), json!({"stream": true}))).await.bytes_stream();
    stream.next().await.unwrap().unwrap();
    drop(stream);
    is_free(&house).await;
    // The same without a stream: the connection is closed while the model still works.
    let asked = tokio::spawn(house.post("/v1/chat/completions").json(&question("other")).send());
    while house.model.requests().len() < 2 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    asked.abort();
    is_free(&house).await;
}

#[tokio::test]
async fn a_server_that_ends_tells_its_streams_why() {
    let limits = Limits { drain: Duration::from_millis(100), ..Limits::default() };
    let options = ApiOptions { limits, ..ApiOptions::default() };
    let house = Plan { options, ..Plan::of([endless()]) }.build().await;
    let response = house.ask(&with(question("hi"), json!({"stream": true}))).await;
    let url = house.server.url();
    let ended = Arc::new(AtomicBool::new(false));
    let end = {
        let ended = Arc::clone(&ended);
        let server = house.server;
        tokio::spawn(async move {
            server.end().await;
            ended.store(true, Ordering::SeqCst);
        })
    };
    let (data, _) = frames(&response.text().await.unwrap());
    let last: Value = serde_json::from_str(data.last().unwrap()).unwrap();
    schemas::error(&last);
    assert_eq!(last["error"]["code"], "server_ending");
    end.await.unwrap();
    assert!(ended.load(Ordering::SeqCst));
    assert!(house.client.get(format!("{url}/v1/models")).send().await.is_err());
}

#[tokio::test]
async fn a_server_that_ends_lets_an_answer_come_to_its_end() {
    let reply = vec![
        Beat::Delta(Delta::Text("Nearly".to_owned())),
        Beat::Wait(Duration::from_millis(300)),
        Beat::Delta(Delta::Text(" done.".to_owned())),
        Beat::Delta(Delta::Finished(lectern_core::FinishReason::Stop)),
    ];
    let house = Plan::of([reply]).build().await;
    let response = house.ask(&with(question("hi"), json!({"stream": true}))).await;
    let end = tokio::spawn(house.server.end());
    let (data, _) = frames(&response.text().await.unwrap());
    assert_eq!(data.last().unwrap(), "[DONE]");
    end.await.unwrap();
}
