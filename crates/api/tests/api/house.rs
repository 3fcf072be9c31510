//! What a house is asked at `/v1`.

use lectern_core::testing::Reply;
use reqwest::Response;
use serde_json::{Value, json};

use crate::schemas;
pub use crate::scripted::{House, Plan, tool, with};

/// A house whose model plays these replies.
pub async fn house(replies: impl IntoIterator<Item = Reply>) -> House {
    Plan::of(replies).build().await
}

impl House {
    pub async fn ask(&self, body: &Value) -> Response {
        self.post("/v1/chat/completions").json(body).send().await.unwrap()
    }

    /// A whole answer, held to its schema.
    pub async fn completion(&self, body: &Value) -> Value {
        let response = self.ask(body).await;
        let status = response.status();
        let body: Value = response.json().await.unwrap();
        assert_eq!(status, 200, "{body:#}");
        schemas::completion(&body);
        body
    }

    /// The error that a body leads to: its status and what it says.
    pub async fn refusal(&self, body: &Value) -> (u16, Value) {
        error(self.ask(body).await).await
    }

    /// The chunks of a stream, each held to its schema.
    pub async fn chunks(&self, body: &Value) -> Vec<Value> {
        let response = self.ask(body).await;
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        let (data, _) = frames(&response.text().await.unwrap());
        let (last, chunks) = data.split_last().unwrap();
        assert_eq!(last, "[DONE]");
        let chunks: Vec<Value> = chunks.iter().map(|data| serde_json::from_str(data).unwrap()).collect();
        chunks.iter().for_each(schemas::chunk);
        chunks
    }
}

/// The data of a stream, and its comments.
pub fn frames(text: &str) -> (Vec<String>, Vec<String>) {
    let (mut data, mut comments) = (Vec::new(), Vec::new());
    for line in text.split("\n\n").filter(|frame| !frame.is_empty()) {
        match (line.strip_prefix("data: "), line.strip_prefix(": ")) {
            (Some(text), _) => data.push(text.to_owned()),
            (None, Some(text)) => comments.push(text.to_owned()),
            (None, None) => panic!("neither data nor a comment: {line:?}"),
        }
    }
    (data, comments)
}

/// A response that is an error, held to the schema.
pub async fn error(response: Response) -> (u16, Value) {
    let status = response.status().as_u16();
    assert!(status >= 400, "{status}");
    let body: Value = response.json().await.unwrap();
    schemas::error(&body);
    (status, body["error"].clone())
}

/// A question.
pub fn question(text: &str) -> Value {
    json!({"model": "scripted", "messages": [{"role": "user", "content": text}]})
}
