//! `lectern mcp prompts`: lists the prompts of the servers, or gets one.

use clap::Args;
use lectern_app::Home;
use lectern_app::view::Problem;

use super::unfinished;
use crate::exit::Exit;

/// Which, and how it is printed.
#[derive(Debug, Args)]
pub struct Prompts {
    /// One server only
    pub name: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Does it.
pub async fn run(_home: Home, _asked: Prompts) -> Result<Exit, Problem> {
    Err(unfinished("prompts"))
}
