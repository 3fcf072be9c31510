//! Does something with one server and prints what became of it.
//!
//! Invariant: no other server is started; the engine is closed however it ends.

use clap::Args;
use lectern_app::view::{Problem, ServerState, ServerView};
use lectern_app::{Engine, EngineOptions, Home};
use lectern_core::ServerId;
use serde_json::json;

use super::list;
use crate::exit::Exit;
use crate::interrupt::Interrupts;
use crate::output::data;

/// Which, and how it is printed.
#[derive(Debug, Args)]
pub struct One {
    /// The server
    pub name: String,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Starts the server, does it, and prints the server; `works` says whether it is as it was wanted.
pub async fn run(
    home: Home,
    asked: One,
    act: impl AsyncFnOnce(&Engine, &ServerId) -> Result<ServerView, Problem>,
    works: impl FnOnce(&ServerState) -> bool,
) -> Result<Exit, Problem> {
    let cancel = Interrupts::listen().next();
    let id = ServerId::from(asked.name.as_str());
    let options = EngineOptions { only: Some(id.clone()), ..EngineOptions::default() };
    let engine = Engine::open(home, options)?;
    let acting = async {
        engine.servers_ready().await;
        act(&engine, &id).await
    };
    let done = tokio::select! {
        done = acting => Some(done),
        () = cancel.cancelled() => None,
    };
    engine.shutdown().await;
    let Some(server) = done.transpose()? else { return Ok(Exit::Cancelled) };
    if asked.json {
        data(&json!({"server": server}).to_string());
    } else {
        list::print(&server);
    }
    Ok(if works(&server.state) { Exit::Done } else { Exit::Failed })
}
