//! Files that a model is loaded with: one that guesses for it, one with which it sees. Which ones fit, and why another
//! one does not.
//!
//! Invariant: headers alone decide; what can't be read is a problem of the turn that uses it.

use std::path::{Path, PathBuf};

use lectern_local::gguf::projectors_beside;
use lectern_local::{ModelFileInfo, SpeedOptions};
use serde_json::Value;

use super::Engine;
use crate::generation::projector_named;
use crate::models::{self, Model, Source};
use crate::starter;
use crate::view::{FileChoice, Problem, SettingKey};

impl Engine {
    /// The models of the list that can guess for this one, the smallest first.
    pub(super) fn drafts(&self, model: &Model) -> Vec<FileChoice> {
        let models = &self.0.models;
        let Some(info) = self.path_of(model).and_then(|path| models.inspect(&path).ok()) else {
            return Vec::new();
        };
        let listed = self.listed_models(&self.state());
        let mut fitting: Vec<(u64, FileChoice)> = listed
            .iter()
            .filter_map(|other| Some((other, other.path().filter(|path| *path != info.path)?)))
            .filter_map(|(other, path)| {
                let draft = models.inspect(path).ok()?;
                // One that is no smaller costs more than its guesses save.
                let bytes = draft.shape.file_bytes;
                let fits = bytes < info.shape.file_bytes && draft.guesses_for(&info).is_ok();
                let view = || FileChoice { name: models.view(other).name, path: path.display().to_string() };
                fits.then(|| (bytes, view()))
            })
            .collect();
        fitting.sort_by_key(|(bytes, _)| *bytes);
        fitting.into_iter().map(|(_, draft)| draft).collect()
    }

    /// The files beside a model with which it can see.
    pub(super) fn projectors(&self, model: &Model) -> Vec<FileChoice> {
        let info = self.path_of(model).and_then(|path| self.0.models.inspect(&path).ok());
        let found = info.map(|info| projectors_beside(&info.path, info.shape.width)).unwrap_or_default();
        let choice = |path: PathBuf| FileChoice { name: file_name(&path), path: path.display().to_string() };
        found.into_iter().map(|found| choice(found.path)).collect()
    }

    /// A file that does not fit would be refused when the model is loaded, in the middle of a turn.
    pub(super) fn check_files(
        &self,
        model: &Model,
        checked: &[(SettingKey, Option<Value>)],
    ) -> Result<(), Problem> {
        let said = |wanted| {
            checked.iter().find(|(key, _)| *key == wanted).and_then(|(_, value)| value.as_ref()?.as_str())
        };
        let (draft, projector) = (said(SettingKey::Draft), said(SettingKey::Projector));
        let mtp = checked.contains(&(SettingKey::Mtp, Some(Value::Bool(true))));
        if draft.is_none() && projector.is_none() && !mtp {
            return Ok(());
        }
        let info = self.path_of(model).and_then(|path| self.0.models.inspect(&path).ok());
        info.as_ref().filter(|_| mtp).map_or(Ok(()), check_mtp)?;
        draft.map_or(Ok(()), |draft| self.check_draft(draft, info.as_ref()))?;
        projector.map_or(Ok(()), |said| check_projector(said, info.as_ref()))
    }

    fn check_draft(&self, draft: &str, info: Option<&ModelFileInfo>) -> Result<(), Problem> {
        let draft = self.0.models.inspect(&models::file_of(draft.as_ref())?)?;
        let Some(info) = info else { return Ok(()) };
        draft.guesses_for(info).map_err(|fault| {
            let names = (file_name(&draft.path), file_name(&info.path));
            Problem::new("bad_setting", format!("`{}` can't guess for `{}`: {fault}", names.0, names.1))
                .hint("Take a smaller model of the same family.")
        })
    }

    fn path_of(&self, model: &Model) -> Option<PathBuf> {
        match &model.source {
            Source::File(path) => Some(path.clone()),
            Source::Starter => starter::install(&self.0.home).ok(),
            Source::Remote(_) => None,
        }
    }
}

fn check_projector(said: &str, info: Option<&ModelFileInfo>) -> Result<(), Problem> {
    let Some(info) = info else { return Ok(()) };
    projector_named(said).of(&info.path, info.shape.width).map(|_| ()).map_err(|error| {
        let said = format!("`{}` can't see with it: {error}", file_name(&info.path));
        Problem::new("bad_setting", said)
            .hint("Take the mmproj file that was made for this model, or `none`.")
    })
}

fn check_mtp(info: &ModelFileInfo) -> Result<(), Problem> {
    let asked = SpeedOptions { mtp: true, ..SpeedOptions::default() };
    asked.check_ahead(&info.architecture, info.shape.ahead.len()).map_err(|error| {
        Problem::new("bad_setting", format!("`{}`: {error}", file_name(&info.path)))
            .hint("Files of some families come with and without that layer.")
    })
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
