//! What is asked of providers outside of turns: their models, and the test of one.
//!
//! Invariant: a test is no part of a conversation; it ends when it is cancelled.

use lectern_core::{ConversationId, ModelId};
use tokio_util::sync::CancellationToken;

use super::super::Engine;
use crate::view::{ModelTest, OfferedModel, Problem, ProviderId};

impl Engine {
    /// The models that a provider offers, by its own word.
    pub async fn provider_models(&self, id: &ProviderId) -> Result<Vec<OfferedModel>, Problem> {
        self.provider_entry(id)?;
        Err(Problem::new("not_ready", "the list of models can't be asked for yet"))
    }

    /// Tests a model with one tiny request and one call of a tool.
    pub async fn test_model(&self, id: &ModelId, _cancel: CancellationToken) -> Result<ModelTest, Problem> {
        Err(crate::models::unknown(id))
    }

    /// Chooses the model of a conversation; none for the one that answers everywhere.
    pub fn set_conversation_model(
        &self,
        _conversation: &ConversationId,
        _model: Option<&ModelId>,
    ) -> Result<(), Problem> {
        Err(Problem::new("not_ready", "a conversation can't have its own model yet"))
    }
}
