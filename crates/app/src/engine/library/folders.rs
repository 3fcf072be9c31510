//! Folders of model files, watched while the engine runs.
//!
//! Invariant: in folders of others nothing is written, moved or deleted.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use lectern_library::folders::{Program, models_in, ollama_models, other_programs, watch};

use super::super::Engine;
use crate::models;
use crate::settings::Settings;
use crate::vaults::slug;
use crate::view::{ModelFolderKind, ModelFolderView, Problem};

/// Between two looks at what was removed.
const LOOK_FOR_REMOVED: Duration = Duration::from_secs(60 * 60);

/// A model that is in a folder.
struct Found {
    path: PathBuf,
    /// A better name than that of its file.
    name: Option<String>,
}

impl Engine {
    /// Lectern's own folder, those that are watched, and those of other programs that could be.
    pub fn model_folders(&self) -> Vec<ModelFolderView> {
        let watched = self.state().settings.model_folders.clone();
        let own = (self.0.home.models(), ModelFolderKind::Library);
        let others = etcetera::home_dir().map(|home| other_programs(&home)).unwrap_or_default();
        let others = others.into_iter().filter(|other| !watched.contains(&other.folder));
        let others = others.map(|other| (other.folder, kind_of(other.program)));
        let watched = watched.iter().map(|folder| (folder.clone(), ModelFolderKind::Watched));
        let all: Vec<_> = std::iter::once(own).chain(watched).chain(others).collect();
        all.into_iter().map(|(folder, kind)| self.folder_view(&folder, kind)).collect()
    }

    /// Watches a folder: its models are on the list from now on.
    pub async fn add_model_folder(&self, path: &Path) -> Result<ModelFolderView, Problem> {
        let problem = |reason: &str| {
            Problem::new("bad_folder", format!("folder `{}`: {reason}", path.display()))
                .hint("Choose a folder that is there and can be read.")
        };
        let folder = std::path::absolute(path).map_err(|error| problem(&error.to_string()))?;
        std::fs::read_dir(&folder).map_err(|error| problem(&crate::vaults::reason(&error)))?;
        self.change_settings(|settings| {
            if !settings.model_folders.contains(&folder) {
                settings.model_folders.push(folder.clone());
            }
            // Who adds a folder again wants to see what is in it.
            settings.hidden_models.retain(|hidden| !hidden.starts_with(&folder));
        })?;
        self.scan_model_folders().await?;
        self.watch_model_folders();
        self.tell_models();
        Ok(self.folder_view(&folder, ModelFolderKind::Watched))
    }

    /// Watches a folder no more; its models leave the list, its files stay.
    pub async fn remove_model_folder(&self, path: &Path) -> Result<(), Problem> {
        let folder = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let was_there = self.change_settings(|settings| {
            let before = settings.model_folders.len();
            settings.model_folders.retain(|known| *known != folder);
            let was_there = settings.model_folders.len() < before;
            if was_there {
                let kept = |path: &Path| {
                    !path.starts_with(&folder)
                        || settings.model_folders.iter().any(|other| path.starts_with(other))
                };
                settings.models.retain(|entry| entry.path().is_none_or(kept));
                settings.hidden_models.retain(|hidden| kept(hidden));
            }
            was_there
        })?;
        if !was_there {
            return Err(Problem::new("unknown_folder", format!("{} is not watched", folder.display()))
                .hint("`lectern models folders` shows which are."));
        }
        self.choose_one_that_is_there();
        self.watch_model_folders();
        self.tell_models();
        Ok(())
    }

    /// Puts models on the list that are new in the folders. True when there were any.
    pub async fn scan_model_folders(&self) -> Result<bool, Problem> {
        let (own, watched) = (self.0.home.models(), self.state().settings.model_folders.clone());
        let look = move || {
            let own = models_in(&own).into_iter().filter(|path| !is_starter(path));
            let own = own.map(|path| Found { path, name: None });
            own.chain(watched.iter().flat_map(|folder| found_in(folder))).collect::<Vec<_>>()
        };
        let found = tokio::task::spawn_blocking(look)
            .await
            .map_err(|error| Problem::new("defect", format!("look into the folders of models: {error}")))?;
        let is_new = |settings: &Settings, found: &Found| {
            !settings.models.iter().any(|entry| entry.path() == Some(&found.path))
                && !settings.hidden_models.contains(&found.path)
        };
        // The settings are written only when there is something new.
        if !found.iter().any(|found| is_new(&self.state().settings, found)) {
            return Ok(false);
        }
        self.change_settings(|settings| {
            let mut added = false;
            for found in &found {
                if is_new(settings, found) {
                    models::add_named(settings, &found.path, found.name.as_deref());
                    added = true;
                }
            }
            added
        })
    }

    /// Looks into the folders and follows them for as long as there is an engine.
    pub(in crate::engine) fn follow_model_folders(&self) {
        let options = &self.0.options;
        self.follow_removed();
        // A shell that only looks, or that was given all it needs, is left with what the settings say.
        if options.without_servers
            || options.mcp_config.is_some()
            || options.only.is_some()
            || options.model.is_some()
        {
            return;
        }
        self.watch_model_folders();
        let engine = Arc::downgrade(&self.0);
        tokio::spawn(async move {
            let Some(engine) = engine.upgrade().map(Engine) else { return };
            engine.take_new_models().await;
        });
    }

    /// Deletes what was removed a day ago, now and for as long as there is an engine.
    fn follow_removed(&self) {
        let engine = Arc::downgrade(&self.0);
        tokio::spawn(async move {
            while let Some(engine) = engine.upgrade().map(Engine) {
                // It reads and deletes files. One that was ended half-way is gone on with at the next start.
                let _ = tokio::task::spawn_blocking(move || engine.purge_removed()).await;
                tokio::time::sleep(LOOK_FOR_REMOVED).await;
            }
        });
    }

    async fn take_new_models(&self) {
        match self.scan_model_folders().await {
            Ok(true) => self.tell_models(),
            Ok(false) => {}
            Err(problem) => tracing::warn!(%problem, "new models were not put on the list"),
        }
    }

    /// Watches the folders of the settings, in place of those before.
    fn watch_model_folders(&self) {
        let mut folders = vec![self.0.home.models()];
        // What is not there can't be watched, and it may be filled before the next start.
        let _ = crate::durable::create_private_folder(&self.0.home.models());
        folders.extend(self.state().settings.model_folders.iter().cloned());
        let (watch, mut changes) = match watch(&folders) {
            Ok(watching) => watching,
            Err(error) => {
                tracing::warn!(%error, "the folders of models are not watched");
                return;
            }
        };
        let engine = Arc::downgrade(&self.0);
        let task = tokio::spawn(async move {
            while changes.recv().await.is_some() {
                let Some(engine) = engine.upgrade().map(Engine) else { return };
                if let Err(problem) = engine.scan_model_folders().await {
                    tracing::warn!(%problem, "new models were not put on the list");
                }
                // Also what is gone is news.
                engine.tell_models();
            }
        });
        let mut watching = self.0.library.watch.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, before)) = watching.replace((watch, task.abort_handle())) {
            before.abort();
        }
    }

    /// What another process changed in the settings.
    pub(in crate::engine) fn take_models(&self, settings: &Settings) {
        let (changed, folders_changed, hub_changed) = {
            let mut state = self.state();
            let before = &mut state.settings;
            let same_folders = before.model_folders == settings.model_folders;
            let same = before.models == settings.models
                && same_folders
                && before.hidden_models == settings.hidden_models;
            before.models.clone_from(&settings.models);
            before.model_folders.clone_from(&settings.model_folders);
            before.hidden_models.clone_from(&settings.hidden_models);
            let hub_changed = before.model_hub != settings.model_hub;
            before.model_hub.clone_from(&settings.model_hub);
            (!same, !same_folders, hub_changed)
        };
        if hub_changed && let Err(problem) = self.renew_hub() {
            tracing::warn!(%problem, "the mirror of the settings");
        }
        if folders_changed {
            self.watch_model_folders();
        }
        if changed {
            self.choose_one_that_is_there();
            self.tell_models();
        }
    }

    fn folder_view(&self, folder: &Path, kind: ModelFolderKind) -> ModelFolderView {
        // Lectern's own is made with the first model.
        let missing = kind == ModelFolderKind::Library && !folder.exists();
        let problem = std::fs::read_dir(folder).err().filter(|_| !missing).map(|error| {
            Problem::new("bad_folder", format!("{}: {}", folder.display(), crate::vaults::reason(&error)))
        });
        let models = found_in(folder).iter().filter(|found| !is_starter(&found.path)).count();
        ModelFolderView {
            path: folder.display().to_string(),
            kind,
            models: u32::try_from(models).unwrap_or(u32::MAX),
            problem,
        }
    }
}

fn found_in(folder: &Path) -> Vec<Found> {
    let files = models_in(folder).into_iter().map(|path| Found { path, name: None });
    let named = |model: lectern_library::folders::OllamaModel| Found {
        path: model.file,
        name: Some(slug(&model.name)),
    };
    files.chain(ollama_models(folder).into_iter().map(named)).collect()
}

/// The built-in model's file is there for the built-in model alone.
fn is_starter(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.strip_prefix("starter-")
        .and_then(|rest| rest.strip_suffix(".gguf"))
        .is_some_and(|sum| sum.len() == 12 && sum.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

fn kind_of(program: Program) -> ModelFolderKind {
    match program {
        Program::LmStudio => ModelFolderKind::LmStudio,
        Program::Jan => ModelFolderKind::Jan,
        Program::LlamaCpp => ModelFolderKind::LlamaCpp,
        Program::HuggingFace => ModelFolderKind::HuggingFace,
        Program::Ollama => ModelFolderKind::Ollama,
    }
}
