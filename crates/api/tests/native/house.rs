//! What a house is asked at `/api`.

use lectern_core::Delta;
use lectern_core::testing::{Beat, Reply};
use reqwest::Response;
use serde_json::{Value, json};

pub use crate::scripted::{House, Plan, tool, with};

impl House {
    pub async fn ask(&self, body: &Value) -> Response {
        self.post("/api/chat/completions").json(body).send().await.unwrap()
    }

    /// A whole answer.
    pub async fn whole(&self, body: &Value) -> Value {
        let response = self.ask(body).await;
        let status = response.status();
        let body: Value = response.json().await.unwrap();
        assert_eq!(status, 200, "{body:#}");
        body
    }

    /// The frames of a stream, whose numbers have no gap.
    pub async fn stream(&self, body: &Value) -> Vec<Value> {
        let response = self.ask(body).await;
        assert_eq!(response.status(), 200, "{}", response.text().await.unwrap());
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        let (last, values) = parsed(&response.text().await.unwrap());
        assert!(last);
        for (number, value) in values.iter().enumerate() {
            assert_eq!(value["seq"], json!(number));
        }
        values
    }

    pub async fn call(&self, tool: &str, body: &Value) -> Response {
        self.post(&format!("/api/tools/{tool}")).json(body).send().await.unwrap()
    }

    /// What a tool said that was called alone.
    pub async fn called(&self, tool: &str, body: &Value) -> String {
        let response = self.call(tool, body).await;
        let status = response.status();
        let body: Value = response.json().await.unwrap();
        assert_eq!(status, 200, "{body:#}");
        body["result"]["content"].as_str().unwrap().to_owned()
    }
}

/// The frames of a stream, and whether `[DONE]` is the last one.
pub fn parsed(text: &str) -> (bool, Vec<Value>) {
    let data =
        text.split("\n\n").filter_map(|frame| frame.lines().find_map(|line| line.strip_prefix("data: ")));
    let mut data: Vec<&str> = data.collect();
    let done = data.last() == Some(&"[DONE]");
    if done {
        data.pop();
    }
    (done, data.into_iter().map(|data| serde_json::from_str(data).unwrap()).collect())
}

/// The types of frames.
pub fn kinds(values: &[Value]) -> Vec<&str> {
    values.iter().map(|value| value["type"].as_str().unwrap()).collect()
}

/// A response that is an error: its status and what it says, all of whose fields are there.
pub async fn error(response: Response) -> (u16, Value) {
    let status = response.status().as_u16();
    let body: Value = response.json().await.unwrap();
    assert!(status >= 400, "{status} {body:#}");
    for field in ["message", "type", "code", "param"] {
        assert!(body["error"].get(field).is_some(), "{body:#}");
    }
    (status, body["error"].clone())
}

/// A question that wants a stream.
pub fn ask(text: &str) -> Value {
    json!({"messages": [{"role": "user", "content": text}], "stream": true})
}

/// A question in a session that wants a whole answer.
pub fn question(text: &str, session: &str) -> Value {
    json!({"messages": [{"role": "user", "content": text}], "session_id": session})
}

/// Words, and then nothing for as long as anybody waits.
pub fn endless() -> Reply {
    let words = Beat::Delta(Delta::Text("Once upon a time".to_owned()));
    vec![words, Beat::Wait(std::time::Duration::from_secs(3_600))]
}

/// Waits for something that comes about by itself.
pub async fn until(mut is_so: impl FnMut() -> bool) {
    let waiting = async {
        while !is_so() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(60), waiting).await.expect("it never comes about");
}
