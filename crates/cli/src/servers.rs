//! `lectern doctor`: what works here and what does not; and how the state of a server is said.

use lectern_app::view::{Problem, SendRequest, ServerState, ServerView};
use lectern_app::{Engine, EngineOptions, Home};
use lectern_core::TurnOutcome;

use crate::args::Servers;
use crate::exit::Exit;
use crate::output::{data, printable};

/// Checks the home, the servers and the model, the model with a real question.
pub async fn doctor(home: impl Fn() -> Result<Home, Problem>, with: Servers) -> Result<Exit, Problem> {
    let home = home()?;
    data(&format!("ok    home: {}", home.path().display()));
    let engine = Engine::open(home, options(with))?;
    data("ok    settings and conversations can be read");
    engine.servers_ready().await;
    let servers = engine.servers();
    let mut fine = true;
    for server in &servers {
        fine &= !failed(server);
        let mark = if failed(server) { "FAIL " } else { "ok   " };
        data(&format!("{mark} server {}: {}", server.id, state(&server.state)));
    }
    fine &= model_answers(&engine).await;
    engine.shutdown().await;
    Ok(if fine { Exit::Done } else { Exit::Failed })
}

async fn model_answers(engine: &Engine) -> bool {
    let model = engine.model();
    match ask_model(engine).await {
        Ok(()) => {
            data(&format!("ok    model {model} loads and answers"));
            true
        }
        Err(reason) => {
            data(&format!("FAIL  model {model}: {}", printable(&reason)));
            false
        }
    }
}

async fn ask_model(engine: &Engine) -> Result<(), String> {
    let request = SendRequest { conversation: None, text: "hello".to_owned(), ..SendRequest::default() };
    let receipt = engine.send(request).await.map_err(|problem| problem.message)?;
    let mut events = engine.attach_turn(&receipt.turn, -1).map_err(|problem| problem.message)?;
    let mut outcome = None;
    while let Some(event) = events.next().await {
        if let lectern_core::EventKind::TurnFinished { outcome: how } = event.kind {
            outcome = Some(how);
        }
    }
    // Nobody wants to find this among the conversations.
    let _ = engine.delete_conversation(&receipt.conversation);
    match outcome {
        Some(TurnOutcome::Failed { error }) => Err(error.message),
        Some(TurnOutcome::Completed | TurnOutcome::Cancelled | TurnOutcome::StepLimit) | None => Ok(()),
    }
}

/// These servers in place of those of the settings.
pub fn options(with: Servers) -> EngineOptions {
    EngineOptions { vaults: with.vault, mcp_config: with.mcp_config, ..EngineOptions::default() }
}

/// A state in a few words.
pub fn state(state: &ServerState) -> String {
    match state {
        ServerState::Stopped => "stopped".to_owned(),
        ServerState::NeedsApproval => "waits for your approval: lectern mcp approve".to_owned(),
        ServerState::NeedsSignIn => "waits until you sign in".to_owned(),
        ServerState::Starting { .. } => "starting".to_owned(),
        ServerState::Restarting { attempt, of, problem, .. } => {
            format!("restarting ({attempt} of {of}): {}", problem.message)
        }
        ServerState::Ready => "ready".to_owned(),
        ServerState::Degraded { reasons } => format!("ready, but {}", reasons.join("; ")),
        ServerState::Failed { problem } => format!("failed: {}", problem.message),
    }
}

/// Whether it is broken.
pub fn failed(server: &ServerView) -> bool {
    matches!(server.state, ServerState::Failed { .. })
}
