//! A running server: the peer, and what it lives on (a process with its pipes, or the way to an address).
//!
//! Invariant: stderr is drained as long as the process lives, and closing leaves no process behind.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::BufReader;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::auth::Browser;
use crate::config::{HostOptions, Program, ServerConfig, Transport};
use crate::desk::Desk;
use crate::http::{self, Loss, Remote, client::ClientError};
use crate::log::ServerLog;
use crate::lookup::{self, LookupError};
use crate::mask::Mask;
use crate::peer::{Notice, Peer, PeerOptions};
use crate::pipe;
use crate::process::{self, Launch, Pipes, Process};
use crate::status::Exit;
use crate::traffic::Traffic;

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
    #[error(transparent)]
    Address(#[from] ClientError),
}

/// Where a connection writes down what happens.
#[derive(Clone, Copy)]
pub(crate) struct Records<'a> {
    pub(crate) log: &'a Arc<ServerLog>,
    pub(crate) traffic: &'a Arc<Traffic>,
    pub(crate) mask: &'a Mask,
}

/// A running server.
pub(crate) struct Connection {
    pub(crate) peer: Peer,
    pub(crate) notices: mpsc::Receiver<Notice>,
    pub(crate) body: Body,
}

/// What a connection keeps alive.
pub(crate) enum Body {
    Process { process: Process, stderr: JoinHandle<()> },
    Remote(Remote),
}

impl Body {
    /// Returns when the server's process has ended by itself; never, if it is not ours.
    pub(crate) async fn ended(&mut self) -> Exit {
        match self {
            Self::Process { process, .. } => process.ended().await,
            Self::Remote(_) => std::future::pending().await,
        }
    }

    /// Lets the user sign in although the start went well without; says why nobody could.
    pub(crate) async fn visit(&self) -> Result<(), String> {
        match self {
            Self::Process { .. } => Ok(()),
            Self::Remote(remote) => remote.visit().await,
        }
    }

    /// The start is over: from here on the user signs in there, or not at all. Returns at whose door somebody signed in.
    pub(crate) async fn started(&self, browser: Option<Arc<dyn Browser>>) -> Option<String> {
        match self {
            Self::Process { .. } => None,
            Self::Remote(remote) => remote.started(browser).await,
        }
    }

    /// Why a remote server's connection ended by itself.
    pub(crate) fn loss(&self) -> Option<Loss> {
        match self {
            Self::Process { .. } => None,
            Self::Remote(remote) => remote.loss(),
        }
    }
}

impl Connection {
    /// Reaches the server: starts its process, or opens the way to its address, and listens.
    pub(crate) async fn open(
        config: &ServerConfig,
        options: &HostOptions,
        Records { log, traffic, mask }: Records<'_>,
    ) -> Result<Self, OpenError> {
        let (sender, notices) = mpsc::channel(NOTICE_BACKLOG);
        let desk = Desk::new(&config.id, options, mask.clone());
        let (peer, carrier) = Peer::new(PeerOptions { desk, notices: sender, traffic: Arc::clone(traffic) });
        let body = match &config.transport {
            Transport::Stdio(program) => {
                log.begin(&format!("start {}", config.display_command()));
                let (process, pipes) = start(program).await?;
                let stdout = BufReader::with_capacity(64 << 10, pipes.stdout);
                pipe::carry(carrier, stdout, pipes.stdin, options.max_message);
                let drained = Arc::clone(log);
                let stderr = tokio::spawn(async move { drained.drain(pipes.stderr).await });
                Body::Process { process, stderr }
            }
            Transport::Http(endpoint) => {
                log.begin(&format!("connect to {}", config.display_command()));
                Body::Remote(http::carry(carrier, endpoint, options)?)
            }
        };
        Ok(Self { peer, notices, body })
    }

    /// The process, unless the server is remote.
    pub(crate) fn pid(&self) -> Option<u32> {
        match &self.body {
            Body::Process { process, .. } => process.id(),
            Body::Remote(_) => None,
        }
    }

    /// Ends the process and its group; returns how it ended.
    pub(crate) async fn close(self) -> Exit {
        self.peer.close();
        match self.body {
            Body::Process { process, mut stderr } => {
                let exit = process.close().await;
                // What was written last is the most telling; a pipe that somebody else still holds is not waited for.
                if tokio::time::timeout(Duration::from_millis(300), &mut stderr).await.is_err() {
                    stderr.abort();
                }
                exit
            }
            Body::Remote(remote) => {
                remote.close().await;
                Exit::Unknown
            }
        }
    }
}

async fn start(program: &Program) -> Result<(Process, Pipes), OpenError> {
    if let Some(cwd) = program.cwd.as_deref().filter(|cwd| !cwd.is_dir()) {
        return Err(OpenError::NoFolder(cwd.display().to_string()));
    }
    let own_path = program.env.get("PATH").map(std::ffi::OsString::from);
    let path = own_path.or_else(|| process::variable("PATH"));
    let cwd = program.cwd.as_ref().map(|cwd| std::path::absolute(cwd).unwrap_or_else(|_| cwd.clone()));
    let found = lookup::find(&program.command, cwd.as_deref(), path.as_deref()).await?;
    let launch = Launch {
        program: found.program,
        args: program.args.clone(),
        env: process::environment(found.path.as_deref(), &program.env),
        cwd,
    };
    let spawned = Process::start(launch).await;
    spawned.map_err(|source| OpenError::Spawn { command: program.command.clone(), source })
}
