//! Providers of remote models: add an endpoint, what they offer, the test of a model.
//!
//! Invariant: a secret is asked for where logins are, and is never printed.

use clap::Args;
use clap::builder::RangedI64ValueParser;
use lectern_app::Engine;
use lectern_app::providers::WAIT_SECONDS;
use lectern_app::view::{
    Price, Problem, ProviderDraft, ProviderKind, ProviderOptions, RemoteDraft, SignIn, SignInKind,
};
use serde_json::json;

use super::Json;
use super::login::secret;
use super::told::{found_line, print_test, provider_line};
use super::words::{self, line};
use crate::exit::Exit;
use crate::interrupt::Interrupts;
use crate::output::{aside, printable};

/// An endpoint to add.
#[derive(Debug, Args)]
pub struct AddEndpoint {
    /// Its address, e.g. http://localhost:11434/v1
    pub address: String,
    /// A name for it
    #[arg(long)]
    pub name: Option<String>,
    /// Put this model of it on the list; can be given more than once [default: the only one that it offers]
    #[arg(long, value_name = "NAME")]
    pub model: Vec<String>,
    /// It wants a key, which is read from the terminal or from standard input
    #[arg(long)]
    pub key: bool,
    #[command(flatten)]
    pub waits: Waits,
    #[command(flatten)]
    pub json: Json,
}

/// How long a provider is waited for.
#[derive(Clone, Copy, Debug, Args)]
pub struct Waits {
    /// Seconds until the first byte of an answer [default: 300]
    #[arg(long, value_name = "N", value_parser = seconds())]
    wait_seconds: Option<u32>,
    /// Seconds between two pieces of an answer [default: 120]
    #[arg(long, value_name = "N", value_parser = seconds())]
    stall_seconds: Option<u32>,
}

fn seconds() -> RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(i64::from(*WAIT_SECONDS.start())..=i64::from(*WAIT_SECONDS.end()))
}

impl Waits {
    /// Whether any is said.
    pub fn said(self) -> bool {
        self.wait_seconds.is_some() || self.stall_seconds.is_some()
    }

    /// The options, with what is said here.
    pub fn over(self, options: ProviderOptions) -> ProviderOptions {
        ProviderOptions {
            wait_seconds: self.wait_seconds.or(options.wait_seconds),
            stall_seconds: self.stall_seconds.or(options.stall_seconds),
            ..options
        }
    }
}

/// What is said of a remote model that is added.
#[derive(Debug, Args)]
pub struct Said {
    /// A name for a remote model
    #[arg(long)]
    pub name: Option<String>,
    /// What a remote model costs per million tokens: read, written, currency, e.g. 0.30,2.50,EUR
    #[arg(long, value_name = "IN,OUT,CURRENCY")]
    pub price: Option<String>,
    /// Tokens of context of a remote model
    #[arg(long, value_name = "N")]
    pub context: Option<u32>,
}

/// Adds a model of a provider, when `text` names one.
pub fn add(engine: &Engine, text: &str, said: &Said, as_json: bool) -> Result<bool, Problem> {
    let Some((provider, model)) = text.split_once('/') else { return Ok(false) };
    if std::path::Path::new(text).exists() || engine.provider(&provider.into()).is_err() {
        return Ok(false);
    }
    let mut draft = draft(provider, model);
    draft.name.clone_from(&said.name);
    draft.price = said.price.as_deref().map(price).transpose()?;
    draft.facts.context_length = said.context;
    let view = engine.add_remote_model(draft)?;
    match as_json {
        true => words::json(&view),
        false => line(&format!("added {}", words::model(&view))),
    }
    Ok(true)
}

fn draft(provider: &str, model: &str) -> RemoteDraft {
    RemoteDraft {
        provider: provider.into(),
        model: model.to_owned(),
        name: None,
        price: None,
        facts: Default::default(),
    }
}

fn price(text: &str) -> Result<Price, Problem> {
    let bad =
        || Problem::new("bad_price", format!("`{text}` is no price")).hint("E.g. --price 0.30,2.50,EUR");
    let parts: Vec<&str> = text.split(',').map(str::trim).collect();
    let [input, output, currency] = parts.as_slice() else { return Err(bad()) };
    let amount = |text: &str| text.parse::<f64>().map_err(|_| bad());
    Ok(Price {
        input: amount(input)?,
        output: amount(output)?,
        cached: None,
        currency: (*currency).to_owned(),
    })
}

/// All providers.
pub fn providers(engine: &Engine, as_json: bool) {
    let (providers, found) = (engine.providers(), engine.found_login());
    if as_json {
        return words::json(&json!({"providers": providers, "found_login": found}));
    }
    for provider in &providers {
        line(&provider_line(provider));
        if let Some(problem) = &provider.problem {
            line(&format!("    {}", problem.message));
        }
    }
    if let Some(found) = found {
        line(&format!("found, and not used unless you say so: {}", found_line(&found)));
    }
}

/// Adds an OpenAI-compatible endpoint, and a model of it.
pub async fn add_endpoint(engine: &Engine, asked: AddEndpoint) -> Result<(), Problem> {
    let draft = ProviderDraft {
        kind: ProviderKind::OpenaiCompatible,
        name: asked.name,
        project: None,
        location: None,
        base_url: Some(asked.address),
        sign_in: Some(if asked.key { SignInKind::Key } else { SignInKind::None }),
        options: asked.waits.over(ProviderOptions::default()),
    };
    if asked.key {
        // In memory it would be gone when this process ends.
        engine.check_keyring().await?;
    }
    let key = if asked.key { Some(secret("key: ").await?) } else { None };
    let provider = engine.add_provider(draft)?;
    if let Some(key) = key
        && let Err(problem) = engine.sign_in_provider(&provider.id, SignIn::Key { key }).await
    {
        // Nothing was added when the key was not taken.
        let _ = engine.remove_provider(&provider.id).await;
        return Err(problem);
    }
    let offered = engine.provider_models(&provider.id).await;
    let mut wanted = asked.model;
    if let (true, Ok(offered)) = (wanted.is_empty(), &offered)
        && let [only] = offered.as_slice()
    {
        wanted.push(only.model.clone());
    }
    let mut added = Vec::new();
    for model in &wanted {
        added.push(engine.add_remote_model(self::draft(&provider.id.0, model))?);
    }
    let provider = engine.provider(&provider.id)?;
    if asked.json.json {
        let (offered, problem) =
            offered.map_or_else(|problem| (None, Some(problem)), |all| (Some(all), None));
        words::json(&json!({"provider": provider, "models": added, "offered": offered, "problem": problem}));
        return Ok(());
    }
    line(&format!("added {}", provider_line(&provider)));
    added.iter().for_each(|model| line(&format!("added {}", words::model(model))));
    match offered {
        Err(problem) => aside(&printable(&format!("! it does not say what it offers: {}", problem.message))),
        Ok(offered) if added.is_empty() => {
            let names = offered.iter().map(|model| format!("  {}/{}", provider.id, model.model));
            line(&format!("it offers:\n{}", names.collect::<Vec<_>>().join("\n")));
            line(
                "use one: lectern ask --model PROVIDER/MODEL …, or keep it: lectern models add PROVIDER/MODEL",
            );
        }
        Ok(_) => {}
    }
    Ok(())
}

/// Takes a provider off the list; its secret is deleted.
pub async fn remove(engine: &Engine, id: &str, as_json: bool) -> Result<(), Problem> {
    let removed = engine.remove_provider(&id.into()).await?;
    match as_json {
        true => words::json(&json!({"provider": removed.provider, "models": removed.models})),
        false => {
            let models = removed.models.len();
            line(&format!("removed {id}, its {models} models and its secret"));
        }
    }
    Ok(())
}

/// What a provider offers.
pub async fn available(engine: &Engine, id: &str, as_json: bool) -> Result<(), Problem> {
    let offered = engine.provider_models(&id.into()).await?;
    if as_json {
        words::json(&json!({"models": offered}));
        return Ok(());
    }
    for model in offered {
        let name = model.name.map(|name| format!("  {name}")).unwrap_or_default();
        let length =
            model.facts.context_length.map(|tokens| format!("  {tokens} tokens")).unwrap_or_default();
        let added = model.added.map(|id| format!("  on the list as {id}")).unwrap_or_default();
        line(&format!("{id}/{}{name}{length}{added}", model.model));
    }
    Ok(())
}

/// Tests a model, by its id or as PROVIDER/MODEL.
pub async fn test(engine: &Engine, id: Option<String>, as_json: bool) -> Result<Exit, Problem> {
    // The one that was named is the one of this run.
    drop(id);
    let id = engine.model();
    let cancel = Interrupts::listen().next();
    let tested = match engine.test_model(&id, cancel).await {
        Err(problem) if problem.code == "cancelled" => return Ok(Exit::Cancelled),
        other => other?,
    };
    let passed = tested.answer.passed && tested.call.as_ref().is_none_or(|call| call.passed);
    match as_json {
        true => words::json(&tested),
        false => print_test(&tested),
    }
    Ok(if passed { Exit::Done } else { Exit::Failed })
}
