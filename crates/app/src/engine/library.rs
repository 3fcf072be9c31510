//! The user's models and vaults: choose, add, remove.
//!
//! Invariant: what is chosen here is in the settings before anyone is told.

mod details;
mod folders;
mod hub;
mod machine;
mod mirror;
mod removal;
mod states;

use std::path::Path;
use std::sync::PoisonError;

use lectern_core::ModelId;

use super::{Engine, State, servers, vault_views};
use crate::models;
use crate::settings::Settings;
use crate::vaults::{self, Vault};
use crate::view::{AppNews, ModelView, Problem, VaultView};

impl Engine {
    /// All models with what their files say.
    pub fn models(&self) -> Vec<ModelView> {
        let listed = self.listed_models(&self.state());
        self.model_views(&listed)
    }

    /// The model that answers next.
    pub fn model(&self) -> ModelId {
        self.state().model.id.clone()
    }

    /// What is known of a GGUF file without loading it, as a JSON object.
    pub async fn inspect_model(&self, path: &Path) -> Result<serde_json::Value, Problem> {
        let info = self.0.models.examine(&models::file_of(path)?).await?;
        serde_json::to_value(&info).map_err(|error| Problem::new("defect", error.to_string()))
    }

    /// Chooses the model that answers next, in all conversations.
    pub fn select_model(&self, id: &ModelId) -> Result<(), Problem> {
        let model = self.listed(id)?;
        let in_settings = |settings: &Settings| models::of_settings(settings).contains(&model);
        self.change_settings(|settings| {
            // A model that was only named for this run is not in the settings, and stays out of them.
            if in_settings(settings) {
                settings.model = Some(id.clone());
            }
        })?;
        self.state().model = model;
        self.tell_models();
        Ok(())
    }

    /// Adds a GGUF file to the list; it stays where it is. A file that can't be used is refused with the reason.
    pub fn add_model(&self, path: &Path) -> Result<ModelView, Problem> {
        let path = models::file_of(path)?;
        self.0.models.inspect(&path)?;
        let model = self.change_settings(|settings| models::add(settings, &path))?;
        self.tell_models();
        Ok(self.model_view(&model))
    }

    /// Adds a folder of notes and starts its server.
    pub async fn add_vault(&self, path: &Path) -> Result<VaultView, Problem> {
        let path = vaults::folder_of_notes(path)?;
        let vault = self.change_settings(|settings| vaults::add(&self.0.home, settings, &path))?;
        if vault.sample {
            crate::sample::install(&self.0.home)?;
        }
        let new = {
            let mut state = self.state();
            let new = !state.vaults.iter().any(|known| known.path == vault.path);
            if new {
                state.vaults.push(vault.clone());
            }
            new
        };
        if new {
            self.0.approvals.of_vault(&vault.server);
            self.0.host.set(servers::vault_config(&vault, &self.0.executable)).await;
        }
        self.tell_vaults();
        Ok(vault.view())
    }

    /// Stops serving a folder of notes; the notes stay.
    pub async fn remove_vault(&self, path: &Path) -> Result<(), Problem> {
        let removed = self.forget_vault(path)?;
        // The host may have lost it already; it is gone either way.
        let _ = self.0.host.remove(&removed.server).await;
        self.tell_servers();
        self.tell_vaults();
        Ok(())
    }

    fn forget_vault(&self, path: &Path) -> Result<Vault, Problem> {
        self.change_settings(|settings| _ = vaults::remove(&self.0.home, settings, path))?;
        let mut state = self.state();
        let State { vaults, .. } = &mut *state;
        match vaults.iter().position(|vault| vault.path == path) {
            Some(place) => Ok(vaults.remove(place)),
            None => Err(Problem::new("unknown_vault", format!("{} is no vault of Lectern", path.display()))),
        }
    }

    pub(super) fn tell_models(&self) {
        // Who looks later tells later: a list that is older never follows one that is newer.
        let _in_order = self.0.telling.lock().unwrap_or_else(PoisonError::into_inner);
        self.tell(AppNews::ModelsChanged { model: self.model(), models: self.models() });
    }

    fn tell_vaults(&self) {
        self.0.host.set_roots(servers::roots(&self.state().vaults));
        let vaults = vault_views(&self.state().vaults);
        self.tell(AppNews::VaultsChanged { vaults });
    }
}
