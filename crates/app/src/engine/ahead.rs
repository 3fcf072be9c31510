//! Getting ready before a question is sent: the model is loaded, and what is known of the next request is read, while
//! the user still types.
//!
//! Invariant: nothing is stored and nothing fails; a question that is sent never waits for what was begun here.

use std::sync::{Arc, Mutex, PoisonError};

use lectern_core::turn::likely_request;
use lectern_core::{ChatModel, ChatRequest, ConversationId, ModelId, Part};
use tokio_util::sync::CancellationToken;

use super::Engine;
use crate::models::Model;
use crate::problem::of_store;
use crate::view::Problem;

/// What is being got ready.
#[derive(Default)]
pub(super) struct Ahead {
    // A std mutex: nothing awaits while it is held.
    latest: Mutex<CancellationToken>,
}

impl Ahead {
    /// Ends what was begun before; gives the word that ends what begins now.
    fn replace(&self) -> CancellationToken {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        latest.cancel();
        *latest = CancellationToken::new();
        latest.clone()
    }
}

impl Engine {
    /// The user types, or is about to: `draft` is what the next message begins with, and may be empty; `model` is the
    /// one that was chosen for that message alone. Returns at once and may be called with every key; the last call
    /// counts. Call it with the first key, and after pauses.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn model_wanted(&self, conversation: Option<ConversationId>, draft: &str, model: Option<ModelId>) {
        let (engine, draft) = (self.clone(), draft.to_owned());
        tokio::spawn(async move { engine.read_ahead(conversation, &draft, model).await });
    }

    /// The same, and comes back when all that can be read is read, or something else counts.
    pub async fn read_ahead(
        &self,
        conversation: Option<ConversationId>,
        draft: &str,
        model: Option<ModelId>,
    ) {
        let cancel = self.0.ahead.replace();
        let Ok(model) = self.model_for(model.as_ref(), conversation.as_ref()) else { return };
        // A model that cannot be used says so when it is asked.
        let Ok(chat_model) = self.0.models.open(&model).await else { return };
        let Ok(request) = self.likely_request(conversation, draft, &model, &chat_model) else { return };
        chat_model.prepare(request, cancel).await;
    }

    /// Stops reading ahead: a question was sent, or another model was chosen.
    pub(super) fn stop_reading_ahead(&self) {
        self.0.ahead.replace();
    }

    /// The request that this draft will most likely become: made of what a turn would be started with.
    fn likely_request(
        &self,
        conversation: Option<ConversationId>,
        draft: &str,
        model: &Model,
        chat_model: &Arc<dyn ChatModel>,
    ) -> Result<ChatRequest, Problem> {
        let set = self.effective(model, conversation.as_ref())?;
        let parts = vec![Part::Text { text: draft.to_owned() }];
        let conversation = conversation.unwrap_or_default();
        let input = self.turn_input(conversation, parts, model, &set, Arc::clone(chat_model));
        likely_request(&input).map_err(|error| of_store(&error))
    }
}
