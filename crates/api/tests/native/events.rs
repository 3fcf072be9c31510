//! `GET /api/events`.

use futures::StreamExt;
use lectern_core::testing::{calls, says};
use serde_json::{Value, json};

use crate::frames::tools;
use crate::house::{House, Plan, ask, error, parsed, with};

async fn events(house: &House, query: &str, last: Option<&str>) -> Vec<Value> {
    let mut request = house.get(&format!("/api/events?conversation=s&once=true{query}"));
    if let Some(last) = last {
        request = request.header("last-event-id", last);
    }
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), 200);
    let (done, values) = parsed(&response.text().await.unwrap());
    assert!(done);
    values
}

fn id(event: &Value) -> String {
    format!("{}:{}", event["turn"].as_str().unwrap(), event["seq"])
}

#[tokio::test]
async fn events_of_a_session_can_be_followed_from_anywhere() {
    let replies = [calls("test__look", json!({})), says("seen"), says("again")];
    let house = Plan { tools: tools(), ..Plan::of(replies) }.build().await;
    house.stream(&with(ask("hi"), json!({"session_id": "s"}))).await;
    let all = events(&house, "", None).await;
    assert_eq!(all[0]["kind"], "turn_started");
    assert_eq!(all.last().unwrap()["kind"], "turn_finished");
    let numbers: Vec<u64> = all.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (0..all.len() as u64).collect::<Vec<_>>());
    for seen in 0..all.len() {
        let rest = &all[seen + 1..];
        assert_eq!(events(&house, &format!("&after={seen}"), None).await, rest);
        assert_eq!(events(&house, "", Some(&id(&all[seen]))).await, rest);
    }
    // A turn that came meanwhile follows.
    house.stream(&with(ask("more"), json!({"session_id": "s"}))).await;
    let later = events(&house, "", Some(&id(&all[3]))).await;
    assert_eq!(later[..all.len() - 4], all[4..]);
    assert_eq!(later[all.len() - 4]["kind"], "turn_started");
    assert_eq!(later.last().unwrap()["kind"], "turn_finished");

    let (status, said) = error(house.get("/api/events?conversation=nobody").send().await.unwrap()).await;
    assert_eq!(
        (status, &said["code"], &said["param"]),
        (404, &json!("session_not_found"), &json!("conversation"))
    );
    for (query, param) in
        [("", "conversation"), ("?conversation=s&after=x", "after"), ("?conversation=s&once=7", "once")]
    {
        let (status, said) = error(house.get(&format!("/api/events{query}")).send().await.unwrap()).await;
        assert_eq!((status, &said["param"]), (400, &json!(param)), "{query}");
    }
}

#[tokio::test]
async fn who_follows_sees_turns_that_come_until_the_session_is_gone() {
    let house = Plan::of([says("one"), says("two"), says("three")]).build().await;
    house.stream(&with(ask("a"), json!({"session_id": "s"}))).await;
    let mut stream = house.get("/api/events?conversation=s").send().await.unwrap().bytes_stream();
    let mut seen = String::new();
    let mut turns = 0;
    while turns < 3 {
        seen.push_str(std::str::from_utf8(&stream.next().await.unwrap().unwrap()).unwrap());
        let finished = seen.matches("\"turn_finished\"").count();
        if finished > turns {
            turns = finished;
            if turns < 3 {
                house.stream(&with(ask("more"), json!({"session_id": "s"}))).await;
            }
        }
    }
    assert_eq!(house.delete("/api/sessions/s").send().await.unwrap().status(), 204);
    while let Some(piece) = stream.next().await {
        seen.push_str(std::str::from_utf8(&piece.unwrap()).unwrap());
    }
    let (done, values) = parsed(&seen);
    assert!(done);
    assert_eq!(values.iter().filter(|event| event["kind"] == "turn_started").count(), 3);
}

#[tokio::test]
async fn events_of_turns_before_a_restart_are_as_they_are_kept() {
    let house =
        Plan { tools: tools(), ..Plan::of([calls("test__look", json!({})), says("seen")]) }.build().await;
    house.stream(&with(ask("hi"), json!({"session_id": "s"}))).await;
    let live = events(&house, "", None).await;
    let (key, folder) = (house.key.clone(), house.folder.clone());
    house.server.end().await;
    let house = Plan { key, folder: Some(folder), ..Plan::of([]) }.build().await;
    let kept = events(&house, "", None).await;
    assert!(kept.len() < live.len() && kept.iter().all(|event| live.contains(event)));
    let whole = kept.iter().rfind(|event| event["kind"] == "step_finished").unwrap();
    assert_eq!(whole["message"]["parts"][0]["text"], "seen");
    // Who saw a delta last gets the rest.
    let delta = live.iter().find(|event| event["kind"] == "text_delta").unwrap();
    assert_eq!(events(&house, "", Some(&id(delta))).await.last(), live.last());
}
