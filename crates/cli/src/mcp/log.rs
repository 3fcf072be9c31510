//! `lectern mcp log`: what a server wrote to its log.

use clap::Args;
use lectern_app::Home;
use lectern_app::view::Problem;

use super::unfinished;
use crate::exit::Exit;

/// Which, and how it is printed.
#[derive(Debug, Args)]
pub struct Log {
    /// The server
    pub name: String,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Does it.
pub async fn run(_home: Home, _asked: Log) -> Result<Exit, Problem> {
    Err(unfinished("log"))
}
