//! `lectern mcp export`: prints servers in the shape that other hosts read.

use clap::Args;
use lectern_app::Home;
use lectern_app::view::Problem;

use super::unfinished;
use crate::exit::Exit;

/// Which, and how it is printed.
#[derive(Debug, Args)]
pub struct Export {
    /// These servers only
    pub names: Vec<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Does it.
pub async fn run(_home: Home, _asked: Export) -> Result<Exit, Problem> {
    Err(unfinished("export"))
}
