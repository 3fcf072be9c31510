//! A model of the list, looked into.
//!
//! Invariant: a shell names a model by its id; which file that is stays here.

use lectern_core::ModelId;

use super::super::Engine;
use crate::models;
use crate::view::{ModelDetails, Problem};

impl Engine {
    /// Everything about a model of the list before it is loaded; the need for memory with so many tokens of context,
    /// or with as many as it would be used with.
    pub async fn listed_model_details(
        &self,
        id: &ModelId,
        context: Option<u32>,
    ) -> Result<ModelDetails, Problem> {
        let listed = self.listed_models(&self.state());
        let model = listed.into_iter().find(|model| model.id == *id).ok_or_else(|| models::unknown(id))?;
        let path = match model.path {
            Some(path) => path,
            None => self.0.models.installed_starter().await?,
        };
        self.model_details(&path, context).await
    }
}
