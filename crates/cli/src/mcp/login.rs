//! `lectern mcp login` and `logout`: signs the user in to a remote server, and out.
//!
//! The tokens go to the system's keyring, where every later start of Lectern finds them.

use clap::Args;
use lectern_app::view::{Problem, ServerView};
use lectern_app::{Engine, EngineOptions, Home};
use serde_json::json;

use super::list;
use crate::exit::Exit;
use crate::interrupt::Interrupts;
use crate::output::data;
use crate::servers::failed;

/// Which, and how it is printed.
#[derive(Debug, Args)]
pub struct Login {
    /// The server
    pub name: String,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Opens the browser, waits for the user, and says what became of the server.
pub async fn sign_in(home: Home, asked: Login) -> Result<Exit, Problem> {
    run(home, asked, Way::In).await
}

/// Forgets the tokens.
pub async fn sign_out(home: Home, asked: Login) -> Result<Exit, Problem> {
    run(home, asked, Way::Out).await
}

#[derive(Clone, Copy)]
enum Way {
    In,
    Out,
}

async fn run(home: Home, asked: Login, way: Way) -> Result<Exit, Problem> {
    let cancel = Interrupts::listen().next();
    let options = EngineOptions { only: Some(asked.name.as_str().into()), ..EngineOptions::default() };
    let engine = Engine::open(home, options)?;
    let done = tokio::select! {
        done = go(&engine, &asked.name, way) => Some(done),
        () = cancel.cancelled() => None,
    };
    engine.shutdown().await;
    let Some(server) = done.transpose()? else { return Ok(Exit::Cancelled) };
    if asked.json {
        data(&json!({"server": server}).to_string());
    } else {
        list::print(&server);
    }
    Ok(match way {
        Way::In if failed(&server) => Exit::Failed,
        Way::In | Way::Out => Exit::Done,
    })
}

async fn go(engine: &Engine, name: &str, way: Way) -> Result<ServerView, Problem> {
    let id = name.into();
    engine.servers_ready().await;
    match way {
        Way::In => engine.sign_in(&id).await?,
        Way::Out => engine.sign_out(&id).await?,
    }
    engine.servers_ready().await;
    engine.server(&id)
}
