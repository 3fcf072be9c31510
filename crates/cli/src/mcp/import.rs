//! `lectern mcp import`: takes servers over from another host's file.

use clap::Args;
use lectern_app::Home;
use lectern_app::view::Problem;

use super::unfinished;
use crate::exit::Exit;

/// Which, and how it is printed.
#[derive(Debug, Args)]
pub struct Import {
    /// The file
    pub file: std::path::PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Does it.
pub async fn run(_home: Home, _asked: Import) -> Result<Exit, Problem> {
    Err(unfinished("import"))
}
