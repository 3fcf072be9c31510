//! The OpenAPI document, and the page that shows it.

use std::collections::HashSet;

use lectern_core::testing::{Beat, ScriptedModel, calls, says};
use lectern_core::{Delta, FinishReason};
use reqwest::Method;
use reqwest::header::HOST;
use serde_json::{Value, json};

use crate::house::{Plan, house, question, tool, with};

#[tokio::test]
async fn it_is_whole_and_covers_what_is_served() {
    let house = house([]).await;
    let described = house.described().await;
    let document = &described.0;
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
    let operations = [
        ("/v1/models", "get"),
        ("/v1/models/{id}", "get"),
        ("/v1/chat/completions", "post"),
        ("/api/chat/completions", "post"),
        ("/api/tools", "get"),
        ("/api/tools/{name}", "post"),
        ("/api/approvals", "get"),
        ("/api/approvals/{id}", "post"),
        ("/api/sessions/{id}", "get"),
        ("/api/events", "get"),
        ("/metrics", "get"),
    ];
    for (path, method) in operations {
        let operation = &document["paths"][path][method];
        assert!(operation["responses"]["200"].is_object(), "{method} {path}");
        assert!(operation["responses"]["401"].is_object(), "{method} {path}");
    }
    assert_eq!(document["security"], json!([{"key": []}]));
    assert!(document["paths"]["/api/sessions/{id}"]["delete"]["responses"]["204"].is_object());
    let found = described.references();
    assert!(!found.is_empty());
    for reference in found {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
}

#[tokio::test]
async fn exactly_what_it_describes_is_served() {
    let house = house([]).await;
    let described = house.described().await;
    let mut names = HashSet::new();
    for (path, item) in described.0["paths"].as_object().unwrap() {
        let address = format!("{}{}", house.server.url(), path.replace(['{', '}'], ""));
        for method in ["get", "put", "post", "delete", "patch"] {
            let asked = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
            let request = house.client.request(asked, &address).bearer_auth(house.key.secret());
            let status = request.json(&json!({})).send().await.unwrap().status();
            assert_eq!(status == 405, item.get(method).is_none(), "{method} {path}: {status}");
            if let Some(operation) = item.get(method) {
                let name = operation["operationId"].as_str().unwrap().to_owned();
                assert!(names.insert(name), "{method} {path}: another operation has its name");
            }
        }
    }
    assert_eq!(names.len(), 12);
}

#[tokio::test]
async fn answers_are_as_it_says() {
    let thinking = vec![
        Beat::Delta(Delta::Thinking("Hm.".to_owned())),
        Beat::Delta(Delta::Text("Yes.".to_owned())),
        Beat::Delta(Delta::Finished(FinishReason::Length)),
    ];
    let house = house([says("hi"), calls("f", json!({})), thinking.clone(), thinking]).await;
    let described = house.described().await;
    let hold = |name: &str, value: &Value| described.hold(name, value);
    for _ in 0..3 {
        hold("ChatCompletion", &house.completion(&with(question("x"), json!({"tools": [tool("f")]}))).await);
    }
    for chunk in house
        .chunks(&with(question("x"), json!({"stream": true, "stream_options": {"include_usage": true}})))
        .await
    {
        hold("ChatCompletionChunk", &chunk);
    }
    let models: Value = house.get("/v1/models").send().await.unwrap().json().await.unwrap();
    hold("ModelList", &models);
    let refused: Value = house.get("/v1/nothing").send().await.unwrap().json().await.unwrap();
    hold("ErrorBody", &refused);
}

#[tokio::test]
async fn each_field_of_a_request_that_it_names_is_read_and_no_other() {
    let house = Plan { model: ScriptedModel::new([says("hi")]).repeating(), ..Plan::of([]) }.build().await;
    let described = house.described().await;
    let request = &described.0["components"]["schemas"]["ChatRequest"];
    let fields = request["properties"].as_object().unwrap();
    assert!(fields.len() > 30, "{fields:?}");
    for name in fields.keys() {
        // No field but hints takes such an object, and none calls itself unknown.
        let body = with(question("x"), json!({name.as_str(): {"nonsense": true}}));
        let body: Value = house.ask(&body).await.json().await.unwrap();
        let unknown = body["error"]["code"] == "unknown_parameter" && body["error"]["param"] == name.as_str();
        assert!(!unknown, "{body:#}");
    }
    assert_eq!(request["additionalProperties"], json!(false));
    let (status, error) = house.refusal(&with(question("x"), json!({"nonsense": true}))).await;
    assert_eq!((status, &error["code"]), (400, &json!("unknown_parameter")));
}

#[tokio::test]
async fn the_page_shows_it_without_the_network() {
    let house = house([]).await;
    let response = house.client.get(house.server.url()).send().await.unwrap();
    assert_eq!((response.status().as_u16(), response.url().path()), (200, "/docs"));
    let policy = response.headers()["content-security-policy"].to_str().unwrap().to_owned();
    assert!(policy.starts_with("default-src 'none'; style-src 'sha256-"), "{policy}");
    assert!(!policy.contains("unsafe"), "{policy}");
    let page = response.text().await.unwrap();
    assert!(page.contains("/v1/chat/completions") && page.contains("ChatCompletionChunk"), "{page}");
    assert!(page.contains("/api/chat/completions") && page.contains("SessionRequest"), "{page}");
    for from_elsewhere in ["<script", "http://", "https://", " src=", "@import", " style="] {
        assert!(!page.contains(from_elsewhere), "{from_elsewhere}");
    }
    // The digest of the policy is that of the style.
    let style = page.split_once("<style>").unwrap().1.split_once("</style>").unwrap().0;
    assert!(!style.is_empty());
    let elsewhere = house.client.get(format!("{}/docs", house.server.url())).header(HOST, "evil.example");
    assert_eq!(elsewhere.send().await.unwrap().status(), 403);
}
