//! `lectern mcp log`: what a server wrote to its log, or the messages that it exchanged.
//!
//! Invariant: only files are read; no server is started, and an app that runs is not disturbed.

use std::time::Duration;

use clap::Args;
use lectern_app::Home;
use lectern_app::view::Problem;
use lectern_core::ServerId;
use serde_json::{Value, json};

use crate::exit::Exit;
use crate::interrupt::Interrupts;
use crate::output::{data, printable};

/// How often a file that is followed is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Which, and how it is printed.
#[derive(Debug, Args)]
pub struct Log {
    /// The server
    pub name: String,
    /// Go on with what is written from now on, until Ctrl-C
    #[arg(short, long)]
    pub follow: bool,
    /// The messages of the protocol, both ways (kept when the settings say `"keep_traffic": true`)
    #[arg(long)]
    pub raw: bool,
    /// How many of the last lines
    #[arg(short = 'n', long, default_value_t = 200)]
    pub lines: usize,
    /// Print JSON, one object a line
    #[arg(long)]
    pub json: bool,
}

/// Prints the lines, and those to come.
pub async fn run(home: Home, asked: Log) -> Result<Exit, Problem> {
    let cancel = Interrupts::listen().next();
    let server = ServerId::from(asked.name.as_str());
    let mut file = if asked.raw { home.server_traffic(&server) } else { home.server_log(&server) };
    if !file.exists() && !asked.follow {
        return Err(nothing(&asked));
    }
    let unreadable = |error: std::io::Error| {
        Problem::new("unreadable_log", format!("the log of the server `{server}` could not be read: {error}"))
    };
    let print = |lines: Vec<String>| lines.iter().all(|line| data(&shown(&asked, line)));
    let mut heard = print(file.tail(asked.lines).map_err(unreadable)?);
    while asked.follow && heard {
        tokio::select! {
            () = tokio::time::sleep(LOOK_EVERY) => {}
            () = cancel.cancelled() => return Ok(Exit::Cancelled),
        }
        heard = print(file.more().map_err(unreadable)?);
    }
    Ok(Exit::Done)
}

fn nothing(asked: &Log) -> Problem {
    let name = &asked.name;
    if asked.raw {
        Problem::new("no_log", format!("no messages of the server `{name}` are kept"))
            .hint(r#"Put "keep_traffic": true into the settings, and start the server again."#)
    } else {
        Problem::new("no_log", format!("there is no log of a server `{name}`"))
            .hint("It is written when the server is first started; `lectern mcp list` shows the servers.")
    }
}

/// A line of the log is `TIME TEXT`; one of the messages is JSON already.
fn shown(asked: &Log, line: &str) -> String {
    match (asked.raw, asked.json) {
        (false, false) => printable(line),
        (false, true) => {
            let (at, text) = line.split_once(' ').unwrap_or(("", line));
            json!({"server": asked.name, "at": at, "text": text}).to_string()
        }
        (true, true) => line.to_owned(),
        (true, false) => {
            let message: Value = serde_json::from_str(line).unwrap_or_default();
            let arrow = if message["direction"] == "sent" { "->" } else { "<-" };
            let at = message["at"].as_str().unwrap_or_default();
            printable(&format!("{at} {arrow} {}", message["message"]))
        }
    }
}
