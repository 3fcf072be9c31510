//! `lectern mcp add`: adds a server to the settings.

use clap::Args;
use lectern_app::Home;
use lectern_app::view::Problem;

use super::unfinished;
use crate::exit::Exit;

/// Which, and how it is printed.
#[derive(Debug, Args)]
pub struct Add {
    /// The server
    pub name: String,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Does it.
pub async fn run(_home: Home, _asked: Add) -> Result<Exit, Problem> {
    Err(unfinished("add"))
}
