//! The one thing that shells talk to: conversations, turns, models, vaults and servers.
//!
//! Invariant: opening never waits for a server or a model; what a shell asks for is answered from memory or disk.

mod ahead;
mod answering;
mod choice;
mod conversations;
mod enclosed;
mod files;
mod generation;
mod kept;
mod library;
mod news;
mod providers;
mod resources;
mod rules;
mod servers;
mod trust;
mod turns;
mod watch;
mod workspace;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lectern_core::guard::Guard;
use lectern_core::{ModelId, PermissionBook, Policy, Rule, ServerId, Store, Turns};
use lectern_mcp::{Host, HostOptions, ServerConfig};
use tokio::sync::broadcast;
use url::Url;

use crate::approvals::Approvals;
use crate::home::Home;
use crate::library::Library;
use crate::models::{self, Model, Models, Source};
use crate::options::EngineOptions;
use crate::problem::of_store;
use crate::providers::Providers;
use crate::sample;
use crate::secrets::Keyring;
use crate::settings::Settings;
use crate::vaults::Vault;
use crate::view::{AppNews, AppView, ModelView, Problem, ProviderId, VaultView};

pub use answering::Answering;
pub use kept::KeptKey;
pub use news::News;
pub use servers::{NeededValue, ValueKind};
use servers::{Removed, Unusable};
pub use workspace::ToolsIn;

/// Everything that runs behind a shell. Clones are the same engine.
#[derive(Clone)]
pub struct Engine(Arc<Inner>);

struct Inner {
    home: Home,
    options: EngineOptions,
    executable: PathBuf,
    /// The servers that were not disabled when it was opened.
    enabled: Vec<ServerId>,
    // A std mutex: nothing awaits while it is held.
    state: Mutex<State>,
    store: Store,
    turns: Turns,
    permissions: Arc<PermissionBook>,
    approvals: Approvals,
    models: Models,
    providers: Arc<Providers>,
    host: Arc<Host>,
    secrets: Keyring,
    news: broadcast::Sender<AppNews>,
    /// Held from looking at the models until their list is told.
    telling: Mutex<()>,
    /// Held while the settings change on disk and in the state.
    changing: Mutex<()>,
    ahead: ahead::Ahead,
    library: Library,
}

/// What changes while the engine runs, beside the conversations.
struct State {
    settings: Settings,
    /// The model that answers next.
    model: Model,
    /// The vaults that are served.
    vaults: Vec<Vault>,
    /// Entries of the settings that can't be run.
    unusable: Vec<Unusable>,
    /// Servers that were removed and can come back, the oldest first.
    removed: Vec<Removed>,
    /// Providers that were removed and can come back, the oldest first.
    removed_providers: Vec<providers::Removed>,
}

impl Engine {
    /// Opens a home and starts its servers in the background.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn open(home: Home, options: EngineOptions) -> Result<Self, Problem> {
        let settings = Settings::read(&home)?;
        let executable = executable(&options)?;
        let model = chosen_model(&settings, &options)?;
        let servers::Planned { vaults, mut configs, unusable } =
            servers::planned(&home, &settings, &options, &executable)?;
        let enabled: Vec<ServerId> =
            configs.iter().filter(|config| !config.disabled).map(|config| config.id.clone()).collect();
        configs.iter_mut().for_each(|config| config.disabled |= options.dormant);
        if vaults.iter().any(|vault| vault.sample) {
            sample::install(&home)?;
        }
        let store = Store::open(&home.store()).map_err(|error| of_store(&error))?;
        rules::note_found(&store, &options.who, &settings);
        let secrets = options.secrets.clone().unwrap_or_else(Keyring::of_system);
        let providers = Arc::new(Providers::new(secrets.clone(), elsewhere(&model, &options)?));
        let approvals = approvals(&store, &executable, &options, &vaults, &configs);
        let host_options = HostOptions {
            approval: Some(Arc::new(approvals.clone())),
            asker: options.asker.clone(),
            roots: servers::roots(&vaults).into(),
            workspace: Some(home.workspace()),
            ..servers::host_options(&home, &settings, secrets.clone())
        };
        let host = Arc::new(Host::start(configs, host_options));
        let inner = Inner {
            permissions: Arc::new(permissions(&home, &settings, &options, &store)),
            approvals,
            models: Models::new(home.clone(), &executable, Arc::clone(&providers)),
            providers,
            state: Mutex::new(State {
                settings,
                model,
                vaults,
                unusable,
                removed: Vec::new(),
                removed_providers: Vec::new(),
            }),
            turns: Turns::default(),
            news: broadcast::channel(256).0,
            telling: Mutex::default(),
            changing: Mutex::default(),
            ahead: ahead::Ahead::default(),
            library: Library::new(&home),
            home,
            options,
            executable,
            enabled,
            store,
            host,
            secrets,
        };
        let engine = Self(Arc::new(inner));
        engine.check_run()?;
        engine.follow_servers();
        engine.follow_settings();
        engine.follow_model_folders();
        engine.forget_left_over();
        Ok(engine)
    }

    /// All that a window needs to draw its frame.
    pub fn app_view(&self) -> AppView {
        let state = self.state();
        let (model, vaults) = (state.model.id.clone(), vault_views(&state.vaults));
        let listed = self.listed_models(&state);
        drop(state);
        AppView {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            home: self.0.home.path().display().to_string(),
            model,
            models: self.model_views(&listed),
            providers: self.providers(),
            downloads: self.downloads(),
            servers: self.servers(),
            vaults,
        }
    }

    /// Where everything is kept.
    pub fn home(&self) -> &Home {
        &self.0.home
    }

    /// Stops the turns, the servers and the model. The turns are settled and stored before it returns.
    pub async fn shutdown(&self) {
        let running = self.0.turns.all_running();
        for turn in &running {
            turn.cancel();
        }
        for turn in &running {
            turn.finished().await;
        }
        self.close_library().await;
        let forgotten = async { tokio::join!(self.forget_removed(), self.forget_removed_providers()) };
        tokio::join!(self.0.host.close(), self.0.models.close(), forgotten);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the settings on disk, and in the state: of two changes at once the later one stays there too.
    fn change_settings<T>(&self, change: impl FnOnce(&mut Settings) -> T) -> Result<T, Problem> {
        let _alone = self.0.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let (settings, given) = Settings::change(&self.0.home, change)?;
        self.state().settings = settings;
        Ok(given)
    }

    /// The models of the settings, and the one that was only named for this run.
    fn listed_models(&self, state: &State) -> Vec<Model> {
        let mut listed = models::of_settings(&state.settings);
        if !listed.iter().any(|model| model.id == state.model.id) {
            listed.push(state.model.clone());
        }
        listed
    }

    /// One of these models.
    fn listed(&self, id: &ModelId) -> Result<Model, Problem> {
        let listed = self.listed_models(&self.state());
        listed.into_iter().find(|model| model.id == *id).ok_or_else(|| models::unknown(id))
    }

    fn model_views(&self, listed: &[Model]) -> Vec<ModelView> {
        listed.iter().map(|model| self.model_view(model)).collect()
    }

    /// Tells everyone; nobody may be listening.
    fn tell(&self, news: AppNews) {
        let _ = self.0.news.send(news);
    }
}

fn vault_views(vaults: &[Vault]) -> Vec<VaultView> {
    vaults.iter().map(Vault::view).collect()
}

fn executable(options: &EngineOptions) -> Result<PathBuf, Problem> {
    match &options.executable {
        Some(path) => Ok(path.clone()),
        None => std::env::current_exe().map_err(|error| {
            Problem::new("no_executable", format!("find Lectern's own executable: {error}"))
        }),
    }
}

/// The model that was named for this run, else the one of the settings, else the starter.
fn chosen_model(settings: &Settings, options: &EngineOptions) -> Result<Model, Problem> {
    if let Some(text) = &options.model {
        let named = models::named(text, settings);
        let is_there = named.as_ref().is_ok_and(|model| model.path().is_none_or(Path::exists));
        return match &options.base_url {
            Some(base) if !is_there => models::at_address(text, base),
            Some(_) | None => named,
        };
    }
    let listed = models::of_settings(settings);
    let chosen = listed.iter().find(|model| Some(&model.id) == settings.model.as_ref());
    // The settings may name a model that is gone; the starter always answers.
    Ok(chosen.unwrap_or(&listed[0]).clone())
}

/// Where the provider of the model is asked in this run.
fn elsewhere(model: &Model, options: &EngineOptions) -> Result<Option<(ProviderId, Url)>, Problem> {
    let Some(text) = &options.base_url else { return Ok(None) };
    let url = crate::providers::address::read(text)?;
    match &model.source {
        Source::Remote(remote) => Ok(Some((remote.entry.provider.clone(), url))),
        Source::Starter | Source::File(_) => Err(Problem::new(
            "not_remote",
            format!("an address was given, but `{}` runs on this computer", model.id),
        )
        .hint("Name a model of a provider, or leave the address out.")),
    }
}

/// What the user approved, with what needs no word: our own servers, and those of a file that was named for this run.
fn approvals(
    store: &Store,
    executable: &Path,
    options: &EngineOptions,
    vaults: &[Vault],
    configs: &[ServerConfig],
) -> Approvals {
    let approvals = Approvals::new(store.clone(), executable);
    vaults.iter().for_each(|vault| approvals.of_vault(&vault.server));
    if options.mcp_config.is_some() {
        configs.iter().for_each(|config| approvals.for_this_run(config));
    }
    approvals
}

/// The rules of the settings and of this run; an "always" is kept in the settings.
fn permissions(home: &Home, settings: &Settings, options: &EngineOptions, store: &Store) -> PermissionBook {
    let policy = Policy { rules: settings.rules.clone() };
    let (home, store, who) = (home.clone(), store.clone(), options.who.clone());
    let guard = Guard::new(&home.path().display().to_string(), Home::GUARDED);
    let book = PermissionBook::new(policy).for_this_run(options.rules.clone()).guarding(guard);
    book.keep_with(move |server: &ServerId, rule: &Rule| {
        let kept = Settings::change(&home, |settings| {
            settings.rules.retain(|old| old.matches != rule.matches);
            settings.rules.push(rule.clone());
        });
        trust::note_always(&store, &who, server, rule);
        if let Err(problem) = kept {
            // The permission holds until Lectern ends; the next start asks again.
            tracing::warn!(%problem, "an “always” was not kept");
        }
    })
}

/// There is no such server.
fn unknown_server(id: &ServerId) -> Problem {
    Problem::new("unknown_server", format!("there is no server `{id}`"))
}

/// What the user said yes to is not what is there now.
fn changed_since_shown() -> Problem {
    Problem::new("changed_since_shown", "it is not what was shown any more, so nothing was done")
        .hint("Look at it as it is now, and decide again.")
}
