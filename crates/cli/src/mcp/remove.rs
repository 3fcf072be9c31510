//! `lectern mcp remove`: takes a server out of the settings.

use clap::Args;
use lectern_app::Home;
use lectern_app::view::Problem;

use super::unfinished;
use crate::exit::Exit;

/// Which, and how it is printed.
#[derive(Debug, Args)]
pub struct Remove {
    /// The server
    pub name: String,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Does it.
pub async fn run(_home: Home, _asked: Remove) -> Result<Exit, Problem> {
    Err(unfinished("remove"))
}
