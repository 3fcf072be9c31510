//! What the API is in front of: models, tools, permissions. The engine is one; tests have a scripted one.
//!
//! Invariant: nothing here knows HTTP.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::future::BoxFuture;
use lectern_app::view::Problem;
use lectern_app::{Answering, Engine};
use lectern_core::{ConversationId, ModelId, PermissionBook, ServerId, Store, ToolProvider};

/// What answers the requests.
pub trait Backend: Send + Sync {
    /// The models that can be asked, the one that answers by itself first.
    fn models(&self) -> Vec<ModelCard>;

    /// A model ready to be asked; none for the one that answers by itself.
    fn open(&self, id: Option<ModelId>) -> BoxFuture<'static, Result<Answering, Problem>>;

    /// The tools of the user's servers.
    fn tools(&self) -> Arc<dyn ToolProvider>;

    /// The same for who works in a folder: servers that work in folders have a process of their own for it.
    fn tools_in(&self, folder: &Path) -> Arc<dyn ToolProvider> {
        let _ = folder;
        self.tools()
    }

    /// Whether a server works in folders: what its tools say may depend on the folder, and name it.
    fn works_in_folders(&self, server: &ServerId) -> bool {
        let _ = server;
        false
    }

    /// Waits, within limits, until the servers have told their tools.
    fn tools_settled(&self) -> BoxFuture<'static, ()>;

    /// The standing permissions.
    fn permissions(&self) -> Arc<PermissionBook>;

    /// Where conversations of the window and the audit log are.
    fn store(&self) -> Store;

    /// Where the API keeps what is its own.
    fn folder(&self) -> PathBuf;

    /// Forgets what models keep of these conversations.
    fn forget(&self, conversations: Vec<ConversationId>) -> BoxFuture<'static, ()>;
}

/// A model as `/v1/models` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelCard {
    /// Its id.
    pub id: ModelId,
    /// Who has it: `lectern`, or the provider's id.
    pub owned_by: String,
    /// When its file was made, in seconds since 1970; none when there is no file.
    pub created: Option<u64>,
}

impl Backend for Engine {
    fn models(&self) -> Vec<ModelCard> {
        let views = self.answering_models().into_iter();
        views
            .filter(|view| !view.missing)
            .map(|view| ModelCard {
                owned_by: view.remote.map_or_else(|| "lectern".to_owned(), |remote| remote.provider.0),
                created: view.path.as_deref().and_then(file_time),
                id: view.id,
            })
            .collect()
    }

    fn open(&self, id: Option<ModelId>) -> BoxFuture<'static, Result<Answering, Problem>> {
        let engine = self.clone();
        Box::pin(async move { engine.answering(id.as_ref()).await })
    }

    fn tools(&self) -> Arc<dyn ToolProvider> {
        self.tool_provider()
    }

    fn tools_in(&self, folder: &Path) -> Arc<dyn ToolProvider> {
        Arc::new(Self::tools_in(self, folder))
    }

    fn works_in_folders(&self, server: &ServerId) -> bool {
        Self::works_in_folders(self, server)
    }

    fn tools_settled(&self) -> BoxFuture<'static, ()> {
        let engine = self.clone();
        Box::pin(async move { engine.servers_settled().await })
    }

    fn permissions(&self) -> Arc<PermissionBook> {
        Self::permissions(self)
    }

    fn store(&self) -> Store {
        Self::store(self).clone()
    }

    fn folder(&self) -> PathBuf {
        self.home().api()
    }

    fn forget(&self, conversations: Vec<ConversationId>) -> BoxFuture<'static, ()> {
        let engine = self.clone();
        Box::pin(async move { engine.forget_cached(&conversations).await })
    }
}

fn file_time(path: &str) -> Option<u64> {
    let changed = std::fs::metadata(path).ok()?.modified().ok()?;
    Some(changed.duration_since(std::time::UNIX_EPOCH).ok()?.as_secs())
}
