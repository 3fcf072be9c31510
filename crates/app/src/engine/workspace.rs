//! The tools as somebody sees them who works in a folder of their own: a session of the local API.
//!
//! A server that names `${LECTERN_WORKSPACE}` (as an argument, in its environment, as its working folder) is started once
//! more for that folder, at the first call; all others are the same for everybody.
//!
//! Invariant: two folders never share a process of such a server. What is started was approved as it stands in the settings.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use futures::FutureExt;
use futures::future::BoxFuture;
use lectern_core::{
    CallContext, JsonObject, ServerId, ToolCall, ToolName, ToolOutcome, ToolProvider, ToolResult, ToolSpec,
};
use lectern_mcp::placeholder::names_workspace;
use lectern_mcp::{Host, Root, ServerConfig};

use super::Engine;
use crate::vaults::file_uri;

impl Engine {
    /// The tools for who works in this folder. The servers that are started for it end when it is dropped.
    pub fn tools_in(&self, folder: &Path) -> ToolsIn {
        ToolsIn { main: Arc::clone(&self.0.host), folder: folder.to_owned(), own: Mutex::default() }
    }

    /// Whether a server has a process of its own for each folder.
    pub fn works_in_folders(&self, server: &ServerId) -> bool {
        self.0.host.config(server).is_ok_and(|config| names_workspace(&config))
    }
}

/// See [`Engine::tools_in`].
pub struct ToolsIn {
    main: Arc<Host>,
    folder: PathBuf,
    // A std mutex: nothing awaits while it is held.
    own: Mutex<HashMap<ServerId, Arc<Own>>>,
}

/// A server's process for this folder, and what it was started with.
struct Own {
    config: ServerConfig,
    host: Host,
}

impl ToolsIn {
    /// The process that has this tool, when it is one of this folder's own.
    fn own(&self, tool: &ToolName) -> Option<Arc<Own>> {
        let id = self.main.tools().iter().find(|spec| spec.name == *tool)?.server.clone();
        let config = self.main.config(&id).ok().filter(names_workspace)?;
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = own.get(&id).filter(|known| known.config == config) {
            return Some(Arc::clone(known));
        }
        let root = Root { uri: file_uri(&self.folder), name: Some("workspace".to_owned()) };
        let host = self.main.beside(config.clone(), &self.folder, root);
        let fresh = Arc::new(Own { config, host });
        own.insert(id, Arc::clone(&fresh));
        Some(fresh)
    }
}

impl ToolProvider for ToolsIn {
    fn tools(&self) -> Arc<[ToolSpec]> {
        self.main.tools()
    }

    fn withheld(&self, tool: &ToolName) -> Option<String> {
        self.main.withheld(tool)
    }

    fn masked(&self, call: &ToolCall) -> JsonObject {
        self.main.masked(call)
    }

    fn call(&self, call: ToolCall, context: CallContext) -> BoxFuture<'static, ToolResult> {
        let Some(own) = self.own(&call.tool) else { return self.main.call(call, context) };
        async move {
            tokio::select! {
                () = own.host.settled() => own.host.call(call, context).await,
                () = context.cancel.cancelled() => {
                    ToolResult::of(&call, ToolOutcome::Cancelled, "The server was still starting.")
                }
            }
        }
        .boxed()
    }
}
