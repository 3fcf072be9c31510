//! The list of conversations, one conversation, its trace.

use std::path::Path;

use lectern_core::store::{AuditDecision, AuditQuery, StoredConversation, StoredMessage, StoredPage};
use lectern_core::{ConversationId, MessageId};
use serde_json::{Value, json};

use super::Engine;
use crate::durable;
use crate::problem::of_store;
use crate::view::{
    AppNews, ConversationSummary, ConversationView, MessageView, Problem, SummaryView, TurnView,
};

/// Turns that are read at a time: more than a window shows.
const PAGE: usize = 20;

impl Engine {
    /// All conversations, the last changed first.
    pub fn conversations(&self) -> Result<Vec<ConversationSummary>, Problem> {
        let stored = self.0.store.conversations().map_err(|error| of_store(&error))?;
        Ok(stored.into_iter().map(|stored| self.summary(stored)).collect())
    }

    /// The last turns of a conversation, or those that stand before this message of it.
    pub fn conversation_page(
        &self,
        id: &ConversationId,
        before: Option<&MessageId>,
    ) -> Result<ConversationView, Problem> {
        let page = self.0.store.page(id, before, PAGE).map_err(|error| of_store(&error))?;
        self.view(id, page)
    }

    /// A whole conversation with its messages and events.
    pub fn conversation(&self, id: &ConversationId) -> Result<ConversationView, Problem> {
        let store = &self.0.store;
        let messages = store.messages(id).map_err(|error| of_store(&error))?;
        let turns = store.turns(id).map_err(|error| of_store(&error))?;
        self.view(id, StoredPage { messages, turns, earlier: 0 })
    }

    fn view(&self, id: &ConversationId, page: StoredPage) -> Result<ConversationView, Problem> {
        let line = self.0.store.conversation(id).map_err(|error| of_store(&error))?;
        let summary = self.0.store.summary(id).map_err(|error| of_store(&error))?;
        let message = |stored: StoredMessage| MessageView {
            id: stored.id,
            turn: stored.turn,
            at: stored.at,
            message: stored.message,
        };
        Ok(ConversationView {
            summary: self.summary(line),
            messages: page.messages.into_iter().map(message).collect(),
            earlier: page.earlier,
            model: self.model_of_conversation(id),
            summarised: summary.map(|summary| SummaryView {
                up_to: summary.up_to,
                text: summary.text,
                at: summary.at,
            }),
            turns: page.turns.into_iter().map(|turn| TurnView { id: turn.id, events: turn.events }).collect(),
        })
    }

    /// Gives a conversation another title.
    pub fn rename_conversation(&self, id: &ConversationId, title: &str) -> Result<(), Problem> {
        let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
        if title.is_empty() {
            return Err(Problem::new("empty_title", "a title needs at least one character"));
        }
        self.0.store.rename(id, &title).map_err(|error| of_store(&error))?;
        self.tell_conversations();
        Ok(())
    }

    /// Hides a conversation and stops its turn.
    pub fn delete_conversation(&self, id: &ConversationId) -> Result<(), Problem> {
        if let Some(turn) = self.0.turns.running(id) {
            turn.cancel();
        }
        self.0.store.delete(id).map_err(|error| of_store(&error))?;
        self.tell_conversations();
        self.0.models.forget(id)?;
        let engine = self.clone();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            // Else the model is told at the latest when it is closed.
            runtime.spawn(async move { engine.0.models.forget_deleted().await });
        }
        Ok(())
    }

    /// Nothing is saved of what was deleted before the last end, whichever end that was.
    pub(super) fn forget_left_over(&self) {
        let engine = self.clone();
        tokio::task::spawn_blocking(move || match engine.0.store.deleted_conversations() {
            Ok(deleted) => engine.0.models.forget_left_over(&deleted),
            Err(error) => tracing::warn!(%error, "the deleted conversations were not read"),
        });
    }

    /// Brings a deleted conversation back.
    pub fn restore_conversation(&self, id: &ConversationId) -> Result<(), Problem> {
        self.0.store.restore(id).map_err(|error| of_store(&error))?;
        self.0.models.keep_again(id);
        self.tell_conversations();
        Ok(())
    }

    /// Everything that is known of a conversation: messages, events, decisions about calls, the servers.
    pub fn trace(&self, id: &ConversationId) -> Result<Value, Problem> {
        let view = self.conversation(id)?;
        let query = AuditQuery { conversation: Some(id.clone()), ..AuditQuery::default() };
        let audit = self.0.store.audit(&query).map_err(|error| of_store(&error))?;
        let decisions: Vec<Value> = audit
            .into_iter()
            .map(|entry| {
                let allowed = entry.decision == Some(AuditDecision::Allowed);
                json!({
                    "at": entry.at, "turn": entry.turn, "call": entry.call, "tool": entry.tool,
                    "server": entry.server, "allowed": allowed, "reason": entry.reason,
                    "arguments_sha256": entry.arguments_sha256,
                })
            })
            .collect();
        Ok(json!({
            "lectern": env!("CARGO_PKG_VERSION"),
            "format": 1,
            "conversation": view,
            "decisions": decisions,
            "servers": self.servers(),
        }))
    }

    /// Writes the trace as JSON.
    pub fn export_trace(&self, id: &ConversationId, path: &Path) -> Result<(), Problem> {
        let problem = |reason: String| {
            Problem::new("trace_not_written", format!("write the trace to {}: {reason}", path.display()))
        };
        let text = serde_json::to_vec_pretty(&self.trace(id)?).map_err(|error| problem(error.to_string()))?;
        durable::write(path, &text).map_err(|error| problem(crate::vaults::reason(&error)))
    }

    pub(super) fn tell_conversations(&self) {
        match self.conversations() {
            Ok(conversations) => self.tell(AppNews::ConversationsChanged { conversations }),
            Err(problem) => tracing::warn!(%problem, "the list of conversations was not read"),
        }
    }

    fn summary(&self, stored: StoredConversation) -> ConversationSummary {
        ConversationSummary {
            running: self.0.turns.running(&stored.id).is_some(),
            id: stored.id,
            title: stored.title,
            created_at: stored.created_at,
            updated_at: stored.updated_at,
        }
    }
}
