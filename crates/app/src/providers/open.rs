//! From a model of a provider to one that can be asked.
//!
//! Invariant: nothing is asked of a provider by opening; what is in the way becomes an error of the turn, so that the
//! question is kept.

use std::sync::Arc;

use lectern_cloud::gemini::Dialect;
use lectern_cloud::openai::Listed;
use lectern_cloud::{
    ConfigError, Endpoint, GeminiConfig, GeminiModel, GeminiOptions, OpenAiConfig, OpenAiModel, OpenAiOptions,
};
use lectern_core::{ChatModel, ModelError, ModelInfo};

use super::known::{Providers, SignedIn};
use super::view::facts_of;
use super::waits::limits_of;
use super::{Remote, address_of, name_of, view};
use crate::models::Model;
use crate::settings::ProviderEntry;
use crate::unusable::Unusable;
use crate::view::{ModelView, Problem, ProviderKind};

/// A name that stands where a list is asked for, which is of no model.
const NO_MODEL: &str = "models";

/// A model of either kind.
enum Opened {
    Gemini(GeminiModel),
    OpenAi(OpenAiModel),
}

impl Providers {
    /// A remote model as the shells show it.
    pub(crate) fn model_view(&self, model: &Model, remote: &Remote) -> ModelView {
        view::model_view(model, &self.remote_of_run(remote))
    }

    fn remote_of_run(&self, remote: &Remote) -> Remote {
        Remote { provider: remote.provider.as_ref().map(|entry| self.of_run(entry)), ..remote.clone() }
    }

    /// The model ready to be asked.
    pub(crate) async fn open(&self, model: &Model, remote: &Remote) -> Arc<dyn ChatModel> {
        match self.try_open(model, remote).await {
            Ok(Opened::Gemini(open)) => Arc::new(open),
            Ok(Opened::OpenAi(open)) => Arc::new(open),
            Err(problem) => {
                if let Some(entry) = &remote.provider {
                    self.failed(&entry.id, &problem);
                }
                let info = info_of(&self.model_view(model, remote));
                Arc::new(Unusable::remote(info, problem))
            }
        }
    }

    async fn try_open(&self, model: &Model, remote: &Remote) -> Result<Opened, Problem> {
        let entry = remote.provider.as_ref().ok_or_else(|| super::unknown(&remote.entry.provider))?;
        let signed_in = self.signed_in(entry).await?;
        let info = info_of(&self.model_view(model, remote));
        opened(&self.of_run(entry), &remote.entry.model, info, signed_in, facts_of(remote).vision)
    }

    /// The models that a provider lists.
    pub(crate) async fn listed(&self, entry: &ProviderEntry) -> Result<Vec<Listed>, Problem> {
        let signed_in = self.signed_in(entry).await?;
        let info = ModelInfo {
            id: NO_MODEL.into(),
            name: NO_MODEL.to_owned(),
            tool_mode: lectern_core::ToolMode::Native,
            context_length: None,
            vision: false,
            remote: true,
        };
        let listed = match opened(&self.of_run(entry), NO_MODEL, info, signed_in, None)? {
            Opened::Gemini(open) => open.models().await,
            Opened::OpenAi(open) => open.models().await,
        };
        listed.map_err(|error| of_model(&error))
    }
}

fn opened(
    entry: &ProviderEntry,
    model: &str,
    info: ModelInfo,
    signed_in: SignedIn,
    vision: Option<bool>,
) -> Result<Opened, Problem> {
    let limits = limits_of(entry);
    let (model, credentials, url) = (model.to_owned(), signed_in.credentials, address_of(entry)?);
    let base = entry.base_url.is_some().then(|| url.clone());
    let gemini = |endpoint| {
        let options = gemini_options(entry);
        let config = GeminiConfig {
            info: info.clone(),
            model: model.clone(),
            endpoint,
            base,
            credentials: credentials.clone(),
            options,
            limits,
        };
        GeminiModel::new(config).map(Opened::Gemini).map_err(|error| bad_provider(&error))
    };
    match entry.kind {
        ProviderKind::Vertex => {
            let project = entry.project.clone().or(signed_in.project).ok_or_else(|| no_project(entry))?;
            gemini(super::vertex(entry, project))
        }
        ProviderKind::VertexExpress => gemini(Endpoint::Express),
        ProviderKind::Gemini => gemini(Endpoint::Developer),
        ProviderKind::OpenaiCompatible => {
            let usual = OpenAiOptions::of(&url);
            let options = OpenAiOptions {
                images: vision.unwrap_or(usual.images),
                stream_usage: entry.options.stream_usage.unwrap_or(usual.stream_usage),
                reasoning_effort: entry.options.thinking_level.clone(),
                ..usual
            };
            let config = OpenAiConfig { info, model, base: url, credentials, options, limits };
            OpenAiModel::new(config).map(Opened::OpenAi).map_err(|error| bad_provider(&error))
        }
    }
}

fn gemini_options(entry: &ProviderEntry) -> GeminiOptions {
    let dialect = |whole| if whole { Dialect::JsonSchema } else { Dialect::Subset };
    GeminiOptions {
        dialect: entry.options.whole_schemas.map(dialect),
        safety: entry.options.safety.clone(),
        thinking_level: entry.options.thinking_level.clone(),
        ..GeminiOptions::default()
    }
}

fn info_of(view: &ModelView) -> ModelInfo {
    let remote = view.remote.as_ref();
    ModelInfo {
        id: view.id.clone(),
        name: view.name.clone(),
        tool_mode: view.tool_mode,
        context_length: view.context_length,
        // Who does not see says so; who was never asked may see.
        vision: remote.and_then(|remote| remote.facts.vision).unwrap_or(true),
        remote: remote.is_none_or(|remote| remote.leaves_machine),
    }
}

fn bad_provider(error: &ConfigError) -> Problem {
    Problem::from_error("bad_provider", error)
        .hint("Check the address, the project, the location and the model's name.")
}

fn no_project(entry: &ProviderEntry) -> Problem {
    Problem::new(
        "no_project",
        format!("{} needs a project, and neither the settings nor the login name one", name_of(entry)),
    )
    .hint("Enter the id of the Google Cloud project, e.g. my-project-123.")
}

/// A provider's error outside of a turn.
pub(crate) fn of_model(error: &ModelError) -> Problem {
    let code = serde_json::to_value(error.code).ok();
    let code = code.as_ref().and_then(serde_json::Value::as_str).unwrap_or("provider");
    Problem {
        hint: error.hint.clone(),
        detail: error.detail.as_ref().map(ToString::to_string),
        ..Problem::new(&format!("model_{code}"), error.message.clone())
    }
}
