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
    latest: Mutex<Latest>,
}

/// The last of it.
#[derive(Default)]
struct Latest {
    /// For which conversation and model.
    of: Option<(Option<ConversationId>, ModelId)>,
    cancel: CancellationToken,
}

impl Ahead {
    /// Gives the word that ends what begins now. What was begun before for another conversation or model ends; for the
    /// same, the model knows what of it still serves.
    fn begin(&self, of: (Option<ConversationId>, ModelId)) -> CancellationToken {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        if latest.of.as_ref() != Some(&of) {
            latest.cancel.cancel();
            *latest = Latest { of: Some(of), cancel: CancellationToken::new() };
        }
        latest.cancel.clone()
    }

    /// Ends what was begun, unless it is for this model.
    fn end_but_of(&self, model: Option<&ModelId>) {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        let of = latest.of.as_ref().map(|(_, of)| of);
        if of.is_none() || of != model {
            latest.cancel.cancel();
            *latest = Latest::default();
        }
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
        let Ok(model) = self.model_for(model.as_ref(), conversation.as_ref()) else {
            return self.0.ahead.end_but_of(None);
        };
        let cancel = self.0.ahead.begin((conversation.clone(), model.id.clone()));
        // A model that cannot be used says so when it is asked.
        let Ok(chat_model) = self.0.models.open(&model).await else { return };
        let Ok(request) = self.likely_request(conversation, draft, &model, &chat_model) else { return };
        chat_model.prepare(request, cancel).await;
    }

    /// A question was sent to this model: others stop reading ahead. That one knows what of it still serves.
    pub(super) fn asked_ahead(&self, model: &ModelId) {
        self.0.ahead.end_but_of(Some(model));
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
