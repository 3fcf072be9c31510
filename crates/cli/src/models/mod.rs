//! `lectern models`: what answers here, what could, and what this machine carries.
//!
//! Invariant: every command has `--json` with a shape that docs/models.md describes; without it, what is printed is for
//! people and may change.

mod change;
mod download;
mod folders;
mod login;
mod presets;
mod remote;
mod show;
mod told;
mod words;

use std::path::PathBuf;

use clap::Subcommand;
use lectern_app::view::Problem;
use lectern_app::{Engine, EngineOptions, Home};

use crate::exit::Exit;
use crate::mcp::secret::{self, Named, Secret};

/// The models that can answer.
#[derive(Debug, Subcommand)]
pub enum Models {
    /// List them
    List(Json),
    /// Say what a GGUF file holds, and whether it suits this machine
    Inspect {
        /// The file, or a model of the list
        path: PathBuf,
        /// Tokens of context to count the memory with
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
        context: Option<u32>,
        #[command(flatten)]
        json: Json,
    },
    /// Add a GGUF file, which stays where it is, or a model of a provider
    Add {
        /// The file, or PROVIDER/MODEL
        path: PathBuf,
        #[command(flatten)]
        said: remote::Said,
        #[command(flatten)]
        json: Json,
    },
    /// Choose the model that answers when none is named
    Use {
        /// Its id
        id: String,
    },
    /// Show how a model writes: each setting, its value and where that comes from
    Show {
        /// Its id
        id: String,
        #[command(flatten)]
        json: Json,
    },
    /// Change how a model writes
    Set {
        /// Its id
        id: String,
        /// Settings as KEY=VALUE; KEY= unsets one
        #[arg(required_unless_present = "reset", conflicts_with = "reset", value_name = "KEY=VALUE")]
        settings: Vec<String>,
        /// Forget all that was set for it
        #[arg(long)]
        reset: bool,
        #[command(flatten)]
        json: Json,
    },
    /// Values of several settings under a name: list them, save one, delete one
    Presets(presets::Presets),
    /// Take a model off the list; a file that Lectern downloaded is deleted with it, others stay
    #[command(visible_alias = "remove")]
    Rm(change::Rm),
    /// Download a model: owner/name or owner/name:Q4_K_M of Hugging Face, or an address
    Download(download::Target),
    /// The downloads: list them, pause, resume or cancel one
    Downloads(download::Downloads),
    /// Test for five seconds how fast a model is here
    Bench {
        /// A model by its id, or a GGUF file [default: the chosen one]
        model: Option<String>,
        #[command(flatten)]
        json: Json,
    },
    /// Say whether a model suits this machine, and how fast it would be
    Advise {
        /// A model by its id, a GGUF file, or a repository [default: the curated list]
        what: Option<String>,
        /// Tokens of context to count with
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
        context: Option<u32>,
        #[command(flatten)]
        json: Json,
    },
    /// Ask a model one tiny question and one that needs a tool, and show what comes back
    Test {
        /// Its id [default: the chosen one]
        id: Option<String>,
        #[command(flatten)]
        json: Json,
    },
    /// The providers of remote models, and who is signed in there
    Providers(Json),
    /// Add an OpenAI-compatible endpoint: Ollama, LM Studio, vLLM, llama-server, OpenRouter, …
    AddEndpoint(remote::AddEndpoint),
    /// Sign in to Vertex AI or the Gemini API, or enter the key of an endpoint
    Login(login::Login),
    /// Sign out of a provider; its secret is deleted
    Logout {
        /// Its id
        provider: String,
        #[command(flatten)]
        json: Json,
    },
    /// List the models that a provider offers
    Available {
        /// Its id
        provider: String,
        #[command(flatten)]
        json: Json,
    },
    /// Take a provider off the list, its models and its secret
    RemoveProvider {
        /// Its id
        provider: String,
        #[command(flatten)]
        json: Json,
    },
    /// Good small models that call tools
    Curated(Json),
    /// What this machine has
    Hardware(Json),
    /// The folders whose models are on the list
    Folders(folders::Folders),
    /// What is saved of conversations so that they go on at once: how much, and delete it all
    States(change::States),
    /// Keep the token of Hugging Face in the keyring; it is read from the terminal or from standard input
    Token {
        /// Forget it
        #[arg(long)]
        remove: bool,
    },
}

/// How it is printed.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Json {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Does what was asked.
pub async fn run(home: impl Fn() -> Result<Home, Problem>, models: Models) -> Result<Exit, Problem> {
    let home = home()?;
    if let Models::Token { remove } = models {
        let named = Named { name: "huggingface".to_owned(), input: false, json: false };
        return secret::run(home, if remove { Secret::Remove(named) } else { Secret::Set(named) }).await;
    }
    // A model that is not on the list is tested as if it were named for this run.
    let model = if let Models::Test { id, .. } = &models { id.clone() } else { None };
    let options = EngineOptions { without_servers: true, model, ..EngineOptions::default() };
    let engine = Engine::open(home, options)?;
    let done = act(&engine, models).await;
    engine.shutdown().await;
    done
}

async fn act(engine: &Engine, models: Models) -> Result<Exit, Problem> {
    match models {
        Models::List(Json { json }) => show::list(engine, json).await?,
        Models::Inspect { path, context, json } => show::inspect(engine, &path, context, json.json).await?,
        Models::Add { path, said, json } => {
            let named = path.to_string_lossy();
            if !remote::add(engine, &named, &said, json.json)? {
                change::add(engine, &path, json.json)?;
            }
        }
        Models::Test { id, json } => return remote::test(engine, id, json.json).await,
        Models::Providers(Json { json }) => remote::providers(engine, json),
        Models::AddEndpoint(asked) => remote::add_endpoint(engine, asked).await?,
        Models::Login(asked) => login::login(engine, asked).await?,
        Models::Logout { provider, json } => login::logout(engine, &provider, json.json).await?,
        Models::Available { provider, json } => remote::available(engine, &provider, json.json).await?,
        Models::RemoveProvider { provider, json } => remote::remove(engine, &provider, json.json).await?,
        Models::Use { id } => change::choose(engine, &id).await?,
        Models::Show { id, json } => _ = crate::generation::show(engine, &id.as_str().into(), json.json)?,
        Models::Set { id, settings, reset, json } => {
            let id = id.as_str().into();
            if reset {
                crate::generation::reset(engine, &id, json.json)?;
            } else {
                crate::generation::set(engine, &id, &settings, json.json).await?;
            }
        }
        Models::Presets(asked) => presets::run(engine, asked)?,
        Models::Rm(rm) => change::rm(engine, rm).await?,
        Models::Download(target) => return download::download(engine, target).await,
        Models::Downloads(asked) => return download::downloads(engine, asked).await,
        Models::Bench { model, json } => show::bench(engine, model, json.json).await?,
        Models::Advise { what, context, json } => show::advise(engine, what, context, json.json).await?,
        Models::Curated(Json { json }) => show::curated(engine, json).await?,
        Models::Hardware(Json { json }) => show::hardware(engine, json).await?,
        Models::Folders(asked) => folders::run(engine, asked).await?,
        Models::States(asked) => change::states(engine, asked).await?,
        // Dealt with before the engine was opened.
        Models::Token { .. } => {}
    }
    Ok(Exit::Done)
}
