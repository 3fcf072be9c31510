//! A running server: its process, its log, and the peer on its pipes.
//!
//! Invariant: stderr is drained as long as the process lives, and closing leaves no process behind.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::BufReader;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::config::{HostOptions, ServerConfig};
use crate::log::ServerLog;
use crate::lookup::{self, LookupError};
use crate::peer::{Notice, Peer, PeerOptions};
use crate::process::{self, Launch, Process};
use crate::status::Exit;

/// Notices that may wait.
const NOTICE_BACKLOG: usize = 1_024;

/// Why a process could not be started.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    #[error(transparent)]
    Lookup(#[from] LookupError),
    #[error("the working folder `{0}` does not exist")]
    NoFolder(String),
    #[error("start `{command}`")]
    Spawn { command: String, source: std::io::Error },
}

/// A running server.
pub(crate) struct Connection {
    pub(crate) peer: Peer,
    pub(crate) process: Process,
    pub(crate) notices: mpsc::Receiver<Notice>,
    stderr: JoinHandle<()>,
}

impl Connection {
    /// Starts the process and listens to it.
    pub(crate) async fn open(
        config: &ServerConfig,
        options: &HostOptions,
        log: &Arc<ServerLog>,
    ) -> Result<Self, OpenError> {
        if let Some(cwd) = config.cwd.as_deref().filter(|cwd| !cwd.is_dir()) {
            return Err(OpenError::NoFolder(cwd.display().to_string()));
        }
        let own_path = config.env.get("PATH").map(std::ffi::OsString::from);
        let path = own_path.or_else(|| process::variable("PATH"));
        let cwd = config.cwd.as_ref().map(|cwd| std::path::absolute(cwd).unwrap_or_else(|_| cwd.clone()));
        let found = lookup::find(&config.command, cwd.as_deref(), path.as_deref()).await?;
        let launch = Launch {
            program: found.program,
            args: config.args.clone(),
            env: process::environment(found.path.as_deref(), &config.env),
            cwd,
        };
        log.begin(&format!("start {}", config.display_command()));
        let (process, pipes) = Process::start(launch)
            .await
            .map_err(|source| OpenError::Spawn { command: config.command.clone(), source })?;

        let (sender, notices) = mpsc::channel(NOTICE_BACKLOG);
        let roots = options.roots.iter().map(root).collect();
        let options = PeerOptions { max_message: options.max_message, roots, notices: sender };
        let peer = Peer::new(BufReader::with_capacity(64 << 10, pipes.stdout), pipes.stdin, options);
        let drained = Arc::clone(log);
        let stderr = tokio::spawn(async move { drained.drain(pipes.stderr).await });
        Ok(Self { peer, process, notices, stderr })
    }

    /// Ends the process and its group; returns how it ended.
    pub(crate) async fn close(self) -> Exit {
        self.peer.close();
        let exit = self.process.close().await;
        // What was written last is the most telling; a pipe that somebody else still holds is not waited for.
        let mut stderr = self.stderr;
        if tokio::time::timeout(Duration::from_millis(300), &mut stderr).await.is_err() {
            stderr.abort();
        }
        exit
    }
}

fn root(root: &crate::config::Root) -> serde_json::Value {
    match &root.name {
        Some(name) => serde_json::json!({"uri": root.uri, "name": name}),
        None => serde_json::json!({"uri": root.uri}),
    }
}
