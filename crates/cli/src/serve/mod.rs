//! `lectern serve`: the local HTTP API, until Ctrl-C.
//!
//! Invariant: standard output begins with the address and the key; the key is printed nowhere else.

mod keys;

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, Subcommand};
use lectern_api::{ApiOptions, Key, Keys, PORT, Server, kept};
use lectern_app::view::Problem;
use lectern_app::{Engine, Home};
use serde_json::json;

use crate::args::Use;
use crate::ask;
use crate::exit::Exit;
use crate::interrupt::Interrupts;
use crate::output::{aside, data, printable};

/// Serve models and tools over HTTP, as OpenAI does, on this computer
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Serve {
    #[command(subcommand)]
    command: Option<Keyed>,
    #[command(flatten)]
    how: How,
}

/// What else can be done.
#[derive(Debug, Subcommand)]
enum Keyed {
    /// The keys that clients need
    #[command(subcommand)]
    Keys(keys::Asked),
}

/// How it is served.
#[derive(Debug, Args)]
struct How {
    /// The port; 0 picks a free one
    #[arg(long, value_name = "N", default_value_t = PORT)]
    port: u16,
    /// The address to listen at; any other than the default lets other computers ask
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    bind: IpAddr,
    /// A web page that may ask from the browser, by its origin; can be given more than once
    #[arg(long, value_name = "URL")]
    origin: Vec<String>,
    /// A name of this computer by which it may be asked from elsewhere; can be given more than once
    #[arg(long, value_name = "NAME")]
    host: Vec<String>,
    /// The model that answers when none is named: an id, a GGUF file, or PROVIDER/MODEL
    #[arg(long, value_name = "ID|PATH")]
    model: Option<String>,
    /// Ask the model's provider at this address in place of its own
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
    /// A folder of notes, in place of the vaults in the settings; can be given more than once
    #[arg(long, value_name = "DIR")]
    vault: Vec<PathBuf>,
    /// A file of `mcpServers`; its servers are used in place of those in the settings
    #[arg(long, value_name = "FILE")]
    mcp_config: Option<PathBuf>,
    /// Tools that run without asking: all, server:ID, tool:NAME or a tool's name; can be given more than once
    #[arg(long, value_name = "RULE")]
    allow: Vec<String>,
    /// Model calls for one answer at most
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    max_steps: Option<u32>,
    /// Print the address and the key as one line of JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    generation: crate::generation::Generation,
}

/// Serves until it is stopped.
pub async fn run(home: impl Fn() -> Result<Home, Problem>, asked: Box<Serve>) -> Result<Exit, Problem> {
    let Serve { command, how } = *asked;
    if let Some(Keyed::Keys(keys)) = command {
        return keys::run(home()?, keys).await;
    }
    let stopped = Interrupts::listen().next();
    let (options, json, named) = (api_options(&how)?, how.json, how.model.is_some());
    let engine = Engine::open(home()?, ask::options(&of(how))?)?;
    if let Some(problem) = unusable(&engine).filter(|_| named) {
        engine.shutdown().await;
        return Err(problem);
    }
    let (good, key, unkept) = kept::with_default(&engine).await?;
    if unkept.is_some() {
        aside("! there is no keyring, so the key is good until this ends");
    }
    let keys = Keys::new(good);
    if !options.bind.is_loopback() {
        aside("! other computers can ask here, and what they send and get is not encrypted");
    }
    let started = Server::start(Arc::new(engine.clone()), keys.clone(), options).await;
    let server = match started {
        Ok(server) => server,
        Err(error) => {
            engine.shutdown().await;
            return Err(Problem::from_error("no_listener", &error).hint("Name another port with --port."));
        }
    };
    let own: Vec<Key> = unkept.is_some().then(|| key.clone()).into_iter().collect();
    let following = tokio::spawn(kept::follow(engine.clone(), keys, move || own.clone()));
    say(&server, &key, json);
    stopped.cancelled().await;
    following.abort();
    server.end().await;
    engine.shutdown().await;
    Ok(Exit::Done)
}

/// Why the model that answers by itself can't: who named it is told now, not with the first question.
fn unusable(engine: &Engine) -> Option<Problem> {
    engine.answering_models().into_iter().next()?.problem
}

fn say(server: &Server, key: &Key, as_json: bool) {
    let (url, secret) = (server.url(), key.secret());
    if as_json {
        data(&json!({"url": url, "key": secret}).to_string());
        return;
    }
    data(&format!("address  {url}/v1"));
    data(&format!("key      {secret}"));
    data("");
    data(&format!("curl {url}/v1/chat/completions -H 'Authorization: Bearer {secret}' \\"));
    data(
        "  -H 'Content-Type: application/json' -d '{\"messages\":[{\"role\":\"user\",\"content\":\"Hello\"}]}'",
    );
}

fn api_options(how: &How) -> Result<ApiOptions, Problem> {
    let origin = |text: &String| {
        let url: Option<url::Url> = text.parse().ok();
        url.filter(|url| url.origin().is_tuple()).ok_or_else(|| {
            Problem::new("usage", format!("`{}` is not the origin of a web page", printable(text)))
                .hint("Name it as in http://localhost:3000.")
        })
    };
    if let Some(wrong) = how.host.iter().find(|name| !is_host(name)) {
        return Err(Problem::new("usage", format!("`{}` is not the name of a computer", printable(wrong)))
            .hint("Name it as in desk.lan, without a scheme and a port."));
    }
    Ok(ApiOptions {
        bind: how.bind,
        port: how.port,
        origins: how.origin.iter().map(origin).collect::<Result<_, _>>()?,
        hosts: how.host.clone(),
        ..ApiOptions::default()
    })
}

fn is_host(name: &str) -> bool {
    let url: Result<url::Url, _> = format!("http://{name}/").parse();
    url.is_ok_and(|url| url.host_str().is_some_and(|host| host.eq_ignore_ascii_case(name)))
}

fn of(how: How) -> Use {
    Use {
        model: how.model,
        base_url: how.base_url,
        vault: how.vault,
        mcp_config: how.mcp_config,
        allow: how.allow,
        max_steps: how.max_steps,
        generation: how.generation,
        // Servers that ask outside of an answer get a no: nobody sits here.
        elicitation: Some(crate::question::Elicitation::Decline),
        ..Use::default()
    }
}
