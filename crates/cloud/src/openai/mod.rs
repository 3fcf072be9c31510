//! Any endpoint that speaks OpenAI's chat completions: Ollama, LM Studio, vLLM, llama-server, OpenRouter, OpenAI.
//!
//! Invariant: one `ChatModel` is one model at one endpoint; its requests depend on the history alone.

mod calls;
pub(crate) mod models;
mod reasoning;
pub(crate) mod reply;
mod request;
mod think;
mod wire;

use futures::stream::BoxStream;
use lectern_core::{ChatModel, ChatRequest, Delta, ModelError, ModelInfo};
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::credentials::{Credentials, KeyHeader};
use crate::exchange::{Ask, Line, stream};
use crate::fault::Fault;
use crate::names::{Alphabet, Names};
use crate::problem::{About, error_of};
use crate::transport::{self, ConfigError, Limits, below, host_of};
use reply::Reply;
use request::{Prepared, prepare};

pub use models::Listed;

/// One model at one endpoint.
#[derive(Clone, Debug)]
pub struct OpenAiConfig {
    /// What the app knows of it.
    pub info: ModelInfo,
    /// The server's name for it.
    pub model: String,
    /// The endpoint: with or without `/v1`, or with the whole path to `chat/completions`.
    pub base: Url,
    /// Who we are.
    pub credentials: Credentials,
    /// Settings of the endpoint.
    pub options: OpenAiOptions,
    /// How long things may take.
    pub limits: Limits,
}

/// What an endpoint understands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenAiOptions {
    /// The limit of tokens is called `max_completion_tokens`.
    pub completion_tokens: bool,
    /// It knows `top_k`, `min_p`, `repeat_penalty` and `chat_template_kwargs`. Sent only when the user sets them.
    pub extended: bool,
    /// It takes `stream_options`.
    pub stream_usage: bool,
    /// It takes images.
    pub images: bool,
    /// How hard the model thinks (`low`, `medium`, `high`), where the user chose.
    pub reasoning_effort: Option<String>,
}

impl OpenAiOptions {
    /// What is usual at this address.
    pub fn of(base: &Url) -> Self {
        let host = base.host_str().unwrap_or_default();
        // These refuse what they do not know; Mistral counts without being asked.
        let strict =
            matches!(host, "api.openai.com" | "api.mistral.ai" | "api.groq.com" | "api.deepseek.com");
        Self {
            completion_tokens: host == "api.openai.com",
            extended: !strict,
            stream_usage: host != "api.mistral.ai",
            images: true,
            reasoning_effort: None,
        }
    }
}

/// An OpenAI-compatible endpoint as a chat model.
pub struct OpenAiModel {
    info: ModelInfo,
    model: String,
    options: OpenAiOptions,
    url: Url,
    models: Url,
    line: Line,
    /// The model at its address, as its messages remember it.
    origin: String,
}

impl OpenAiModel {
    /// Nothing is asked yet.
    pub fn new(config: OpenAiConfig) -> Result<Self, ConfigError> {
        let OpenAiConfig { info, model, base, credentials, options, limits } = config;
        let base = api_base(&base);
        let about = About {
            model: model.clone(),
            host: host_of(&base),
            here: transport::is_here(&base),
            location: None,
            proxy: transport::proxy_of(&base),
        };
        let client = transport::client(&base, &limits)?;
        let line = Line { client, credentials, key: KeyHeader::Bearer, limits, about };
        let (url, models) = (below(&base, ["chat", "completions"]), below(&base, ["models"]));
        let origin = format!("{model} {base}");
        Ok(Self { info, model, options, url, models, line, origin })
    }

    /// The models that the endpoint lists.
    pub async fn models(&self) -> Result<Vec<Listed>, ModelError> {
        models::fetch(&self.line, &self.models)
            .await
            .map_err(|fault| error_of(&fault, &self.line.about, None))
    }

    fn prepared(&self, request: &ChatRequest) -> Result<Prepared, Fault> {
        prepare(request, &self.model, &self.options, &self.origin)
    }
}

/// People give the server's address, that of the API, or that of the method.
fn api_base(given: &Url) -> Url {
    let mut url = given.clone();
    url.set_query(None);
    url.set_fragment(None);
    let path = url.path().trim_end_matches('/');
    let path =
        path.strip_suffix("/chat/completions").or_else(|| path.strip_suffix("/models")).unwrap_or(path);
    let path = if path.is_empty() { "/v1".to_owned() } else { path.to_owned() };
    url.set_path(&path);
    url
}

impl ChatModel for OpenAiModel {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn stream(
        &self,
        request: ChatRequest,
        cancel: CancellationToken,
    ) -> BoxStream<'static, Result<Delta, ModelError>> {
        let mut names = Names::new(Alphabet::OpenAi, &[], &[]);
        let ask = self.prepared(&request).map(|prepared| {
            names = prepared.names;
            Ask {
                url: self.url.clone(),
                body: prepared.body.to_string().into(),
                notices: Vec::new(),
                models: Some(self.models.clone()),
            }
        });
        let origin = self.origin.clone();
        stream(self.line.clone(), ask, move || Reply::new(names.clone(), &origin), cancel)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_write_the_address_is_the_same() {
        for (given, expected) in [
            ("http://h:1", "http://h:1/v1/chat/completions"),
            ("http://h:1/", "http://h:1/v1/chat/completions"),
            ("http://h:1/v1/", "http://h:1/v1/chat/completions"),
            ("http://h:1/v1/chat/completions", "http://h:1/v1/chat/completions"),
            ("http://h:1/api/v1/models?x=1", "http://h:1/api/v1/chat/completions"),
        ] {
            let base = api_base(&Url::parse(given).unwrap());
            assert_eq!(below(&base, ["chat", "completions"]).as_str(), expected, "{given}");
        }
    }
}
