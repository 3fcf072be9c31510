//! Removing models, and bringing them back.
//!
//! Invariant: only files inside of Lectern's own folder are ever deleted, and not before a day has passed.

use std::path::{Path, PathBuf};

use lectern_core::{ModelId, Timestamp};
use lectern_library::folders::files_of;
use lectern_library::trash::KEPT;
use lectern_local::saved::{file_digest, forget_file};
use serde::{Deserialize, Serialize};

use super::super::Engine;
use crate::library::of_trash;
use crate::models;
use crate::settings::ModelEntry;
use crate::view::{ModelView, Problem, RemovedModel};

/// What is needed to put a model back on the list.
#[derive(Serialize, Deserialize)]
struct Note {
    entry: ModelEntry,
    /// Whether it was the chosen one.
    chosen: bool,
    /// What the saved states of its file are known by; they go when it can't be brought back any more.
    #[serde(default)]
    states: Option<String>,
}

impl Engine {
    /// Takes a model off the list. A file in Lectern's own folder goes with it, others stay. The starter takes over
    /// when it was the chosen one.
    pub async fn remove_model(&self, id: &ModelId) -> Result<RemovedModel, Problem> {
        let model = self.listed(id)?;
        let view = self.model_view(&model);
        let entry = self.state().settings.models.iter().find(|entry| entry.id == *id).cloned();
        let Some(entry) = entry else {
            // The starter, or a model that was only named for this run.
            let mut settings = self.state().settings.clone();
            models::remove(&mut settings, id)?;
            return Err(models::unknown(id));
        };
        self.stop_using(id).await?;
        let files = entry.path().map(|path| self.own_files(path)).unwrap_or_default();
        let freed = files.iter().filter_map(|file| std::fs::metadata(file).ok()).map(|meta| meta.len()).sum();
        let states = entry.path().filter(|path| path.exists()).map(file_digest);
        let note = Note { chosen: self.state().settings.model.as_ref() == Some(id), entry, states };
        let path = note.entry.path().map(Path::to_owned);
        let kept = serde_json::to_value(&note).map_err(|error| Problem::new("defect", error.to_string()))?;
        let removed = self.0.library.trash.put(&files, kept).map_err(|error| of_trash(&error))?;
        let changed = self.change_settings(|settings| {
            let own = self.0.home.models();
            let is_found = |path: &&PathBuf| {
                settings.model_folders.iter().chain([&own]).any(|folder| path.starts_with(folder))
            };
            let found = path.as_ref().filter(is_found).filter(|path| !settings.hidden_models.contains(path));
            if let Some(path) = found.filter(|_| files.is_empty()).cloned() {
                // Else the next look into its folder would bring it back.
                settings.hidden_models.push(path);
            }
            models::remove(settings, id)
        });
        match changed {
            Ok(Ok(())) => {}
            Ok(Err(problem)) | Err(problem) => {
                // Nothing was removed: the files go back to where they were.
                let _ = self.0.library.trash.restore(&removed.token);
                return Err(problem);
            }
        }
        self.choose_one_that_is_there();
        self.tell_models();
        let until = removed.at.checked_add(KEPT).unwrap_or(removed.at);
        Ok(RemovedModel { token: removed.token, model: view, file_deleted: !files.is_empty(), freed, until })
    }

    /// Brings back a model that was removed, file and settings.
    pub async fn restore_model(&self, token: &str) -> Result<ModelView, Problem> {
        let restored = self.0.library.trash.restore(token).map_err(|error| of_trash(&error))?;
        let note: Note = serde_json::from_value(restored.note).map_err(|error| {
            Problem::new("unknown_removal", format!("what was removed can't be read: {error}"))
        })?;
        let model = self.change_settings(|settings| {
            settings.hidden_models.retain(|hidden| note.entry.path() != Some(hidden));
            let model = models::put_back(settings, note.entry.clone());
            if note.chosen {
                settings.model = Some(model.id.clone());
            }
            model
        })?;
        if note.chosen {
            self.state().model = model.clone();
        }
        self.tell_models();
        Ok(self.model_view(&model))
    }

    /// Deletes for good what was removed a day ago: files, and what was saved of conversations with them.
    pub(super) fn purge_removed(&self) {
        let purged = self.0.library.trash.purge(Timestamp::now());
        let states: Vec<String> = purged
            .into_iter()
            .filter_map(|removed| serde_json::from_value::<Note>(removed.note).ok()?.states)
            .collect();
        if states.is_empty() {
            return;
        }
        // The same file may have been added again, or be there under another name.
        let listed = models::of_settings(&self.state().settings);
        let kept: Vec<String> = listed.iter().filter_map(|model| model.path()).map(file_digest).collect();
        for digest in states.iter().filter(|digest| !kept.contains(digest)) {
            if let Err(error) = forget_file(&self.0.home.states(), digest) {
                tracing::warn!(%error, "a saved state of a model that was removed");
            }
        }
    }

    /// The models that can be brought back, the newest first: token, name, and whether files come back too.
    pub fn removed_models(&self) -> Vec<(String, ModelId, bool)> {
        let all = self.0.library.trash.list().into_iter();
        all.filter_map(|removed| {
            let note: Note = serde_json::from_value(removed.note).ok()?;
            Some((removed.token, note.entry.id, !removed.files.is_empty()))
        })
        .collect()
    }

    /// The starter takes over when the chosen model is not on the list any more.
    pub(in crate::engine) fn choose_one_that_is_there(&self) {
        let mut state = self.state();
        let named = self.0.options.model.is_some();
        let mut listed = models::of_settings(&state.settings);
        match listed.iter().find(|model| model.id == state.model.id) {
            Some(same) => state.model = same.clone(),
            // A model that was only named for this run is on no list.
            None if named => {}
            None => state.model = listed.swap_remove(0),
        }
    }

    /// Nobody computes with the model when this returns.
    async fn stop_using(&self, id: &ModelId) -> Result<(), Problem> {
        let in_use = self.state().model.id == *id || self.0.models.is_loaded(id).await;
        if in_use && !self.0.turns.all_running().is_empty() {
            return Err(Problem::new("turn_running", format!("{id} is writing an answer"))
                .hint("Wait for the answer, or stop it."));
        }
        if in_use {
            self.0.models.close().await;
        }
        Ok(())
    }

    /// The files of a model that are Lectern's to delete: real files inside of its own folder.
    fn own_files(&self, path: &Path) -> Vec<PathBuf> {
        let Ok(own) = self.0.home.models().canonicalize() else { return Vec::new() };
        let is_ours = |file: &PathBuf| {
            let real = file.symlink_metadata().is_ok_and(|meta| meta.is_file());
            real && file.canonicalize().is_ok_and(|file| file.starts_with(&own))
        };
        files_of(path).into_iter().filter(is_ours).collect()
    }
}
