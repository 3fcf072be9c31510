//! A server in this process, with a scripted model and scripted tools behind it.

use std::path::PathBuf;
use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt};
use lectern_api::{ApiOptions, Backend, Key, Keys, ModelCard, Server};
use lectern_app::Answering;
use lectern_app::view::Problem;
use lectern_core::testing::{Reply, ScriptedModel, ScriptedTools};
use lectern_core::{
    ChatModel, ConversationId, ExposurePolicy, ModelId, PermissionBook, Policy, Sampling, Store,
    ThinkingOptions, ToolMode, ToolProvider,
};
use reqwest::{Client, RequestBuilder, Response};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::schemas;

pub struct House {
    pub server: Server,
    pub key: Key,
    pub keys: Keys,
    pub model: Arc<ScriptedModel>,
    pub store: Store,
    pub client: Client,
}

/// What stands behind a server.
pub struct Scripted {
    pub model: Arc<ScriptedModel>,
    pub tools: Arc<dyn ToolProvider>,
    pub permissions: Arc<PermissionBook>,
    pub store: Store,
    pub folder: TempDir,
}

impl Backend for Scripted {
    fn models(&self) -> Vec<ModelCard> {
        vec![ModelCard { id: "scripted".into(), owned_by: "lectern".to_owned(), created: None }]
    }

    fn open(&self, _: Option<ModelId>) -> BoxFuture<'static, Result<Answering, Problem>> {
        let answering = Answering {
            others: Default::default(),
            id: "scripted".into(),
            model: Arc::clone(&self.model) as Arc<dyn ChatModel>,
            tool_mode: ToolMode::Native,
            sampling: Sampling { max_tokens: Some(99), ..Sampling::default() },
            thinking: ThinkingOptions::default(),
            exposure: ExposurePolicy::default(),
            system: None,
            largest_context: None,
            max_steps: 20,
            starter: false,
        };
        std::future::ready(Ok(answering)).boxed()
    }

    fn tools(&self) -> Arc<dyn ToolProvider> {
        Arc::clone(&self.tools)
    }

    fn tools_settled(&self) -> BoxFuture<'static, ()> {
        std::future::ready(()).boxed()
    }

    fn permissions(&self) -> Arc<PermissionBook> {
        Arc::clone(&self.permissions)
    }

    fn store(&self) -> Store {
        self.store.clone()
    }

    fn folder(&self) -> PathBuf {
        self.folder.path().join("api")
    }

    fn forget(&self, _: Vec<ConversationId>) -> BoxFuture<'static, ()> {
        std::future::ready(()).boxed()
    }
}

/// How a house is built.
pub struct Plan {
    pub model: ScriptedModel,
    pub tools: ScriptedTools,
    pub options: ApiOptions,
    pub key: Key,
    pub others: Vec<Key>,
}

impl Plan {
    pub fn of(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self {
            model: ScriptedModel::new(replies),
            tools: ScriptedTools::new(),
            options: ApiOptions::default(),
            key: Key::fresh("test"),
            others: Vec::new(),
        }
    }

    pub async fn build(self) -> House {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let model = Arc::new(self.model);
        let store = Store::in_memory().unwrap();
        let backend = Scripted {
            folder: tempfile::tempdir().unwrap(),
            model: Arc::clone(&model),
            tools: Arc::new(self.tools),
            permissions: Arc::new(PermissionBook::new(Policy::default())),
            store: store.clone(),
        };
        let keys = Keys::new([self.key.clone()].into_iter().chain(self.others));
        let server = Server::start(Arc::new(backend), keys.clone(), self.options).await.unwrap();
        let client = Client::builder().no_proxy().build().unwrap();
        House { server, key: self.key, keys, model, store, client }
    }
}

/// A house whose model plays these replies.
pub async fn house(replies: impl IntoIterator<Item = Reply>) -> House {
    Plan::of(replies).build().await
}

impl House {
    pub fn get(&self, path: &str) -> RequestBuilder {
        self.client.get(format!("{}{path}", self.server.url())).bearer_auth(self.key.secret())
    }

    pub fn post(&self, path: &str) -> RequestBuilder {
        self.client.post(format!("{}{path}", self.server.url())).bearer_auth(self.key.secret())
    }

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

/// The same with more fields.
pub fn with(mut body: Value, fields: Value) -> Value {
    for (name, value) in fields.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

/// A client's tool.
pub fn tool(name: &str) -> Value {
    let parameters = json!({"type": "object", "properties": {"city": {"type": "string"}}});
    json!({"type": "function", "function": {"name": name, "description": "x", "parameters": parameters}})
}
