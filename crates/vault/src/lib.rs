//! The notes server: an MCP server over a folder of Markdown notes, for Lectern and any other host.
//! Invariant: never reads or writes outside its folder, never overwrites, and writes nothing to stdout but the protocol.
//!
//! [`serve_stdio`] is the whole server. Below it, from the wire to the disk: `wire` and [`server`] speak MCP,
//! [`tools`], [`calls`] and [`resources`] are what it offers, [`notes`] joins the files ([`vault`], [`path`],
//! [`resolve`], [`note`], `content`) and the search ([`indexer`], [`index`], [`query`], [`search`], [`window`], [`text`],
//! [`language`]).

use std::path::Path;

use rmcp::ServiceExt;
use rmcp::service::ServerInitializeError;
use tokio::io::{AsyncRead, AsyncWrite};

pub mod calls;
mod content;
pub mod index;
pub mod indexer;
pub mod language;
pub mod note;
pub mod notes;
pub mod path;
pub mod query;
pub mod resolve;
pub mod resources;
pub mod search;
pub mod server;
pub mod text;
pub mod tools;
pub mod vault;
pub mod window;
mod wire;

use notes::{Notes, StartError};
use server::NotesServer;

/// How to serve a vault.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct ServeOptions {}

/// The server could not start, or ended other than by the client closing it.
#[derive(Debug, thiserror::Error)]
pub enum VaultError {
    /// The folder cannot be served.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The client did not speak MCP.
    #[error("begin the session with the client")]
    Session(#[source] Box<ServerInitializeError>),
    /// The session's task ended.
    #[error("serve the client")]
    Ended(#[source] tokio::task::JoinError),
}

/// Serves the notes of a folder over stdin and stdout until the client closes stdin.
///
/// # Errors
/// When the folder cannot be opened or the session breaks.
pub async fn serve_stdio(vault_dir: &Path, options: ServeOptions) -> Result<(), VaultError> {
    let (input, output) = rmcp::transport::stdio_pipes();
    serve(vault_dir, options, input, output).await
}

/// Serves the notes of a folder over a pair of streams.
///
/// # Errors
/// When the folder cannot be opened or the session breaks.
pub async fn serve(
    vault_dir: &Path,
    _options: ServeOptions,
    input: impl AsyncRead + Send + Unpin + 'static,
    output: impl AsyncWrite + Send + Unpin + 'static,
) -> Result<(), VaultError> {
    let server = NotesServer::new(Notes::open(vault_dir)?);
    let running = match server.clone().serve((wire::tidy(input), output)).await {
        Ok(running) => running,
        // A client that only looked and left is no failure.
        Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => return Err(VaultError::Session(Box::new(error))),
    };
    let forwarding = tokio::spawn(server.forward_changes(running.peer().clone()));
    let ended = running.waiting().await;
    forwarding.abort();
    ended.map(drop).map_err(VaultError::Ended)
}
