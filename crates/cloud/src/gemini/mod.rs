//! Gemini, at Vertex AI and at the developer API.
//!
//! Invariant: one `ChatModel` is one model at one endpoint; its requests depend on the history alone.

mod call;
mod contents;
mod endpoint;
mod layout;
mod partial;
pub(crate) mod reply;
mod request;
mod schema;
mod wire;

use std::collections::{BTreeMap, HashSet};
use std::sync::{Mutex, PoisonError};

use futures::stream::BoxStream;
use lectern_core::{ChatModel, ChatRequest, Delta, ModelError, ModelInfo, ToolSpec};
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::credentials::{Credentials, KeyHeader};
use crate::exchange::{Ask, Line, stream};
use crate::fault::Fault;
use crate::names::{Alphabet, Names};
use crate::openai::models::{Listed, fetch};
use crate::problem::{About, error_of};
use crate::transport::{self, ConfigError, Limits, host_of};
use reply::Reply;
use request::{Asked, Prepared, prepare};

pub use endpoint::{Endpoint, is_location, is_project};
pub(crate) use request::decimal;
pub use request::{Dialect, Loss};
pub use schema::{Impossible, Reduced, reduce};

/// One model of Gemini at one endpoint.
#[derive(Clone, Debug)]
pub struct GeminiConfig {
    /// What the app knows of it.
    pub info: ModelInfo,
    /// Google's name, e.g. `gemini-3.5-flash`.
    pub model: String,
    /// Which of Google's ways.
    pub endpoint: Endpoint,
    /// Another address in place of Google's: a private endpoint, a proxy, a test.
    pub base: Option<Url>,
    /// Who we are.
    pub credentials: Credentials,
    /// Settings of the provider's own.
    pub options: GeminiOptions,
    /// How long things may take.
    pub limits: Limits,
}

/// Settings of the provider's own. What is unset is the model's own default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GeminiOptions {
    /// How schemas of tools are sent. Unset: whole at the developer API, else as the subset.
    pub dialect: Option<Dialect>,
    /// `HARM_CATEGORY_…` to `BLOCK_…`.
    pub safety: BTreeMap<String, String>,
    /// How hard the model thinks (`low`, `high`); wins over a budget.
    pub thinking_level: Option<String>,
    /// Whether its thoughts are asked for, to be shown. Unset: yes, where there are any.
    pub thoughts: Option<bool>,
}

/// How a model thinks, as far as a request depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Thinks {
    No,
    /// Not of the family (Gemma): only what the user set is sent.
    Unknown,
    /// `thinkingBudget` (2.5).
    Budget,
    /// `thinkingLevel`; calls are signed (3 and later).
    Level,
}

impl Thinks {
    /// By the generation in the name; a Gemini without one is taken for a new one.
    fn of(model: &str) -> Self {
        let Some(rest) = model.strip_prefix("gemini-") else { return Self::Unknown };
        match rest.split('-').next().unwrap_or_default().parse::<f32>() {
            Ok(generation) if generation < 2.5 => Self::No,
            Ok(generation) if generation < 3.0 => Self::Budget,
            Ok(_) | Err(_) => Self::Level,
        }
    }

    fn signs(self) -> bool {
        self == Self::Level
    }
}

/// Gemini as a chat model.
pub struct GeminiModel {
    info: ModelInfo,
    model: String,
    options: GeminiOptions,
    dialect: Dialect,
    url: Url,
    models: Url,
    line: Line,
    /// What was told already: once is enough.
    told: Mutex<HashSet<Loss>>,
}

impl GeminiModel {
    /// Nothing is asked yet.
    pub fn new(config: GeminiConfig) -> Result<Self, ConfigError> {
        let GeminiConfig { info, model, endpoint, base, credentials, options, limits } = config;
        let model = endpoint::model_name(&model)?.to_owned();
        let base = endpoint.base(base.as_ref())?;
        let mut url = endpoint.method(&base, &model, "streamGenerateContent");
        url.set_query(Some("alt=sse"));
        let dialect = options.dialect.unwrap_or(match endpoint {
            Endpoint::Developer => Dialect::JsonSchema,
            Endpoint::Vertex { .. } | Endpoint::Express => Dialect::Subset,
        });
        let about = About {
            model: model.clone(),
            host: host_of(&base),
            here: transport::is_here(&base),
            location: endpoint.location().map(str::to_owned),
            proxy: transport::proxy_of(&base),
        };
        let client = transport::client(&base, &limits)?;
        let line = Line { client, credentials, key: KeyHeader::Google, limits, about };
        let models = endpoint.models(&base);
        Ok(Self { info, model, options, dialect, url, models, line, told: Mutex::default() })
    }

    /// What of these tools can't be brought to this model. The calls are checked against the whole schema all the same.
    pub fn losses(&self, tools: &[ToolSpec]) -> Vec<Loss> {
        let request = ChatRequest { tools: tools.to_vec(), ..ChatRequest::default() };
        self.prepared(&request).map(|prepared| prepared.losses).unwrap_or_default()
    }

    /// The body that a request becomes, for the trace.
    pub fn body(&self, request: &ChatRequest) -> Result<serde_json::Value, ModelError> {
        let prepared = self.prepared(request).map_err(|fault| error_of(&fault, &self.line.about, None))?;
        Ok(prepared.body)
    }

    /// The models that the endpoint lists.
    pub async fn models(&self) -> Result<Vec<Listed>, ModelError> {
        fetch(&self.line, &self.models).await.map_err(|fault| error_of(&fault, &self.line.about, None))
    }

    fn prepared(&self, request: &ChatRequest) -> Result<Prepared, Fault> {
        let asked = Asked {
            model: &self.model,
            options: &self.options,
            dialect: self.dialect,
            thinks: Thinks::of(&self.model),
        };
        prepare(request, &asked)
    }

    fn news(&self, losses: Vec<Loss>) -> Vec<Delta> {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        losses.into_iter().filter(|loss| told.insert(loss.clone())).map(|loss| notice(&loss)).collect()
    }
}

fn notice(loss: &Loss) -> Delta {
    let (code, message) = match loss {
        Loss::Keywords { tool, keywords } => (
            "schema_reduced",
            format!("the model does not get all of the schema of `{tool}`: {} is lost", keywords.join(", ")),
        ),
        Loss::Tool { tool, why } => ("tool_left_out", format!("the model does not get `{tool}`: {why}")),
    };
    Delta::Notice { code: code.to_owned(), message }
}

impl ChatModel for GeminiModel {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn stream(
        &self,
        request: ChatRequest,
        cancel: CancellationToken,
    ) -> BoxStream<'static, Result<Delta, ModelError>> {
        let mut names = Names::new(Alphabet::Gemini, &[], &[]);
        let ask = self.prepared(&request).map(|prepared| {
            names = prepared.names;
            Ask {
                url: self.url.clone(),
                body: prepared.body.to_string().into(),
                notices: self.news(prepared.losses),
                models: Some(self.models.clone()),
            }
        });
        let model = self.model.clone();
        stream(self.line.clone(), ask, move || Reply::new(&model, names.clone()), cancel)
    }
}
