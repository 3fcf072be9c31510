//! `lectern mcp add`: adds a server to the settings.

use std::path::PathBuf;

use clap::Args;
use lectern_app::view::{DraftArgument, DraftNamed, DraftTransport, DraftValue, Problem, ServerDraft};
use lectern_app::{Engine, EngineOptions, Home};
use serde_json::json;

use crate::exit::Exit;
use crate::output::{aside, data, printable};

/// A program or an address.
#[derive(Debug, Args)]
pub struct Add {
    /// What it is called; the first part of its tools' names
    pub name: String,
    /// A variable of its environment; can be given more than once
    #[arg(short, long, value_name = "NAME=VALUE", value_parser = pair::<'='>)]
    pub env: Vec<(String, String)>,
    /// A header of every request to an address; can be given more than once
    #[arg(short = 'H', long, value_name = "NAME: VALUE", value_parser = pair::<':'>)]
    pub header: Vec<(String, String)>,
    /// A variable (of an address: a header) whose value is a secret of the keyring; can be given more than once
    #[arg(long, value_name = "NAME=SECRET", value_parser = pair::<'='>)]
    pub secret: Vec<(String, String)>,
    /// The folder it runs in
    #[arg(long, value_name = "DIR")]
    pub cwd: Option<PathBuf>,
    /// Seconds that a call may take without a word of progress
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub timeout: Option<u64>,
    /// Believe what it claims of its tools, e.g. that they only read
    #[arg(long)]
    pub trust: bool,
    /// Keep it, but do not start it
    #[arg(long)]
    pub disabled: bool,
    /// Take the place of a server of this name
    #[arg(long)]
    pub replace: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// An address, or a command without arguments
    #[arg(required_unless_present = "program", conflicts_with = "program")]
    pub url: Option<String>,
    /// A command and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub program: Vec<String>,
}

/// Adds it. Nothing is started.
pub async fn run(home: Home, asked: Add) -> Result<Exit, Problem> {
    let engine = Engine::open(home, EngineOptions { without_servers: true, ..EngineOptions::default() })?;
    let added = add(&engine, asked).await;
    engine.shutdown().await;
    added
}

async fn add(engine: &Engine, asked: Add) -> Result<Exit, Problem> {
    let exists = engine.settings_have(&asked.name)?;
    let as_json = asked.json;
    let draft = ServerDraft {
        id: (asked.replace && exists).then(|| asked.name.as_str().into()),
        name: asked.name.clone(),
        enabled: !asked.disabled,
        timeout_s: asked.timeout,
        trusted: asked.trust,
        transport: transport(asked)?,
    };
    let server = engine.save_server(draft).await?;
    let shown = engine.preview_server(&server.id)?;
    if as_json {
        data(&json!({"added": server}).to_string());
    } else {
        data(&printable(&format!("added {}: {}", server.id, server.command)));
    }
    for warning in &shown.warnings {
        aside(&format!("! {warning}"));
    }
    Ok(Exit::Done)
}

fn transport(asked: Add) -> Result<DraftTransport, Problem> {
    let wrong = |message: &str| Err(Problem::new("bad_server", message));
    let plain = |(name, text)| DraftNamed { name, value: DraftValue::Plain { text } };
    let secrets = asked.secret.into_iter().map(|(name, secret)| (name, format!("${{secret:{secret}}}")));
    let mut words = asked.url.into_iter().chain(asked.program).peekable();
    if words.peek().is_some_and(|word| is_address(word)) {
        if !asked.env.is_empty() || asked.cwd.is_some() {
            return wrong("an address has no environment and no folder; --header gives it headers");
        }
        let headers = asked.header.into_iter().chain(secrets).map(plain).collect();
        let url = words.next();
        if words.next().is_some() {
            return wrong("nothing can follow an address");
        }
        return Ok(DraftTransport::Http { url, headers });
    }
    if !asked.header.is_empty() {
        return wrong("a program has no headers; --env gives it variables");
    }
    Ok(DraftTransport::Stdio {
        command: words.next().unwrap_or_default(),
        args: words.map(|text| DraftArgument::Plain { text }).collect(),
        env: asked.env.into_iter().chain(secrets).map(plain).collect(),
        cwd: asked.cwd.map(|cwd| std::path::absolute(&cwd).unwrap_or(cwd).display().to_string()),
    })
}

fn is_address(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    text.starts_with("http://") || text.starts_with("https://")
}

/// `NAME=VALUE`, or `NAME: VALUE`.
pub fn pair<const BETWEEN: char>(text: &str) -> Result<(String, String), String> {
    match text.split_once(BETWEEN) {
        Some((name, value)) if !name.trim().is_empty() => {
            let value = if BETWEEN == ':' { value.trim() } else { value };
            Ok((name.trim().to_owned(), value.to_owned()))
        }
        Some(_) | None => Err(format!("not of the form NAME{BETWEEN}VALUE")),
    }
}
