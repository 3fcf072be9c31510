//! What the local API needs of the engine: a model ready to be asked, the tools, the permissions.
//!
//! Invariant: what holds for a model in the window holds for it here; a request can only lay its own values over it.

use std::sync::Arc;

use lectern_core::turn::DEFAULT_MAX_STEPS;
use lectern_core::{
    ChatModel, ConversationId, EarlierTurns, ExposurePolicy, ModelId, PermissionBook, Sampling, Store,
    ThinkingOptions, ToolMode, ToolProvider,
};

use super::Engine;
use super::turns::instructions;
use crate::generation::{Effective, Entry, usual};
use crate::models::Model;
use crate::starter;
use crate::view::{ModelView, Problem, SettingKey};

/// A model that is ready to be asked, with what is set for it.
#[derive(Clone)]
pub struct Answering {
    /// Its id in the list.
    pub id: ModelId,
    /// The model.
    pub model: Arc<dyn ChatModel>,
    /// How tools are brought to it.
    pub tool_mode: ToolMode,
    /// How it chooses tokens.
    pub sampling: Sampling,
    /// Whether and how long it thinks.
    pub thinking: ThinkingOptions,
    /// Which of the tools it gets to see, and when.
    pub exposure: ExposurePolicy,
    /// For the trace: what else holds, by the names of settings.
    pub others: Entry,
    /// Instructions for who works with the user's tools.
    pub system: Option<String>,
    /// Tokens of context that it could have on this machine, when that is more than it has now.
    pub largest_context: Option<u32>,
    /// Model calls for one answer at most.
    pub max_steps: u32,
    /// Whether it is the small built-in one, which sees the present question and what that points back to.
    pub starter: bool,
}

impl Answering {
    /// Which of the turns before the present one it gets.
    pub fn earlier_turns(&self) -> EarlierTurns {
        if self.starter { EarlierTurns::PointedTo } else { EarlierTurns::Sent }
    }
}

impl Engine {
    /// The models that can be asked, the one that answers by itself first.
    pub fn answering_models(&self) -> Vec<ModelView> {
        let view = self.app_view();
        let (mut first, others): (Vec<_>, Vec<_>) =
            view.models.into_iter().partition(|model| model.id == view.model);
        first.extend(others);
        first
    }

    /// A model ready to be asked; none for the one that answers by itself.
    pub async fn answering(&self, id: Option<&ModelId>) -> Result<Answering, Problem> {
        let model = self.model_for(id, None)?;
        let set = self.effective(&model, None)?;
        let chat_model = self.0.models.open(&model).await?;
        Ok(self.ready(&model, &set, chat_model))
    }

    /// What these settings say of an open model.
    pub(super) fn ready(&self, model: &Model, set: &Effective, chat_model: Arc<dyn ChatModel>) -> Answering {
        let info = chat_model.info();
        let starter = starter::is_starter(info);
        let mut exposure = set.exposure();
        if !starter && !set.is_set(SettingKey::Tools) {
            exposure.tools = usual::exposure(exposure.tools, &self.0.host.tools(), info.context_length);
        }
        let tool_mode = set.tool_mode().unwrap_or(info.tool_mode);
        Answering {
            id: model.id.clone(),
            others: set.others(tool_mode),
            tool_mode,
            sampling: set.sampling(),
            thinking: set.thinking(),
            exposure,
            system: set.system().or_else(|| instructions(starter)),
            largest_context: self.known(model).trained,
            max_steps: self.0.options.max_steps.unwrap_or(DEFAULT_MAX_STEPS),
            starter,
            model: chat_model,
        }
    }

    /// The tools of the user's servers.
    pub fn tool_provider(&self) -> Arc<dyn ToolProvider> {
        Arc::clone(&self.0.host) as Arc<dyn ToolProvider>
    }

    /// The standing permissions.
    pub fn permissions(&self) -> Arc<PermissionBook> {
        Arc::clone(&self.0.permissions)
    }

    /// Where conversations and the audit log are kept.
    pub fn store(&self) -> &Store {
        &self.0.store
    }

    /// Forgets what the models keep of conversations that are in no store.
    pub async fn forget_cached(&self, conversations: &[ConversationId]) {
        for conversation in conversations {
            if let Err(problem) = self.0.models.forget(conversation) {
                tracing::warn!(%problem, "a state of a conversation that is over");
            }
        }
        self.0.models.forget_deleted().await;
    }
}
