//! Providers of remote models: add an endpoint, sign in and out, what they offer, the test of a model.
//!
//! Invariant: a secret comes from a file, standard input or the terminal without being shown, never from an argument, and
//! is never printed.

use std::io::Read;
use std::path::PathBuf;

use clap::Args;
use lectern_app::Engine;
use lectern_app::view::{
    FoundLogin, LoginView, ModelTest, Price, Problem, ProviderDraft, ProviderKind, ProviderView, Reach,
    RemoteDraft, SecretPlace, SignIn, SignInKind, TestedReply,
};
use serde_json::json;

use super::Json;
use super::words::{self, line};
use crate::dialog;
use crate::exit::Exit;
use crate::interrupt::Interrupts;
use crate::output::{aside, one_line, printable};

/// Characters of a reply that a test shows.
const SHOWN: usize = 200;

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
    pub json: Json,
}

/// Where to sign in, and how.
#[derive(Debug, Args)]
pub struct Login {
    /// A provider by its id, or a kind: vertex, vertex-express, gemini
    pub provider: String,
    /// Sign in with the key file of a service account; - reads it from standard input. The file is not kept
    #[arg(long, value_name = "FILE", group = "how")]
    pub service_account: Option<PathBuf>,
    /// Sign in with the application-default credentials of this computer, after they were shown
    #[arg(long, group = "how")]
    pub application_default: bool,
    /// Sign in as this machine, in Google's cloud
    #[arg(long, group = "how")]
    pub metadata: bool,
    /// Sign in with a key, which is read from the terminal or from standard input
    #[arg(long, group = "how")]
    pub key: bool,
    /// Say yes to the application-default credentials without being asked
    #[arg(long)]
    pub yes: bool,
    /// The project in Google Cloud [default: that of the credentials]
    #[arg(long)]
    pub project: Option<String>,
    /// The location: a region, global, us or eu [default: global]
    #[arg(long)]
    pub location: Option<String>,
    /// The address, in place of the provider's own
    #[arg(long, value_name = "URL")]
    pub base_url: Option<String>,
    #[command(flatten)]
    pub json: Json,
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
        options: Default::default(),
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

/// Signs in; a provider of the kind is added when there is none.
pub async fn login(engine: &Engine, asked: Login) -> Result<(), Problem> {
    let provider = provider_for(engine, &asked)?;
    let kind = sign_in_kind(&asked, &provider.view);
    if matches!(kind, SignInKind::Key | SignInKind::ServiceAccount) {
        // In memory it would be gone when this process ends.
        if let Err(problem) = engine.check_keyring().await {
            return Err(give_up(engine, provider, problem).await);
        }
    }
    let done = match with(engine, &asked, kind).await {
        Ok(with) => engine.sign_in_provider(&provider.view.id, with).await,
        Err(problem) => Err(problem),
    };
    let signed_in = match done {
        Ok(signed_in) => signed_in,
        Err(problem) => return Err(give_up(engine, provider, problem).await),
    };
    if asked.json.json {
        words::json(&signed_in);
        return Ok(());
    }
    line(&format!("signed in to {}", provider_line(&signed_in.provider)));
    line(&format!("what it offers: lectern models available {}", signed_in.provider.id));
    Ok(())
}

struct For {
    view: ProviderView,
    new: bool,
}

async fn give_up(engine: &Engine, provider: For, problem: Problem) -> Problem {
    if provider.new {
        // What can't be signed in to was not asked for.
        let _ = engine.remove_provider(&provider.view.id).await;
    }
    problem
}

fn provider_for(engine: &Engine, asked: &Login) -> Result<For, Problem> {
    let kind = match asked.provider.as_str() {
        "vertex" => Some(ProviderKind::Vertex),
        "vertex-express" => Some(ProviderKind::VertexExpress),
        "gemini" => Some(ProviderKind::Gemini),
        _ => None,
    };
    let known =
        engine.providers().into_iter().find(|view| view.id.0 == asked.provider || Some(view.kind) == kind);
    let changes = asked.project.is_some() || asked.location.is_some() || asked.base_url.is_some();
    match (known, kind) {
        (Some(view), _) if !changes => Ok(For { view, new: false }),
        (Some(view), _) => {
            let draft = ProviderDraft {
                kind: view.kind,
                name: Some(view.name),
                project: asked.project.clone().or(view.project),
                location: asked.location.clone().or(view.location),
                base_url: asked.base_url.clone().or(view.base_url),
                sign_in: Some(view.sign_in),
                options: view.options,
            };
            Ok(For { view: engine.change_provider(&view.id, draft)?, new: false })
        }
        (None, Some(kind)) => {
            let draft = ProviderDraft {
                kind,
                name: None,
                project: asked.project.clone(),
                location: asked.location.clone(),
                base_url: asked.base_url.clone(),
                sign_in: None,
                options: Default::default(),
            };
            Ok(For { view: engine.add_provider(draft)?, new: true })
        }
        (None, None) => Err(Problem::new(
            "unknown_provider",
            format!("there is no provider `{}`", asked.provider),
        )
        .hint(
            "`lectern models providers` shows them; vertex, vertex-express and gemini are added when needed.",
        )),
    }
}

fn sign_in_kind(asked: &Login, provider: &ProviderView) -> SignInKind {
    if asked.service_account.is_some() {
        SignInKind::ServiceAccount
    } else if asked.application_default {
        SignInKind::ApplicationDefault
    } else if asked.metadata {
        SignInKind::Metadata
    } else if asked.key {
        SignInKind::Key
    } else {
        // What was not said: a key where one is usual, else what is piped in, else what is found.
        match provider.kind {
            ProviderKind::Gemini | ProviderKind::VertexExpress | ProviderKind::OpenaiCompatible => {
                SignInKind::Key
            }
            ProviderKind::Vertex if dialog::somebody_there() => SignInKind::ApplicationDefault,
            ProviderKind::Vertex => SignInKind::ServiceAccount,
        }
    }
}

async fn with(engine: &Engine, asked: &Login, kind: SignInKind) -> Result<SignIn, Problem> {
    Ok(match kind {
        SignInKind::Key => SignIn::Key { key: secret("key: ").await? },
        SignInKind::ServiceAccount => {
            let json = match asked.service_account.as_deref() {
                Some(path) if path.as_os_str() != "-" => Engine::read_credentials(path)?,
                _ => from_stdin()?,
            };
            SignIn::ServiceAccount { json }
        }
        SignInKind::ApplicationDefault => agreed(engine, asked).await?,
        SignInKind::Metadata => SignIn::Metadata,
        SignInKind::None => SignIn::None,
    })
}

async fn agreed(engine: &Engine, asked: &Login) -> Result<SignIn, Problem> {
    let found = engine.found_login().ok_or_else(|| {
        Problem::new("no_login_found", "this computer has no application-default credentials").hint(
            "Make them with `gcloud auth application-default login`, or sign in with --service-account FILE.",
        )
    })?;
    if let Some(problem) = found.problem {
        return Err(problem);
    }
    if !asked.yes {
        aside(&printable(&format!("found: {}", found_line(&found))));
        let somebody = dialog::somebody_there();
        if !somebody || !dialog::confirmed("Let Lectern use them?").await {
            return Err(Problem::new(
                "not_agreed",
                "the credentials that were found are not used without a yes",
            )
            .hint("Say yes when you are asked, or add --yes."));
        }
    }
    Ok(SignIn::ApplicationDefault { path: found.path, account: found.account })
}

/// Signs out.
pub async fn logout(engine: &Engine, id: &str, as_json: bool) -> Result<(), Problem> {
    let provider = engine.sign_out_provider(&id.into()).await?;
    match as_json {
        true => words::json(&provider),
        false => line(&format!("signed out of {}", provider_line(&provider))),
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

fn print_test(tested: &ModelTest) {
    line(&format!("{}", tested.model));
    reply("answer", &tested.answer);
    match &tested.call {
        Some(call) => reply("tool call", call),
        None => line("tool call  not tried"),
    }
}

fn reply(what: &str, reply: &TestedReply) {
    let mark = if reply.passed { "passed" } else { "failed" };
    let usage = &reply.usage;
    line(&format!(
        "{what}  {mark} in {:.1} s; {} tokens read ({} of them kept by the provider), {} written ({} thinking)",
        f64::from(reply.total_ms) / 1_000.0,
        usage.prompt_tokens,
        usage.reused_tokens,
        usage.generated_tokens,
        usage.thinking_tokens.unwrap_or(0),
    ));
    if !reply.text.trim().is_empty() {
        line(&format!("    “{}”", one_line(reply.text.trim(), SHOWN)));
    }
    for call in &reply.calls {
        line(&format!("    {}({})", call.tool, one_line(&call.arguments, SHOWN)));
    }
    if let Some(problem) = &reply.problem {
        line(&format!("    {}", problem.message));
        problem.hint.iter().for_each(|hint| line(&format!("    {hint}")));
    }
}

fn provider_line(provider: &ProviderView) -> String {
    let login = match &provider.login {
        LoginView::NotNeeded => "asked as nobody".to_owned(),
        LoginView::SignedOut => "signed out".to_owned(),
        LoginView::SignedIn { account, place, from, .. } => {
            let who = account.as_deref().map(|account| format!(" as {account}")).unwrap_or_default();
            let place = match place {
                SecretPlace::Keyring => "secret in the keyring".to_owned(),
                SecretPlace::Session => "secret in memory until Lectern ends".to_owned(),
                SecretPlace::Environment => {
                    format!("secret in {}", from.as_deref().unwrap_or("the environment"))
                }
                SecretPlace::File => format!("credentials in {}", from.as_deref().unwrap_or("a file")),
                SecretPlace::Machine => "account of this machine".to_owned(),
            };
            format!("signed in{who}, {place}")
        }
    };
    let reach = match provider.reach {
        Reach::ThisComputer => "this computer",
        Reach::PrivateNetwork => "your network",
        Reach::Internet => "the internet",
    };
    format!("{}  {}  {} ({reach})  {login}", provider.id, provider.name, provider.address)
}

fn found_line(found: &FoundLogin) -> String {
    let kind = match found.kind.as_deref() {
        Some("authorized_user") => "a person's login",
        Some("service_account") => "a service account",
        Some(_) | None => "a file that can't be used",
    };
    let account = found.account.as_deref().map(|account| format!(" of {account}")).unwrap_or_default();
    let project = found.project.as_deref().map(|project| format!(", project {project}")).unwrap_or_default();
    let from = found.variable.as_deref().map(|name| format!(" (named by {name})")).unwrap_or_default();
    format!("{kind}{account}{project}, in {}{from}", found.path)
}

async fn secret(prompt: &str) -> Result<String, Problem> {
    match dialog::somebody_there() {
        true => Ok(dialog::hidden_answer(prompt.to_owned()).await.unwrap_or_default()),
        false => from_stdin(),
    }
}

fn from_stdin() -> Result<String, Problem> {
    let mut text = String::new();
    let read = std::io::stdin().lock().take(1 << 20).read_to_string(&mut text);
    read.map_err(|error| Problem::new("bad_credentials", format!("read standard input: {error}")))?;
    Ok(text)
}
