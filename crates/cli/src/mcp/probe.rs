//! `lectern mcp probe`: connects to one server, lists what it has and makes calls.

use clap::Args;
use lectern_app::Home;
use lectern_app::view::Problem;

use super::unfinished;
use crate::exit::Exit;

/// Which server, which calls.
#[derive(Debug, Args)]
pub struct Probe {
    /// Print JSON, one object per line
    #[arg(long)]
    pub json: bool,
    /// An address, or `-- COMMAND ARGS...`
    #[arg(required = true)]
    pub server: Vec<String>,
}

/// Does it. The home is opened only when it is needed.
pub async fn run(_home: impl Fn() -> Result<Home, Problem>, _asked: Probe) -> Result<Exit, Problem> {
    Err(unfinished("probe"))
}
