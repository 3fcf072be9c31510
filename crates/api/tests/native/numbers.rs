//! `GET /metrics`, and ids of requests.

use lectern_core::testing::{calls, says};
use serde_json::json;

use crate::frames::tools;
use crate::house::{Plan, ask, error, until, with};

#[tokio::test]
async fn what_is_done_is_counted() {
    let replies = [
        calls("test__look", json!({})),
        says("seen"),
        calls("test__broken", json!({})),
        says("no"),
        says("x"),
    ];
    let house = Plan { tools: tools(), ..Plan::of(replies) }.build().await;
    house.stream(&ask("a")).await;
    house.stream(&ask("b")).await;
    house.whole(&with(ask("c"), json!({"stream": false, "tools": []}))).await;
    house.call("test__read", &json!({})).await;
    let wrong = house.post("/v1/chat/completions").json(&json!({"messages": []})).send().await.unwrap();
    assert!(wrong.headers()["x-request-id"].to_str().unwrap().starts_with("req_"));
    assert_eq!(error(wrong).await.0, 400);
    assert_eq!(error(house.get("/nowhere/secret-word").send().await.unwrap()).await.0, 404);

    let response = house.get("/metrics").send().await.unwrap();
    assert!(response.headers()["content-type"].to_str().unwrap().starts_with("text/plain; version=0.0.4"));
    let text = response.text().await.unwrap();
    for line in [
        "lectern_requests_total{path=\"/api/chat/completions\",status=\"200\"} 3",
        "lectern_requests_total{path=\"/api/tools/{name}\",status=\"200\"} 1",
        "lectern_requests_total{path=\"other\",status=\"404\"} 1",
        "lectern_answers_total 3",
        "lectern_answers_with_tools_total 2",
        "lectern_first_token_seconds_count 3",
        "lectern_tool_calls_total{outcome=\"succeeded\",tool=\"test__look\"} 1",
        "lectern_tool_calls_total{outcome=\"failed\",tool=\"test__broken\"} 1",
        "lectern_tool_calls_total{outcome=\"succeeded\",tool=\"test__read\"} 1",
        "lectern_tool_seconds_count{tool=\"test__look\"} 1",
        "lectern_errors_total{code=\"empty_array\"} 1",
        "lectern_errors_total{code=\"unknown_url\"} 1",
    ] {
        assert!(text.lines().any(|known| known == line), "{line} in {text}");
    }
    assert!(!text.contains("secret-word"));
    // A request has ended when its last byte is out, which its client may see a moment earlier.
    until(|| house.server.metrics().answer.count == 4).await;
    let view = house.server.metrics();
    assert_eq!((view.answers, view.answers_with_tools, view.first_token.count), (3, 2, 3));
    let tools: Vec<(&str, u64, u64)> =
        view.tools.iter().map(|tool| (tool.tool.as_str(), tool.calls, tool.failed)).collect();
    assert_eq!(tools, [("test__broken", 1, 1), ("test__look", 1, 0), ("test__read", 1, 0)]);
    assert!(view.tokens.prompt >= view.tokens.reused);
    let bare = house.client.get(format!("{}/metrics", house.server.url())).send().await.unwrap();
    assert_eq!(error(bare).await.0, 401);
}
