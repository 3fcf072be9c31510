//! `lectern serve keys`: the keys of the local API.
//!
//! Invariant: a secret is printed once, when its key is made.

use clap::{Args, Subcommand, ValueEnum};
use lectern_api::{Key, Scope, kept};
use lectern_app::secrets::Kept;
use lectern_app::view::Problem;
use lectern_app::{Engine, EngineOptions, Home};
use serde_json::json;

use crate::exit::Exit;
use crate::output::{aside, data, printable};

/// What to do with the keys.
#[derive(Debug, Subcommand)]
pub enum Asked {
    /// List the keys, without their secrets
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Make a key and print it, this once
    Add(Add),
    /// Forget a key; a running server refuses it from then on
    #[command(visible_aliases = ["remove", "rm"])]
    Revoke {
        /// Its name
        name: String,
    },
}

/// A new key.
#[derive(Debug, Args)]
pub struct Add {
    /// What to call it; stands in the audit log
    name: String,
    /// What it may do; can be given more than once [default: models, tools]
    #[arg(long, value_name = "SCOPE", value_enum, value_delimiter = ',')]
    scope: Vec<ScopeName>,
    /// The user's servers serve each of its requests, also those that name no tools
    #[arg(long)]
    server_tools: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What a key may do.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum ScopeName {
    /// Ask models
    Models,
    /// Run tools of the user's servers
    Tools,
    /// Answer for the user when a tool needs consent
    Approvals,
}

impl From<ScopeName> for Scope {
    fn from(name: ScopeName) -> Self {
        match name {
            ScopeName::Models => Self::Models,
            ScopeName::Tools => Self::Tools,
            ScopeName::Approvals => Self::Approvals,
        }
    }
}

/// Does it.
pub async fn run(home: Home, asked: Asked) -> Result<Exit, Problem> {
    let engine = Engine::open(home, EngineOptions { without_servers: true, ..EngineOptions::default() })?;
    let done = match asked {
        Asked::List { json } => list(&engine, json).await,
        Asked::Add(add) => make(&engine, add).await,
        Asked::Revoke { name } => revoke(&engine, &name).await,
    };
    engine.shutdown().await;
    done
}

async fn list(engine: &Engine, as_json: bool) -> Result<Exit, Problem> {
    let keys = kept::kept(engine).await?;
    if as_json {
        let shown =
            |key: &Key| json!({"name": key.name, "scopes": key.scopes, "server_tools": key.server_tools});
        data(&json!(keys.iter().map(shown).collect::<Vec<_>>()).to_string());
        return Ok(Exit::Done);
    }
    for key in keys {
        let scopes: Vec<&str> = key.scopes.iter().map(|scope| scope.name()).collect();
        let tools = if key.server_tools { "; with the user's servers" } else { "" };
        data(&format!("{}  {}{tools}", printable(&key.name), scopes.join(", ")));
    }
    Ok(Exit::Done)
}

async fn make(engine: &Engine, add: Add) -> Result<Exit, Problem> {
    let known: Vec<String> = kept::kept(engine).await?.into_iter().map(|key| key.name).collect();
    let name = kept::new_name(&add.name, &known)
        .map_err(|problem| Problem { code: "usage".to_owned(), ..problem })?;
    let mut key = Key::fresh(name).with_server_tools(add.server_tools);
    if !add.scope.is_empty() {
        key = key.with_scopes(add.scope.into_iter().map(Scope::from).collect::<Vec<_>>());
    }
    if let Kept::ForThisSession(reason) = kept::keep(engine, &key).await? {
        return Err(Problem::new("no_keyring", format!("the key could not be kept: {reason}"))
            .hint("Start a keyring (GNOME Keyring, KWallet, KeePassXC)."));
    }
    if add.json {
        data(&json!({"name": key.name, "key": key.secret(), "scopes": key.scopes}).to_string());
    } else {
        data(key.secret());
        aside("This is the only time that the key is shown.");
    }
    Ok(Exit::Done)
}

async fn revoke(engine: &Engine, name: &str) -> Result<Exit, Problem> {
    if engine.forget_api_key(name).await? {
        return Ok(Exit::Done);
    }
    Err(Problem::new("usage", format!("there is no key `{}`", printable(name))))
}
