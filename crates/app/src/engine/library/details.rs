//! A model of the list, looked into.
//!
//! Invariant: a shell names a model by its id; which file that is stays here.

use lectern_core::ModelId;

use super::super::Engine;
use crate::view::{ModelDetails, Problem};

impl Engine {
    /// Everything about a model of the list before it is loaded; the need for memory with so many tokens of context,
    /// or with as many as it would be used with.
    pub async fn listed_model_details(
        &self,
        id: &ModelId,
        context: Option<u32>,
    ) -> Result<ModelDetails, Problem> {
        self.model_details(&self.model_file(id).await?, context).await
    }
}
