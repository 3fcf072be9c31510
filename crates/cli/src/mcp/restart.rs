//! `lectern mcp restart`: starts one server anew and says what becomes of it.
//!
//! A server belongs to the process that started it: this one starts the server, waits until it is ready or has failed,
//! starts it a second time, and ends it. An open window restarts its own servers itself.

use lectern_app::view::{Problem, ServerState, ServerView};
use lectern_app::{Engine, Home};
use lectern_core::ServerId;

use super::one::{self, One};
use crate::exit::Exit;

/// Does it. One that waits for the user does not run, and says for what it waits.
pub async fn run(home: Home, asked: One) -> Result<Exit, Problem> {
    let runs = |state: &ServerState| matches!(state, ServerState::Ready | ServerState::Degraded { .. });
    one::run(home, asked, restart, runs).await
}

async fn restart(engine: &Engine, id: &ServerId) -> Result<ServerView, Problem> {
    let before = engine.server(id)?;
    if may_start(&before.state) {
        let mut news = engine.subscribe();
        engine.restart_server(id)?;
        // Its start is counted before anybody can see it as starting.
        while engine.server(id).is_ok_and(|now| now.starts <= before.starts && may_start(&now.state)) {
            if news.next().await.is_none() {
                break;
            }
        }
        engine.servers_ready().await;
    }
    engine.server(id)
}

/// Whether a start comes to more than it came to just now.
fn may_start(state: &ServerState) -> bool {
    match state {
        ServerState::NeedsApproval | ServerState::Failed { .. } => false,
        ServerState::Stopped
        | ServerState::NeedsSignIn
        | ServerState::Starting { .. }
        | ServerState::Restarting { .. }
        | ServerState::Ready
        | ServerState::Degraded { .. } => true,
    }
}
