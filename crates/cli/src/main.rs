//! `lectern`: the headless shell. Parses what was typed, makes one call of the engine, prints what comes of it.
//!
//! Invariant: no logic that the window needs too; standard output carries answers and data, standard error all else.

mod args;
mod ask;
mod audit;
mod chat;
mod debug;
mod dialog;
mod exit;
mod follow;
mod generation;
mod interrupt;
mod mcp;
mod mention;
mod models;
mod output;
mod permit;
mod question;
mod score;
mod serve;
mod servers;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;
use lectern_app::{Home, entry};

use args::{Cli, Command};
use exit::Exit;

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    if let Some(code) = entry::dispatch_hidden(&args) {
        return code;
    }
    let cli = Cli::parse();
    log_to_stderr();
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            output::complain(&format!("start: {error}"), None);
            return Exit::Failed.into();
        }
    };
    let exit = runtime.block_on(run(cli));
    // A thread that still reads from the terminal must not keep the process.
    runtime.shutdown_background();
    exit.into()
}

async fn run(cli: Cli) -> Exit {
    let home = || Home::open(cli.home.as_deref());
    let done = match cli.command {
        Command::Vault(vault) => return Exit::Code(entry::serve_vault(&vault.folder)),
        Command::Debug(args::Debug::Validate) => debug::validate().await,
        Command::Debug(args::Debug::Parse(parse)) => debug::parse(&parse).await,
        Command::Debug(args::Debug::Decode(asked)) => debug::decode(&asked),
        Command::Debug(args::Debug::Message { id }) => home().and_then(|home| debug::message(&home, &id)),
        Command::Debug(args::Debug::Score(score)) => score::run(home, score).await,
        Command::Ask(ask) => ask::run(home, ask).await,
        Command::Chat(chat) => chat::run(home, chat).await,
        Command::Models(models) => models::run(home, models).await,
        Command::Serve(asked) => serve::run(home, asked).await,
        Command::Mcp(mcp) => mcp::run(home, mcp).await,
        Command::Audit(asked) => audit::run(home, asked).await,
        Command::Doctor(doctor) => servers::doctor(home, doctor.with).await,
    };
    done.unwrap_or_else(|problem| {
        output::complain(&problem.message, problem.hint.as_deref());
        Exit::of_problem(&problem)
    })
}

/// `LECTERN_LOG=debug` shows what goes on inside. Without it only what a model's process has to say is shown: that what
/// it kept of a conversation was damaged, or can't be saved.
fn log_to_stderr() {
    let asked = tracing_subscriber::EnvFilter::try_from_env("LECTERN_LOG");
    let log = tracing_subscriber::fmt().with_writer(std::io::stderr).with_ansi(false);
    match asked {
        Ok(filter) => log.with_env_filter(filter).init(),
        Err(_) => {
            log.with_env_filter("off,lectern_local::worker=warn").without_time().with_target(false).init();
        }
    }
}
