//! Which model answers: that of the message, of the run, of the conversation, of the app.
//!
//! Invariant: a conversation's choice is kept with the conversation; where its model is gone, the app's answers.

use lectern_core::{ConversationId, ModelId};
use serde_json::{Map, Value};

use super::Engine;
use crate::models::{Model, Source};
use crate::problem::of_store;
use crate::view::{Price, Problem};

/// Where the choice stands among a conversation's settings, which have names of their own.
pub(super) const KEY: &str = "model";

impl Engine {
    /// The model that was chosen for this conversation; none when the one that answers everywhere does, or when the
    /// chosen one is gone.
    pub fn model_of_conversation(&self, conversation: &ConversationId) -> Option<ModelId> {
        self.chosen_in(conversation).map(|model| model.id)
    }

    fn chosen_in(&self, conversation: &ConversationId) -> Option<Model> {
        let body = self.conversation_body(conversation).ok()?;
        self.listed(&body.get(KEY)?.as_str()?.into()).ok()
    }

    /// What the model that answers next costs, if the user said so.
    pub fn price_of_answers(&self, conversation: Option<&ConversationId>) -> Option<Price> {
        match self.model_for(None, conversation).ok()?.source {
            Source::Remote(remote) => remote.entry.price,
            Source::Starter | Source::File(_) => None,
        }
    }

    /// Chooses the model of a conversation; none for the one that answers everywhere. A running turn goes on with the
    /// model that it began with.
    pub fn set_conversation_model(
        &self,
        conversation: &ConversationId,
        model: Option<&ModelId>,
    ) -> Result<(), Problem> {
        let conversation = self.0.store.conversation(conversation).map_err(|error| of_store(&error))?.id;
        if let Some(id) = model {
            self.listed(id)?;
        }
        let mut body = self.conversation_body(&conversation)?;
        match model {
            Some(id) => _ = body.insert(KEY.to_owned(), Value::String(id.0.clone())),
            None => _ = body.shift_remove(KEY),
        }
        self.keep_conversation_body(&conversation, &body)?;
        self.tell_conversations();
        Ok(())
    }

    /// The model that answers a message.
    pub(super) fn model_for(
        &self,
        message: Option<&ModelId>,
        conversation: Option<&ConversationId>,
    ) -> Result<Model, Problem> {
        if let Some(id) = message {
            return Ok(self.of_run(self.listed(id)?));
        }
        let chosen = match self.0.options.model {
            // What was named for this run holds everywhere.
            Some(_) => None,
            None => conversation.and_then(|id| self.chosen_in(id)),
        };
        Ok(self.of_run(chosen.unwrap_or_else(|| self.state().model.clone())))
    }

    /// All that is kept of a conversation's settings.
    pub(super) fn conversation_body(&self, id: &ConversationId) -> Result<Map<String, Value>, Problem> {
        let text = self.0.store.conversation_settings(id).map_err(|error| of_store(&error))?;
        // What can't be read counts for nothing; it is replaced with the next change.
        Ok(text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default())
    }

    pub(super) fn keep_conversation_body(
        &self,
        id: &ConversationId,
        body: &Map<String, Value>,
    ) -> Result<(), Problem> {
        let text = (!body.is_empty()).then(|| Value::Object(body.clone()).to_string());
        self.0.store.set_conversation_settings(id, text.as_deref()).map_err(|error| of_store(&error))
    }
}
