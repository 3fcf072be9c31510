//! `lectern mcp login` and `logout`: signs the user in to a remote server, and out.
//!
//! The tokens go to the system's keyring, where every later start of Lectern finds them.

use lectern_app::view::{Problem, ServerState, ServerView};
use lectern_app::{Engine, Home};
use lectern_core::ServerId;

use super::one::{self, One};
use crate::exit::Exit;

/// Opens the browser, waits for the user, and says what became of the server.
pub async fn sign_in(home: Home, asked: One) -> Result<Exit, Problem> {
    let go = async |engine: &Engine, id: &ServerId| {
        engine.sign_in(id).await?;
        after(engine, id).await
    };
    one::run(home, asked, go, |state| !matches!(state, ServerState::Failed { .. })).await
}

/// Forgets the tokens.
pub async fn sign_out(home: Home, asked: One) -> Result<Exit, Problem> {
    let go = async |engine: &Engine, id: &ServerId| {
        engine.sign_out(id).await?;
        after(engine, id).await
    };
    one::run(home, asked, go, |_| true).await
}

async fn after(engine: &Engine, id: &ServerId) -> Result<ServerView, Problem> {
    engine.servers_ready().await;
    engine.server(id)
}
