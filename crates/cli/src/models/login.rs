//! Signing in to providers and out again.
//!
//! Invariant: a secret comes from a file, standard input or the terminal without being shown, never from an argument, and
//! is never printed.

use std::io::Read;
use std::path::PathBuf;

use clap::Args;
use lectern_app::Engine;
use lectern_app::view::{Problem, ProviderDraft, ProviderKind, ProviderView, SignIn, SignInKind};

use super::Json;
use super::remote::Waits;
use super::told::{found_line, provider_line};
use super::words::{self, line};
use crate::dialog;
use crate::output::{aside, printable};

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
    pub waits: Waits,
    #[command(flatten)]
    pub json: Json,
}

/// Signs in; a provider of the kind is added when there is none.
pub async fn login(engine: &Engine, asked: Login) -> Result<(), Problem> {
    let provider = provider_for(engine, &asked)?;
    let kind = sign_in_kind(&asked, &provider.view);
    if matches!(kind, SignInKind::Key | SignInKind::ServiceAccount) {
        // In memory it would be gone when this process ends.
        if let Err(problem) = engine.check_keyring_for(&provider.view.id).await {
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
    let changes =
        asked.project.is_some() || asked.location.is_some() || asked.base_url.is_some() || asked.waits.said();
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
                options: asked.waits.over(view.options),
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
                options: asked.waits.over(Default::default()),
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

/// A secret, from the terminal without being shown, or from standard input.
pub async fn secret(prompt: &str) -> Result<String, Problem> {
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
