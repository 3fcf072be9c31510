//! All servers together, as one provider of tools.
//!
//! Invariant: no method that is not `async` ever waits for a server.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use futures::future::{BoxFuture, FutureExt, join_all};
use lectern_core::{
    CallContext, JsonObject, ServerId, ToolCall, ToolName, ToolOutcome, ToolProvider, ToolResult, ToolSpec,
};
use tokio::sync::broadcast;

use crate::auth::Browser;
use crate::call;
use crate::config::{HostOptions, Root, ServerConfig};
use crate::log::LogPage;
use crate::server::{Follower, Live, Server, SignInError};
use crate::status::ServerStatus;
use crate::traffic::TrafficPage;
use crate::trust::masked_arguments;

/// News that may wait for a slow listener.
const NEWS_BACKLOG: usize = 1_024;

/// There is no server with this id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no MCP server `{0}`")]
pub struct UnknownServer(pub ServerId);

/// The MCP host.
///
/// Dropping it ends all servers the hard way; [`Host::close`] asks them first.
pub struct Host {
    pub(crate) options: Arc<HostOptions>,
    servers: RwLock<Vec<Arc<Server>>>,
    shared: Arc<Shared>,
}

struct Shared {
    news: broadcast::Sender<ServerStatus>,
    catalog: Mutex<Catalog>,
}

/// The tools of all servers, put together when somebody asks.
#[derive(Default)]
struct Catalog {
    of_server: HashMap<ServerId, Arc<[ToolSpec]>>,
    merged: Option<Merged>,
}

struct Merged {
    specs: Arc<[ToolSpec]>,
    servers: HashMap<ToolName, ServerId>,
}

impl Host {
    /// Takes servers into care and starts all that are not disabled, side by side. Returns at once.
    ///
    /// Must be called within a tokio runtime.
    pub fn start(configs: impl IntoIterator<Item = ServerConfig>, options: HostOptions) -> Self {
        let shared = Arc::new(Shared { news: broadcast::channel(NEWS_BACKLOG).0, catalog: Mutex::default() });
        let host = Self { options: Arc::new(options), servers: RwLock::default(), shared };
        for config in configs {
            host.put(config);
        }
        host
    }

    /// A host for one server of this one, as a process of its own that works in another folder and knows no other: the folder
    /// is its only root, and what `${LECTERN_WORKSPACE}` means. The server is started.
    pub fn beside(&self, config: ServerConfig, folder: &Path, root: Root) -> Self {
        let options = HostOptions {
            workspace: Some(folder.to_owned()),
            roots: vec![root].into(),
            // The files belong to the processes of this host.
            log_dir: None,
            traffic_dir: None,
            asker: None,
            ..HostOptions::clone(&self.options)
        };
        Self::start([config], options)
    }

    /// Adds a server, or replaces the one with the same id, and starts it unless it is disabled.
    pub async fn set(&self, config: ServerConfig) {
        // The old process ends before the new one begins: they may want the same files.
        if let Ok(old) = self.server(&config.id) {
            old.close().await;
        }
        self.put(config);
    }

    /// Ends a server and forgets it.
    pub async fn remove(&self, id: &ServerId) -> Result<(), UnknownServer> {
        let server = self.server(id)?;
        server.close().await;
        self.write_servers(|servers| servers.retain(|other| other.id() != id));
        self.shared.catalog().forget(id);
        Ok(())
    }

    /// Starts a server that is stopped or failed.
    pub fn start_server(&self, id: &ServerId) -> Result<(), UnknownServer> {
        self.server(id).map(|server| server.start())
    }

    /// Ends a server's process, if there is one, and starts it anew.
    pub fn restart(&self, id: &ServerId) -> Result<(), UnknownServer> {
        self.server(id).map(|server| server.restart())
    }

    /// Lists a server's tools again and asks the [`crate::Approval`] about each; the process stays as it is.
    pub fn review(&self, id: &ServerId) -> Result<(), UnknownServer> {
        self.server(id).map(|server| server.review())
    }

    /// Starts a remote server anew and lets the user sign in on the way, if it wants that. Returns when it is ready.
    pub async fn sign_in(&self, id: &ServerId, browser: Arc<dyn Browser>) -> Result<(), SignInError> {
        self.server(id)?.sign_in(browser).await
    }

    /// Forgets the tokens for a remote server and starts it anew without them.
    pub async fn sign_out(&self, id: &ServerId) -> Result<(), SignInError> {
        self.server(id)?.sign_out().await
    }

    /// Ends a server's process until it is started again.
    pub async fn stop(&self, id: &ServerId) -> Result<(), UnknownServer> {
        self.server(id)?.stop().await;
        Ok(())
    }

    /// Other folders for servers that ask, from now on; those that run are told.
    pub fn set_roots(&self, roots: Vec<Root>) {
        if self.options.roots.set(roots) {
            self.all().iter().for_each(|server| server.roots_changed());
        }
    }

    /// All servers as they are now, in the order of the settings.
    pub fn statuses(&self) -> Vec<ServerStatus> {
        self.all().iter().map(|server| server.status()).collect()
    }

    /// One server as it is now.
    pub fn status(&self, id: &ServerId) -> Result<ServerStatus, UnknownServer> {
        self.server(id).map(|server| server.status())
    }

    /// A server's configuration.
    pub fn config(&self, id: &ServerId) -> Result<ServerConfig, UnknownServer> {
        self.server(id).map(|server| server.config().clone())
    }

    /// Every change of a server from now on. Who is too slow misses some, and looks at [`Host::statuses`].
    pub fn subscribe(&self) -> broadcast::Receiver<ServerStatus> {
        self.shared.news.subscribe()
    }

    /// The last lines of a server's stderr and log, oldest first, secrets masked.
    pub fn log_tail(&self, id: &ServerId, lines: usize) -> Result<Vec<String>, UnknownServer> {
        self.server(id).map(|server| server.log().tail(lines))
    }

    /// The lines of a server's stderr and log after this number (0: all that are kept), secrets masked.
    pub fn log(&self, id: &ServerId, after: u64) -> Result<LogPage, UnknownServer> {
        self.server(id).map(|server| server.log().after(after))
    }

    /// The messages of a server after this number (0: all that are kept), both ways, secrets masked.
    pub fn traffic(&self, id: &ServerId, after: u64) -> Result<TrafficPage, UnknownServer> {
        self.server(id).map(|server| server.traffic().after(after))
    }

    /// A server that answers.
    pub(crate) fn live(&self, id: &ServerId) -> Option<Live> {
        self.server(id).ok()?.live()
    }

    /// Waits until no server is starting any more.
    pub async fn settled(&self) {
        join_all(self.all().iter().map(|server| server.settled())).await;
    }

    /// Waits until no server is starting any more, and the resources and prompts of those that run are counted. A server
    /// that does not answer is waited for with the limit of a list.
    pub async fn counted(&self) {
        join_all(self.all().iter().map(|server| server.counted())).await;
    }

    /// Ends all servers: first asked, then told, then killed with all that they started.
    pub async fn close(&self) {
        join_all(self.all().iter().map(|server| server.close())).await;
    }

    fn put(&self, config: ServerConfig) {
        let id = config.id.clone();
        let follower = Arc::clone(&self.shared) as Arc<dyn Follower>;
        let (server, inbox) = Server::new(config, Arc::clone(&self.options), follower);
        let put = Arc::clone(&server);
        self.write_servers(|servers| match servers.iter_mut().find(|other| *other.id() == id) {
            Some(old) => std::mem::replace(old, put).abandon(),
            None => servers.push(put),
        });
        server.launch(inbox);
    }

    pub(crate) fn server(&self, id: &ServerId) -> Result<Arc<Server>, UnknownServer> {
        let found = self.all().into_iter().find(|server| server.id() == id);
        found.ok_or_else(|| UnknownServer(id.clone()))
    }

    fn all(&self) -> Vec<Arc<Server>> {
        self.servers.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn write_servers(&self, change: impl FnOnce(&mut Vec<Arc<Server>>)) {
        change(&mut self.servers.write().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.all().iter().for_each(|server| server.abandon());
    }
}

impl ToolProvider for Host {
    fn tools(&self) -> Arc<[ToolSpec]> {
        Arc::clone(&self.shared.catalog().merged().specs)
    }

    fn withheld(&self, tool: &ToolName) -> Option<String> {
        let withheld =
            |server: &Arc<Server>| server.status().unseen.iter().find_map(|review| review.withheld(tool));
        self.all().iter().find_map(withheld)
    }

    fn masked(&self, call: &ToolCall) -> JsonObject {
        let id = self.shared.catalog().merged().servers.get(&call.tool).cloned();
        let server = id.and_then(|id| self.server(&id).ok());
        let mask = server.map(|server| server.mask().clone()).unwrap_or_default();
        masked_arguments(&mask, &call.arguments)
    }

    fn call(&self, call: ToolCall, context: CallContext) -> BoxFuture<'static, ToolResult> {
        let id = self.shared.catalog().merged().servers.get(&call.tool).cloned();
        match id.and_then(|id| self.server(&id).ok()) {
            Some(server) => call::run(server, call, context).boxed(),
            None => {
                let text = format!("there is no tool `{}`", call.tool);
                std::future::ready(ToolResult::of(&call, ToolOutcome::Failed, text)).boxed()
            }
        }
    }
}

impl Shared {
    // A std mutex: nothing awaits while it is held.
    fn catalog(&self) -> MutexGuard<'_, Catalog> {
        self.catalog.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Follower for Shared {
    fn becoming(&self, status: &ServerStatus) {
        self.catalog().set(status);
    }

    fn became(&self, status: ServerStatus) {
        // Nobody may be listening.
        let _ = self.news.send(status);
    }
}

impl Catalog {
    fn set(&mut self, status: &ServerStatus) {
        let known = self.of_server.get(&status.id);
        if known.is_none_or(|known| !Arc::ptr_eq(known, &status.tools)) {
            self.of_server.insert(status.id.clone(), Arc::clone(&status.tools));
            self.merged = None;
        }
    }

    fn forget(&mut self, id: &ServerId) {
        self.of_server.remove(id);
        self.merged = None;
    }

    fn merged(&mut self) -> &Merged {
        let of_server = &self.of_server;
        self.merged.get_or_insert_with(|| {
            let mut specs: Vec<ToolSpec> =
                of_server.values().flat_map(|specs| specs.iter().cloned()).collect();
            specs.sort_by(|a, b| a.name.cmp(&b.name));
            let servers = specs.iter().map(|spec| (spec.name.clone(), spec.server.clone())).collect();
            Merged { specs: specs.into(), servers }
        })
    }
}
