//! `lectern mcp doctor`: which step of a server's start fails, and how to mend it.

use clap::Args;
use lectern_app::view::{CheckOutcome, DoctorCheck, DoctorReport, DoctorStep, Problem};
use lectern_app::{Engine, EngineOptions, Home};
use serde_json::json;

use crate::exit::Exit;
use crate::interrupt::Interrupts;
use crate::output::{data, printable};

/// Which, and how it is printed.
#[derive(Debug, Args)]
pub struct Doctor {
    /// One server only; all that are enabled when none is named
    pub name: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Examines the servers one after the other.
pub async fn run(home: Home, asked: Doctor) -> Result<Exit, Problem> {
    let cancel = Interrupts::listen().next();
    let only = asked.name.as_deref().map(Into::into);
    let engine = Engine::open(home, EngineOptions { dormant: true, only, ..EngineOptions::default() })?;
    let reports = tokio::select! {
        reports = examine(&engine, &asked) => Some(reports),
        () = cancel.cancelled() => None,
    };
    engine.shutdown().await;
    let Some(reports) = reports.transpose()? else { return Ok(Exit::Cancelled) };
    if asked.json {
        data(&json!({"servers": reports}).to_string());
    }
    let broken = reports.iter().flat_map(|report| &report.checks).any(failed);
    Ok(if broken { Exit::Failed } else { Exit::Done })
}

async fn examine(engine: &Engine, asked: &Doctor) -> Result<Vec<DoctorReport>, Problem> {
    let servers = match &asked.name {
        Some(name) => vec![name.as_str().into()],
        None => engine.servers_to_examine(),
    };
    let mut reports = Vec::new();
    for server in servers {
        if !asked.json {
            data(&printable(server.as_str()));
        }
        let report = engine.doctor(&server, |check| {
            if !asked.json {
                print(check);
            }
        });
        reports.push(report.await?);
    }
    Ok(reports)
}

fn failed(check: &DoctorCheck) -> bool {
    check.outcome == CheckOutcome::Failed
}

fn print(check: &DoctorCheck) {
    let mark = match check.outcome {
        CheckOutcome::Passed => "ok  ",
        CheckOutcome::Failed => "FAIL",
        CheckOutcome::Skipped => "-   ",
    };
    let step = match check.step {
        DoctorStep::Path => "path",
        DoctorStep::Executable => "executable",
        DoctorStep::Version => "version",
        DoctorStep::Address => "address",
        DoctorStep::SignIn => "sign-in",
        DoctorStep::Spawn => "spawn",
        DoctorStep::Handshake => "handshake",
        DoctorStep::List => "list",
        DoctorStep::Call => "call",
    };
    data(&printable(&format!("  {mark}  {step:<10}  {:>6} ms  {}", check.took_ms, check.says)));
    if let Some(hint) = &check.hint {
        data(&printable(&format!("        -> {hint}")));
    }
}
