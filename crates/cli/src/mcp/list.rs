//! `lectern mcp list`: starts the servers and shows their states and tools.

use clap::Args;
use lectern_app::view::{Problem, ServerView};
use lectern_app::{Engine, Home};
use serde_json::json;

use crate::args::Servers;
use crate::exit::Exit;
use crate::interrupt::Interrupts;
use crate::output::{data, one_line, printable};
use crate::servers::{failed, options, state};

/// Which servers, and how they are printed.
#[derive(Debug, Args)]
pub struct List {
    #[command(flatten)]
    pub with: Servers,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Starts the servers and lists them.
pub async fn run(home: Home, asked: List) -> Result<Exit, Problem> {
    let cancel = Interrupts::listen().next();
    let engine = Engine::open(home, options(asked.with))?;
    let ready = tokio::select! {
        () = async { engine.servers_ready().await; engine.servers_counted().await } => true,
        () = cancel.cancelled() => false,
    };
    let servers = engine.servers();
    engine.shutdown().await;
    if !ready {
        return Ok(Exit::Cancelled);
    }
    if asked.json {
        data(&json!({ "servers": servers }).to_string());
    } else {
        for server in &servers {
            print(server);
        }
    }
    Ok(if servers.iter().any(failed) { Exit::Failed } else { Exit::Done })
}

/// A server on a few lines.
pub fn print(server: &ServerView) {
    let reported = server.reported.as_deref().map(|text| format!(" ({text})")).unwrap_or_default();
    data(&printable(&format!("{}{reported}: {}", server.id, state(&server.state))));
    data(&printable(&format!("  {}", server.command)));
    for tool in &server.tools {
        let spec = &tool.spec;
        data(&format!("  {}  {}", one_line(spec.name.as_str(), 64), one_line(&spec.description, 100)));
    }
}
