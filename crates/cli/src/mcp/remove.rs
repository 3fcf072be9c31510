//! `lectern mcp remove`: takes servers out of the settings.

use clap::Args;
use lectern_app::view::Problem;
use lectern_app::{Engine, EngineOptions, Home};
use serde_json::json;

use crate::exit::Exit;
use crate::output::data;

/// Which, and how it is printed.
#[derive(Debug, Args)]
pub struct Remove {
    /// The servers
    #[arg(required = true)]
    pub names: Vec<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Removes them, and the secrets that only they used.
pub async fn run(home: Home, asked: Remove) -> Result<Exit, Problem> {
    let engine = Engine::open(home, EngineOptions { without_servers: true, ..EngineOptions::default() })?;
    let removed = remove(&engine, &asked).await;
    engine.shutdown().await;
    removed
}

async fn remove(engine: &Engine, asked: &Remove) -> Result<Exit, Problem> {
    for name in &asked.names {
        engine.remove_server(&name.as_str().into()).await?;
        if !asked.json {
            data(&format!("removed {name}"));
        }
    }
    if asked.json {
        data(&json!({"removed": asked.names}).to_string());
    }
    Ok(Exit::Done)
}
