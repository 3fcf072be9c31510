//! What is saved of conversations beside the conversations themselves.
//!
//! Invariant: what is forgotten here costs time and nothing else; conversations stay.

use super::super::Engine;
use crate::view::{Problem, StatesView};

impl Engine {
    /// How much is saved, all models together.
    pub fn saved_states(&self) -> Result<StatesView, Problem> {
        self.0.models.saved()
    }

    /// Deletes all of it, in memory too; gives what is left, which is nothing unless a turn is running.
    pub async fn forget_states(&self) -> Result<StatesView, Problem> {
        self.0.models.forget_all().await?;
        self.saved_states()
    }
}
