//! `lectern mcp export`: prints servers in the shape that other hosts read.

use clap::Args;
use lectern_app::view::Problem;
use lectern_app::{Engine, EngineOptions, Home, Shape};
use lectern_core::ServerId;

use crate::exit::Exit;
use crate::output::data;

/// Which, and whose shape.
#[derive(Debug, Args)]
pub struct Export {
    /// These servers only
    pub names: Vec<String>,
    /// In the shape of VS Code (`servers` and `inputs`) instead of `mcpServers`
    #[arg(long)]
    pub vscode: bool,
    /// Print JSON; it is never anything else
    #[arg(long)]
    pub json: bool,
}

/// Prints them; secrets are references.
pub async fn run(home: Home, asked: Export) -> Result<Exit, Problem> {
    let engine = Engine::open(home, EngineOptions { without_servers: true, ..EngineOptions::default() })?;
    let ids: Vec<ServerId> = asked.names.iter().map(|name| name.as_str().into()).collect();
    let shape = if asked.vscode { Shape::VsCode } else { Shape::McpServers };
    let text = engine.export_servers(&ids, shape);
    engine.shutdown().await;
    data(&text?);
    Ok(Exit::Done)
}
