//! `lectern mcp import`: takes servers over from another host's file, after a look at what they would run.
//!
//! Invariant: nothing is added without a yes, from a person or as `--yes`; nothing is started.

use std::collections::BTreeMap;
use std::io::Read;

use clap::{Args, ValueEnum};
use lectern_app::view::{ImportPreview, ImportRequest, ImportSource, KnownHost, Problem};
use lectern_app::{Engine, EngineOptions, Home};
use serde_json::json;

use super::add::pair;
use super::preview;
use crate::dialog::{self, fits};
use crate::exit::Exit;
use crate::output::{aside, data};

/// From where, and which.
#[derive(Debug, Args)]
pub struct Import {
    /// A file of another host, a bundle (.mcpb), or `-` for a text on standard input
    #[arg(required_unless_present = "from", conflicts_with = "from")]
    pub file: Option<String>,
    /// The settings of a host on this machine
    #[arg(long, value_name = "HOST")]
    pub from: Option<Host>,
    /// Add without asking
    #[arg(long)]
    pub yes: bool,
    /// This server only; can be given more than once
    #[arg(long, value_name = "NAME")]
    pub only: Vec<String>,
    /// The answer to what a server asks for; can be given more than once. For secrets use `lectern mcp secret set`
    #[arg(long, value_name = "ID=VALUE", value_parser = pair::<'='>)]
    pub input: Vec<(String, String)>,
    /// Move what looks like a secret into the keyring
    #[arg(long)]
    pub secrets_to_keyring: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// A host whose settings can be found.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Host {
    /// Claude Desktop
    ClaudeDesktop,
    /// Cursor
    Cursor,
    /// Visual Studio Code
    Vscode,
}

/// Shows what would run, asks, and adds it.
pub async fn run(home: Home, asked: Import) -> Result<Exit, Problem> {
    let engine = Engine::open(home, EngineOptions { without_servers: true, ..EngineOptions::default() })?;
    let imported = import(&engine, asked).await;
    engine.shutdown().await;
    imported
}

async fn import(engine: &Engine, asked: Import) -> Result<Exit, Problem> {
    let source = source(&asked)?;
    let mut shown = engine.preview_import(&source)?;
    keep_only(&mut shown, &asked.only)?;
    if asked.json {
        data(&json!({"preview": shown}).to_string());
    } else {
        preview::lines(&shown).iter().all(|line| data(line));
    }
    if shown.servers.is_empty() {
        aside("there is nothing to import");
        return Ok(Exit::Failed);
    }
    if !asked.yes {
        if asked.json || !dialog::somebody_there() {
            aside("nothing was imported: --yes imports what is shown here");
            return Ok(Exit::Usage);
        }
        if !dialog::confirmed("import them?").await {
            aside("nothing was imported");
            return Ok(Exit::Usage);
        }
    }
    let request = request(engine, source, &shown, &asked).await?;
    let servers = engine.import_servers(request).await?;
    let names: Vec<&str> = servers.iter().map(|server| server.id.as_str()).collect();
    if asked.json {
        data(&json!({"imported": names}).to_string());
    } else {
        data(&format!("imported {}", names.join(", ")));
    }
    Ok(Exit::Done)
}

async fn request(
    engine: &Engine,
    source: ImportSource,
    shown: &ImportPreview,
    asked: &Import,
) -> Result<ImportRequest, Problem> {
    let mut inputs: BTreeMap<String, String> = BTreeMap::new();
    for (id, value) in &asked.input {
        let known = shown.servers.iter().flat_map(|server| &server.inputs).find(|input| input.id == *id);
        if let Some(input) = known {
            fits(input, value).map_err(|why| Problem::new("bad_import", why))?;
        }
        // Several values of one input stand on a line each.
        inputs
            .entry(id.clone())
            .and_modify(|known| *known = format!("{known}\n{value}"))
            .or_insert(value.clone());
    }
    let there = !asked.yes && dialog::somebody_there();
    let wanted: Vec<_> = shown.servers.iter().flat_map(|server| &server.inputs).collect();
    for input in wanted {
        if inputs.contains_key(&input.id) {
            continue;
        }
        if there {
            inputs.extend(dialog::input(input).await.map(|answer| (input.id.clone(), answer)));
        } else if !input.optional {
            aside(&format!("! {} has no value yet: lectern mcp secret set --input '{}'", input.id, input.id));
        }
    }
    let has_secrets = shown.servers.iter().any(|server| !server.secrets.is_empty());
    let mut secrets_to_keyring = asked.secrets_to_keyring;
    if has_secrets && there && !secrets_to_keyring {
        secrets_to_keyring = dialog::confirmed("move the secrets into the keyring?").await;
    }
    if !inputs.is_empty() || secrets_to_keyring && has_secrets {
        // In memory they would be gone when this process ends.
        engine.check_keyring().await?;
    } else if shown.servers.iter().flat_map(|server| &server.inputs).any(|input| input.optional)
        && let Err(problem) = engine.check_keyring().await
    {
        aside(&format!("! the defaults of what is asked for are not kept: {}", problem.message));
    }
    let chosen = shown.servers.iter().map(|server| server.name.clone()).collect();
    Ok(ImportRequest { source, digest: shown.digest.clone(), chosen, inputs, secrets_to_keyring })
}

fn source(asked: &Import) -> Result<ImportSource, Problem> {
    let host = |host| match host {
        Host::ClaudeDesktop => KnownHost::ClaudeDesktop,
        Host::Cursor => KnownHost::Cursor,
        Host::Vscode => KnownHost::Vscode,
    };
    match (&asked.file, asked.from) {
        (Some(file), _) if file == "-" => {
            let mut text = String::new();
            let read = std::io::stdin().lock().take(11 << 20).read_to_string(&mut text);
            read.map_err(|error| Problem::new("bad_import", format!("standard input: {error}")))?;
            Ok(ImportSource::Text { text })
        }
        (Some(file), _) => Ok(ImportSource::File { path: file.clone() }),
        (None, Some(from)) => Ok(ImportSource::Known { host: host(from) }),
        (None, None) => Err(Problem::new("bad_import", "name a file, or a host with --from")),
    }
}

fn keep_only(shown: &mut ImportPreview, only: &[String]) -> Result<(), Problem> {
    if only.is_empty() {
        return Ok(());
    }
    if let Some(unknown) = only.iter().find(|name| !shown.servers.iter().any(|server| server.name == **name))
    {
        let skipped = shown.skipped.iter().find(|skipped| skipped.name == *unknown);
        let reason = skipped.map_or_else(String::new, |skipped| format!(": {}", skipped.reason));
        let message = format!("there is no server `{unknown}` in it that can be run{reason}");
        return Err(Problem::new("unknown_server", message));
    }
    shown.servers.retain(|server| only.contains(&server.name));
    shown.skipped.retain(|skipped| only.contains(&skipped.name));
    Ok(())
}
