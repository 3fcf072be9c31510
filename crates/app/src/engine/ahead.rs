//! Getting ready before a question is sent: the model is loaded, and what is known of the next request is read, while
//! the user still types.
//!
//! Invariant: nothing is stored and nothing fails; a question that is sent never waits for what was begun here.

use std::sync::{Mutex, PoisonError};

use lectern_core::turn::{SoFar, joined};
use lectern_core::{ChatRequest, ConversationId, Message, ToolExposure, ToolProvider, UserMessage};
use tokio_util::sync::CancellationToken;

use super::Engine;
use super::turns::instructions;
use crate::starter;

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
    /// The user types, or is about to: `draft` is what the next message begins with, and may be empty. Returns at once
    /// and may be called with every key; the last call counts. Call it with the first key, and after pauses.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn model_wanted(&self, conversation: Option<ConversationId>, draft: &str) {
        let (engine, draft) = (self.clone(), draft.to_owned());
        let cancel = self.0.ahead.replace();
        tokio::spawn(async move { engine.get_ready(conversation, draft, cancel).await });
    }

    /// Stops reading ahead: a question was sent, or another model was chosen.
    pub(super) fn stop_reading_ahead(&self) {
        self.0.ahead.replace();
    }

    async fn get_ready(
        &self,
        conversation: Option<ConversationId>,
        draft: String,
        cancel: CancellationToken,
    ) {
        let Ok(model) = self.model_for(None, conversation.as_ref()) else { return };
        // A model that cannot be used says so when it is asked.
        let Ok(chat_model) = self.0.models.open(&model).await else { return };
        let Some(request) = self.likely_request(conversation, draft, &model, chat_model.info()) else {
            return;
        };
        chat_model.prepare(request, cancel).await;
    }

    /// The request that this draft will most likely become.
    fn likely_request(
        &self,
        conversation: Option<ConversationId>,
        draft: String,
        model: &crate::models::Model,
        info: &lectern_core::ModelInfo,
    ) -> Option<ChatRequest> {
        let tools = self.0.host.tools();
        let SoFar { summary, mut messages } = match &conversation {
            // The built-in model gets no earlier turns.
            Some(id) if !starter::is_starter(info) => SoFar::of(&self.0.store, id, tools.as_ref()).ok()?,
            Some(_) | None => SoFar::default(),
        };
        messages.push(Message::User(UserMessage::text(draft)));
        let set = self.effective(model, conversation.as_ref()).ok()?;
        // Elsewhere they stand behind the question, and can't be read before it.
        let before_history = matches!(set.exposure().tools, ToolExposure::Always | ToolExposure::Deciding);
        let told = set.system().or_else(|| instructions(starter::is_starter(info)));
        Some(ChatRequest {
            conversation: conversation.unwrap_or_default(),
            system: joined([told, summary]),
            messages,
            tools: if before_history { tools.to_vec() } else { Vec::new() },
            tool_mode: set.tool_mode().unwrap_or(info.tool_mode),
            ..ChatRequest::default()
        })
    }
}
