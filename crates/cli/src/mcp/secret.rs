//! `lectern mcp secret`: the values behind `${secret:NAME}` and `${input:ID}`.
//!
//! Invariant: a value comes from standard input or from the terminal without being shown, never from the command line,
//! and is never printed.

use std::io::Read;

use clap::{Args, Subcommand};
use lectern_app::secrets::variable_of;
use lectern_app::view::Problem;
use lectern_app::{Engine, EngineOptions, Home, ValueKind};
use serde_json::json;

use crate::dialog;
use crate::exit::Exit;
use crate::output::{data, printable};

/// What to do with the values.
#[derive(Debug, Subcommand)]
pub enum Secret {
    /// List the names that servers refer to, and which of them have a value
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Keep a value in the keyring; it is read from standard input
    Set(Named),
    /// Forget a value
    #[command(visible_alias = "rm")]
    Remove(Named),
}

/// Which value.
#[derive(Debug, Args)]
pub struct Named {
    /// Its name, as in ${secret:NAME}
    pub name: String,
    /// It is the answer to ${input:NAME}
    #[arg(long)]
    pub input: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Does it.
pub async fn run(home: Home, asked: Secret) -> Result<Exit, Problem> {
    let engine = Engine::open(home, EngineOptions { without_servers: true, ..EngineOptions::default() })?;
    let done = match asked {
        Secret::List { json } => list(&engine, json).await,
        Secret::Set(named) => set(&engine, &named).await,
        Secret::Remove(named) => remove(&engine, &named).await,
    };
    engine.shutdown().await;
    done
}

async fn list(engine: &Engine, as_json: bool) -> Result<Exit, Problem> {
    let values = engine.needed_values().await?;
    if as_json {
        data(&json!({"values": values}).to_string());
        return Ok(Exit::Done);
    }
    for value in values {
        let kind = match value.kind {
            ValueKind::Secret => "secret",
            ValueKind::Input => "input",
        };
        let state = match value.set {
            Some(true) => "has a value",
            Some(false) => "has no value",
            None => "the keyring does not say",
        };
        let servers: Vec<&str> = value.servers.iter().map(|id| id.as_str()).collect();
        data(&printable(&format!("{kind} {}: {state} (for {})", value.name, servers.join(", "))));
    }
    Ok(Exit::Done)
}

async fn set(engine: &Engine, named: &Named) -> Result<Exit, Problem> {
    // In memory it would be gone when this process ends.
    engine.check_keyring().await.map_err(|problem| without_keyring(problem, named))?;
    let value = match dialog::somebody_there() {
        true => dialog::hidden_answer(format!("value of {}: ", named.name)).await.unwrap_or_default(),
        false => from_stdin()?,
    };
    if value.is_empty() {
        return Err(Problem::new("bad_secret", "an empty value is no secret"));
    }
    engine.set_value(kind(named), &named.name, &value).await?;
    say(named, "set", "has a value now")
}

async fn remove(engine: &Engine, named: &Named) -> Result<Exit, Problem> {
    engine.forget_value(kind(named), &named.name).await?;
    say(named, "removed", "has no value any more")
}

fn say(named: &Named, code: &str, sentence: &str) -> Result<Exit, Problem> {
    if named.json {
        data(&json!({code: named.name}).to_string());
    } else {
        data(&printable(&format!("{} {sentence}", named.name)));
    }
    Ok(Exit::Done)
}

/// The other way to give this value: the variable that stands for it.
fn without_keyring(problem: Problem, named: &Named) -> Problem {
    let entry = format!("{}:{}", if named.input { "input" } else { "secret" }, named.name);
    match variable_of(&entry).filter(|_| problem.code == "no_keyring") {
        Some(variable) => problem.hint(format!(
            "Start a keyring (GNOME Keyring, KWallet, KeePassXC), or start Lectern with the value in the variable {variable}."
        )),
        None => problem,
    }
}

fn kind(named: &Named) -> ValueKind {
    if named.input { ValueKind::Input } else { ValueKind::Secret }
}

/// Everything on standard input, without the end of its last line.
fn from_stdin() -> Result<String, Problem> {
    let mut text = String::new();
    let read = std::io::stdin().lock().take(1 << 20).read_to_string(&mut text);
    read.map_err(|error| Problem::new("bad_secret", format!("read the value: {error}")))?;
    let text = text.strip_suffix('\n').unwrap_or(&text);
    Ok(text.strip_suffix('\r').unwrap_or(text).to_owned())
}
