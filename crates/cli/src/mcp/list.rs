//! `lectern mcp list`: starts the servers and shows their states and tools.

use clap::Args;
use lectern_app::view::{Problem, ServerView};
use lectern_app::{Engine, Home};
use lectern_core::{RuleEffect, RuleMatch};
use serde_json::json;

use crate::args::Servers;
use crate::exit::Exit;
use crate::interrupt::Interrupts;
use crate::output::{data, one_line, printable};
use crate::servers::{options, state};

/// Which servers, and how they are printed.
#[derive(Debug, Args)]
pub struct List {
    #[command(flatten)]
    pub with: Servers,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Starts the servers and lists them.
pub async fn run(home: Home, asked: List) -> Result<Exit, Problem> {
    let cancel = Interrupts::listen().next();
    let engine = Engine::open(home, options(asked.with))?;
    let ready = tokio::select! {
        () = async { engine.servers_ready().await; engine.servers_counted().await } => true,
        () = cancel.cancelled() => false,
    };
    let servers = engine.servers();
    engine.shutdown().await;
    if !ready {
        return Ok(Exit::Cancelled);
    }
    if asked.json {
        data(&json!({ "servers": servers, "rules": engine.rules() }).to_string());
    } else {
        for rule in engine.rules().iter().filter(|rule| rule.matches == RuleMatch::Everything) {
            data(&format!("every tool: {}", permission(rule.effect)));
        }
        for server in &servers {
            print(server);
        }
    }
    // A list of broken servers is a list; whether they work is the doctor's question.
    Ok(Exit::Done)
}

/// A server on a few lines.
pub fn print(server: &ServerView) {
    let reported = server.reported.as_deref().map(|text| format!(" ({text})")).unwrap_or_default();
    data(&printable(&format!("{}{reported}: {}", server.id, state(&server.state))));
    data(&printable(&format!("  {}", server.command)));
    if let Some(effect) = server.permission {
        data(&format!("  its tools: {}", permission(effect)));
    }
    if server.resources + server.prompts > 0 {
        data(&format!("  {} resources, {} prompts", server.resources, server.prompts));
    }
    for tool in &server.tools {
        let spec = &tool.spec;
        let rule = tool.permission.map(|effect| format!("  [{}]", permission(effect))).unwrap_or_default();
        data(&format!("  {}{rule}  {}", one_line(spec.name.as_str(), 64), one_line(&spec.description, 100)));
    }
}

/// What a rule of the settings or of this run says.
fn permission(effect: RuleEffect) -> &'static str {
    match effect {
        RuleEffect::Allow => "allowed without asking",
        RuleEffect::Deny => "forbidden",
        RuleEffect::Ask => "asked about each time",
    }
}
