//! A server in this process, with a scripted model, and scripted tools or real servers behind it, for all tests here.

mod described;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use futures::future::{BoxFuture, FutureExt};
use lectern_api::{ApiOptions, Backend, Key, Keys, ModelCard, Server};
use lectern_app::view::Problem;
use lectern_app::{Answering, Engine};
use lectern_core::testing::{Reply, ScriptedModel, ScriptedTools};
use lectern_core::{
    ChatModel, ConversationId, ExposurePolicy, ModelId, PermissionBook, Policy, Sampling, ServerId, Store,
    ThinkingOptions, ToolMode, ToolProvider,
};
use reqwest::{Client, RequestBuilder};
use serde_json::{Value, json};
use tempfile::TempDir;

pub use described::Described;

pub struct House {
    pub server: Server,
    pub key: Key,
    pub keys: Keys,
    pub model: Arc<ScriptedModel>,
    pub tools: Arc<ScriptedTools>,
    pub store: Store,
    pub client: Client,
    pub folder: Arc<TempDir>,
    pub forgotten: Arc<Mutex<Vec<ConversationId>>>,
}

/// What stands behind a server.
struct Scripted {
    model: Arc<ScriptedModel>,
    tools: Arc<ScriptedTools>,
    /// Real servers in place of the scripted tools.
    engine: Option<Engine>,
    permissions: Arc<PermissionBook>,
    store: Store,
    folder: Arc<TempDir>,
    forgotten: Arc<Mutex<Vec<ConversationId>>>,
}

impl Backend for Scripted {
    fn models(&self) -> Vec<ModelCard> {
        vec![ModelCard { id: "scripted".into(), owned_by: "lectern".to_owned(), created: None }]
    }

    fn open(&self, _: Option<ModelId>) -> BoxFuture<'static, Result<Answering, Problem>> {
        let answering = Answering {
            id: "scripted".into(),
            model: Arc::clone(&self.model) as Arc<dyn ChatModel>,
            tool_mode: ToolMode::Native,
            sampling: Sampling { max_tokens: Some(99), ..Sampling::default() },
            thinking: ThinkingOptions::default(),
            others: Default::default(),
            exposure: ExposurePolicy::default(),
            system: None,
            largest_context: None,
            max_steps: 20,
            starter: false,
        };
        std::future::ready(Ok(answering)).boxed()
    }

    fn tools(&self) -> Arc<dyn ToolProvider> {
        match &self.engine {
            Some(engine) => engine.tool_provider(),
            None => Arc::clone(&self.tools) as Arc<dyn ToolProvider>,
        }
    }

    fn tools_in(&self, folder: &Path) -> Arc<dyn ToolProvider> {
        match &self.engine {
            Some(engine) => Arc::new(engine.tools_in(folder)),
            None => self.tools(),
        }
    }

    fn works_in_folders(&self, server: &ServerId) -> bool {
        self.engine.as_ref().is_some_and(|engine| engine.works_in_folders(server))
    }

    fn tools_settled(&self) -> BoxFuture<'static, ()> {
        let engine = self.engine.clone();
        async move {
            if let Some(engine) = engine {
                engine.servers_settled().await;
            }
        }
        .boxed()
    }

    fn permissions(&self) -> Arc<PermissionBook> {
        self.engine.as_ref().map_or_else(|| Arc::clone(&self.permissions), Engine::permissions)
    }

    fn store(&self) -> Store {
        self.store.clone()
    }

    fn folder(&self) -> PathBuf {
        self.folder.path().join("api")
    }

    fn forget(&self, gone: Vec<ConversationId>) -> BoxFuture<'static, ()> {
        self.forgotten.lock().unwrap().extend(gone);
        std::future::ready(()).boxed()
    }
}

/// How a house is built.
pub struct Plan {
    pub model: ScriptedModel,
    pub tools: ScriptedTools,
    pub engine: Option<Engine>,
    pub options: ApiOptions,
    pub key: Key,
    pub others: Vec<Key>,
    /// What an earlier house left.
    pub folder: Option<Arc<TempDir>>,
}

impl Plan {
    pub fn of(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self {
            model: ScriptedModel::new(replies),
            tools: ScriptedTools::new(),
            engine: None,
            options: ApiOptions::default(),
            key: Key::fresh("test"),
            others: Vec::new(),
            folder: None,
        }
    }

    pub async fn build(self) -> House {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let (model, tools) = (Arc::new(self.model), Arc::new(self.tools));
        let store = match &self.engine {
            Some(engine) => engine.store().clone(),
            None => Store::in_memory().unwrap(),
        };
        let folder = self.folder.unwrap_or_else(|| Arc::new(tempfile::tempdir().unwrap()));
        let forgotten = Arc::default();
        let backend = Scripted {
            model: Arc::clone(&model),
            tools: Arc::clone(&tools),
            engine: self.engine,
            permissions: Arc::new(PermissionBook::new(Policy::default())),
            store: store.clone(),
            folder: Arc::clone(&folder),
            forgotten: Arc::clone(&forgotten),
        };
        let keys = Keys::new([self.key.clone()].into_iter().chain(self.others));
        let server = Server::start(Arc::new(backend), keys.clone(), self.options).await.unwrap();
        let client = Client::builder().no_proxy().build().unwrap();
        House { server, key: self.key, keys, model, tools, store, client, folder, forgotten }
    }
}

impl House {
    /// What the server says about itself.
    pub async fn described(&self) -> Described {
        Described::at(&self.server.url(), &self.client).await
    }

    pub fn get(&self, path: &str) -> RequestBuilder {
        self.client.get(format!("{}{path}", self.server.url())).bearer_auth(self.key.secret())
    }

    pub fn post(&self, path: &str) -> RequestBuilder {
        self.client.post(format!("{}{path}", self.server.url())).bearer_auth(self.key.secret())
    }

    pub fn delete(&self, path: &str) -> RequestBuilder {
        self.client.delete(format!("{}{path}", self.server.url())).bearer_auth(self.key.secret())
    }
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
