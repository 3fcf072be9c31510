//! `lectern mcp`: the MCP servers from the terminal.
//!
//! Invariant: one file per subcommand, with its arguments and what it prints; what it does is the engine's.

mod add;
mod approve;
mod doctor;
mod export;
mod import;
mod list;
mod log;
mod login;
mod one;
mod preview;
mod probe;
mod prompts;
mod remove;
mod resources;
mod restart;
pub mod secret;

use clap::Subcommand;
use lectern_app::Home;
use lectern_app::view::Problem;

use crate::exit::Exit;

/// What to do with the MCP servers.
#[derive(Debug, Subcommand)]
pub enum Mcp {
    /// Start them and list their states and tools
    List(list::List),
    /// Add a program or an address to the settings
    Add(add::Add),
    /// Look at what a server would run and at its changed tools, and approve them
    Approve(approve::Approve),
    /// Take a server out of the settings
    #[command(visible_alias = "rm")]
    Remove(remove::Remove),
    /// Take servers over from another host's file, after a look at what they would run
    Import(import::Import),
    /// Print servers in the shape that other hosts read
    Export(export::Export),
    /// The values behind ${secret:NAME} and ${input:ID}
    #[command(subcommand)]
    Secret(secret::Secret),
    /// Start one server anew and say what becomes of it
    Restart(one::One),
    /// Sign in to a remote server in the browser; the tokens go to the keyring
    Login(one::One),
    /// Sign out of a remote server
    Logout(one::One),
    /// Print what a server wrote to its log
    Log(log::Log),
    /// Check servers step by step and say how to mend what is broken
    Doctor(doctor::Doctor),
    /// Connect to one server, list what it has, make calls, and print each as a line of JSON
    Probe(probe::Probe),
    /// List the resources of the servers, or read one
    Resources(resources::Resources),
    /// List the prompts of the servers, or get one
    Prompts(prompts::Prompts),
}

/// Does what was asked.
pub async fn run(home: impl Fn() -> Result<Home, Problem>, mcp: Mcp) -> Result<Exit, Problem> {
    match mcp {
        Mcp::List(asked) => list::run(home()?, asked).await,
        Mcp::Add(asked) => add::run(home()?, asked).await,
        Mcp::Approve(asked) => approve::run(home()?, asked).await,
        Mcp::Remove(asked) => remove::run(home()?, asked).await,
        Mcp::Import(asked) => import::run(home()?, asked).await,
        Mcp::Export(asked) => export::run(home()?, asked).await,
        Mcp::Secret(asked) => secret::run(home()?, asked).await,
        Mcp::Restart(asked) => restart::run(home()?, asked).await,
        Mcp::Login(asked) => login::sign_in(home()?, asked).await,
        Mcp::Logout(asked) => login::sign_out(home()?, asked).await,
        Mcp::Log(asked) => log::run(home()?, asked).await,
        Mcp::Doctor(asked) => doctor::run(home()?, asked).await,
        Mcp::Probe(asked) => probe::run(home, asked).await,
        Mcp::Resources(asked) => resources::run(home()?, asked).await,
        Mcp::Prompts(asked) => prompts::run(home()?, asked).await,
    }
}
