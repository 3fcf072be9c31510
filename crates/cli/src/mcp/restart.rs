//! `lectern mcp restart`: starts one server anew and says what becomes of it.
//!
//! A server belongs to the process that started it: this one starts the server, waits until it is ready or has failed,
//! starts it a second time, and ends it. An open window restarts its own servers itself.

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
pub struct Restart {
    /// The server
    pub name: String,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Does it.
pub async fn run(home: Home, asked: Restart) -> Result<Exit, Problem> {
    let cancel = Interrupts::listen().next();
    let options = EngineOptions { only: Some(asked.name.as_str().into()), ..EngineOptions::default() };
    let engine = Engine::open(home, options)?;
    let restarted = tokio::select! {
        restarted = restart(&engine, &asked.name) => Some(restarted),
        () = cancel.cancelled() => None,
    };
    engine.shutdown().await;
    let Some(server) = restarted.transpose()? else { return Ok(Exit::Cancelled) };
    if asked.json {
        data(&json!({"server": server}).to_string());
    } else {
        list::print(&server);
    }
    Ok(if failed(&server) { Exit::Failed } else { Exit::Done })
}

async fn restart(engine: &Engine, name: &str) -> Result<ServerView, Problem> {
    let id = name.into();
    engine.servers_ready().await;
    let before = engine.server(&id)?;
    if !failed(&before) {
        let mut news = engine.subscribe();
        engine.restart_server(&id)?;
        // Its start is counted before anybody can see it as starting.
        while engine.server(&id)?.starts <= before.starts {
            if news.next().await.is_none() {
                break;
            }
        }
        engine.servers_ready().await;
    }
    engine.server(&id)
}
