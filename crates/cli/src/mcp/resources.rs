//! `lectern mcp resources`: lists the resources of the servers, or reads one.

use clap::Args;
use lectern_app::Home;
use lectern_app::view::Problem;

use super::unfinished;
use crate::exit::Exit;

/// Which, and how it is printed.
#[derive(Debug, Args)]
pub struct Resources {
    /// One server only
    pub name: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Does it.
pub async fn run(_home: Home, _asked: Resources) -> Result<Exit, Problem> {
    Err(unfinished("resources"))
}
