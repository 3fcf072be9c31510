//! `lectern mcp approve`: shows what a server would run and which of its tools are not as they were, and approves them.
//!
//! Invariant: without a person's yes, or `--yes`, nothing is approved.

use std::io::{BufRead, IsTerminal, Write};

use clap::Args;
use lectern_app::view::{ApprovalView, Problem, ServerView, ToolChange, ToolView};
use lectern_app::{Engine, EngineOptions, Home};
use lectern_core::ServerId;

use crate::exit::Exit;
use crate::output::{data, printable};

/// What to approve.
#[derive(Debug, Args)]
pub struct Approve {
    /// The servers' names in the settings
    #[arg(required = true, value_name = "NAME")]
    servers: Vec<String>,
    /// Accept these tools as they are now, by their public names; can be given more than once
    #[arg(long = "tool", value_name = "NAME")]
    tools: Vec<String>,
    /// Approve without a question
    #[arg(long)]
    yes: bool,
}

/// Shows and approves.
pub async fn run(home: Home, asked: Approve) -> Result<Exit, Problem> {
    let engine = Engine::open(home, EngineOptions::default())?;
    let done = approve_all(&engine, &asked).await;
    engine.shutdown().await;
    done
}

async fn approve_all(engine: &Engine, asked: &Approve) -> Result<Exit, Problem> {
    for server in &asked.servers {
        if !approve(engine, &ServerId::from(server.as_str()), asked.yes)? {
            return Ok(Exit::Failed);
        }
    }
    engine.servers_ready().await;
    let mut accepted = Vec::new();
    for server in &asked.servers {
        accepted.extend(accept(engine, &ServerId::from(server.as_str()), asked)?);
    }
    match asked.tools.iter().find(|tool| !accepted.contains(*tool)) {
        Some(tool) => Err(Problem::new("nothing_to_accept", format!("the tool `{tool}` was not accepted"))
            .hint("It is as it was accepted before, or no tool of these servers.")),
        None => Ok(Exit::Done),
    }
}

/// Shows what a server would run; whether it is approved now.
fn approve(engine: &Engine, id: &ServerId, yes: bool) -> Result<bool, Problem> {
    let server = find(engine, id)?;
    let digest = match &server.approval {
        ApprovalView::Approved => {
            data(&printable(&format!("{id} is approved as it is: {}", server.command)));
            return Ok(true);
        }
        ApprovalView::New { digest, shown } => {
            data(&printable(&format!("{id} would run: {shown}")));
            digest
        }
        ApprovalView::Changed { digest, before, after } => {
            data(&printable(&format!("{id} would run: {after}\napproved was: {before}")));
            digest
        }
    };
    if !agreed(yes, "Approve it?")? {
        return Ok(false);
    }
    engine.approve_server(id, digest)?;
    data(&printable(&format!("approved {id}")));
    Ok(true)
}

/// Shows the tools that are not as they were, and accepts those that were named.
fn accept(engine: &Engine, id: &ServerId, asked: &Approve) -> Result<Vec<String>, Problem> {
    let server = find(engine, id)?;
    let mut accepted = Vec::new();
    let mut left = false;
    for tool in &server.tools {
        let Some(change) = &tool.changed else { continue };
        show(tool, change);
        let name = tool.spec.name.as_str();
        let wanted = asked.tools.iter().any(|asked| asked == name);
        if wanted && agreed(asked.yes, "Accept it as it is now?")? {
            engine.accept_tool(&tool.spec.name, &change.digest)?;
            data(&printable(&format!("accepted {name}")));
            accepted.push(name.to_owned());
        } else {
            left = true;
        }
    }
    if left {
        data("Name a tool with --tool to accept it as it is now.");
    }
    Ok(accepted)
}

fn find(engine: &Engine, id: &ServerId) -> Result<ServerView, Problem> {
    let found = engine.servers().into_iter().find(|server| server.id == *id);
    found.ok_or_else(|| Problem::new("unknown_server", format!("there is no server `{id}`")))
}

fn show(tool: &ToolView, change: &ToolChange) {
    let state = if tool.enabled { "new" } else { "switched off" };
    data(&printable(&format!("{} ({state})", tool.spec.name)));
    if !change.before.is_null() {
        data(&printable(&format!("  was: {}", change.before)));
    }
    data(&printable(&format!("  is:  {}", change.after)));
}

/// Asks the person at the terminal.
fn agreed(yes: bool, question: &str) -> Result<bool, Problem> {
    if yes {
        return Ok(true);
    }
    if !std::io::stdin().is_terminal() {
        return Err(Problem::new("not_approved", "nothing was approved: there is nobody to ask")
            .hint("Look at what is shown above, then say --yes."));
    }
    let mut err = std::io::stderr().lock();
    let _ = write!(err, "{question} [y/N] ");
    let _ = err.flush();
    let mut line = String::new();
    let _ = std::io::stdin().lock().read_line(&mut line);
    Ok(matches!(line.trim(), "y" | "Y" | "yes"))
}
