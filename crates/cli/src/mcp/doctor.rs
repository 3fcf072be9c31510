//! `lectern mcp doctor`: which step of a server's start fails, and how to mend it.

use clap::Args;
use lectern_app::Home;
use lectern_app::view::Problem;

use super::unfinished;
use crate::exit::Exit;

/// Which, and how it is printed.
#[derive(Debug, Args)]
pub struct Doctor {
    /// One server only
    pub name: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Does it.
pub async fn run(_home: Home, _asked: Doctor) -> Result<Exit, Problem> {
    Err(unfinished("doctor"))
}
