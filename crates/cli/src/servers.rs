//! `lectern mcp list` and `lectern doctor`: what works here and what does not.

use lectern_app::view::{Problem, SendRequest, ServerState, ServerView};
use lectern_app::{Engine, EngineOptions, Home};
use lectern_core::TurnOutcome;
use serde_json::json;

use crate::args::Servers;
use crate::exit::Exit;
use crate::interrupt::Interrupts;
use crate::output::{data, one_line, printable};

/// Starts the servers and lists them.
pub async fn list(
    home: impl Fn() -> Result<Home, Problem>,
    with: Servers,
    as_json: bool,
) -> Result<Exit, Problem> {
    let cancel = Interrupts::listen().next();
    let engine = Engine::open(home()?, options(with))?;
    let ready = tokio::select! {
        () = engine.servers_ready() => true,
        () = cancel.cancelled() => false,
    };
    let servers = engine.servers();
    engine.shutdown().await;
    if !ready {
        return Ok(Exit::Cancelled);
    }
    if as_json {
        data(&json!({ "servers": servers }).to_string());
    } else {
        for server in &servers {
            print(server);
        }
    }
    Ok(if servers.iter().any(failed) { Exit::Failed } else { Exit::Done })
}

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
    let request = SendRequest { conversation: None, text: "hello".to_owned() };
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

fn options(with: Servers) -> EngineOptions {
    EngineOptions { vaults: with.vault, mcp_config: with.mcp_config, ..EngineOptions::default() }
}

fn print(server: &ServerView) {
    let reported = server.reported.as_deref().map(|text| format!(" ({text})")).unwrap_or_default();
    data(&printable(&format!("{}{reported}: {}", server.id, state(&server.state))));
    data(&printable(&format!("  {}", server.command)));
    for tool in &server.tools {
        data(&format!("  {}  {}", one_line(tool.name.as_str(), 64), one_line(&tool.description, 100)));
    }
}

fn state(state: &ServerState) -> String {
    match state {
        ServerState::Stopped => "stopped".to_owned(),
        ServerState::Starting { .. } => "starting".to_owned(),
        ServerState::Ready => "ready".to_owned(),
        ServerState::Degraded { reasons } => format!("ready, but {}", reasons.join("; ")),
        ServerState::Failed { problem } => format!("failed: {}", problem.message),
    }
}

fn failed(server: &ServerView) -> bool {
    matches!(server.state, ServerState::Failed { .. })
}
