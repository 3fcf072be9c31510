//! Remote models: Gemini at Vertex AI or at Google's developer API, and any OpenAI-compatible endpoint.
//!
//! Invariant: a reply is read to its end before it is finished; what was shown is never silently begun anew; no secret
//! is in an error, a log or a [`Debug`] text. What a provider means is read from its codes, never from its sentences.
//!
//! | module | job |
//! |---|---|
//! | `sse` | cuts a body into events, and keeps what is no event |
//! | `documents`, `loose` | JSON as servers really write it |
//! | `reply` | what is common to the readers of replies |
//! | `gemini` | Gemini: addresses, requests, replies, schemas |
//! | `openai` | OpenAI-compatible endpoints: requests, replies, the list of models |
//! | `outcome` | why a reply ended or was blocked |
//! | `fault`, `problem` | why there is no reply: from a provider's error to a sentence and a way out |
//! | `exchange`, `flow` | one reply over HTTP: sending, reading, trying again |
//! | `transport` | the HTTP client, its limits |
//! | `credentials` | who we are to a provider |
//! | `names` | names of tools in the alphabet of a provider |
//! | `decode` | a recorded answer, read as if it came from the network |
//!
//! # Opening a model
//!
//! A model is opened from plain data; nothing is asked and no file is read by that. Each one is a
//! [`ChatModel`](lectern_core::ChatModel).
//!
//! ```
//! use lectern_cloud::{
//!     Credentials, Endpoint, GeminiConfig, GeminiModel, GeminiOptions, GoogleLogin, Limits, OpenAiConfig, OpenAiModel,
//!     OpenAiOptions, address,
//! };
//! use lectern_core::{ModelInfo, ToolMode};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let info = |id: &str| ModelInfo {
//!     id: id.into(), name: id.to_owned(), tool_mode: ToolMode::Native, context_length: None, vision: true, remote: true,
//! };
//! let gemini = |endpoint, credentials, base| GeminiModel::new(GeminiConfig {
//!     info: info("gemini-3.5-flash"),
//!     model: "gemini-3.5-flash".to_owned(),
//!     endpoint,
//!     base,
//!     credentials,
//!     options: GeminiOptions::default(),
//!     limits: Limits::default(),
//! });
//! let vertex = |location: &str| Endpoint::Vertex { project: "my-project".to_owned(), location: location.to_owned() };
//!
//! // Vertex AI, signed in with a service account's key or gcloud's application-default login, as Google's JSON has them.
//! // `token_uri` in that JSON is where tokens come from; a test gives its own.
//! let json = serde_json::json!({
//!     "type": "authorized_user", "client_id": "1", "client_secret": "2", "refresh_token": "3",
//! });
//! let login = Credentials::tokens(GoogleLogin::from_json(&json, Limits::default())?);
//! let regional = gemini(vertex("europe-west1"), login.clone(), None)?;
//! let global = gemini(vertex("global"), login.clone(), None)?;
//! let multi_region = gemini(vertex("eu"), login.clone(), None)?;
//!
//! // On one of Google's machines: the machine's own account. The host is `GCE_METADATA_HOST`, or this one.
//! let machine = GoogleLogin::machine(lectern_cloud::credentials::google::METADATA_HOST, Limits::default())?;
//! let on_a_machine = gemini(vertex("global"), Credentials::tokens(machine), None)?;
//!
//! // With a key: Vertex AI's express mode, or the developer API.
//! let express = gemini(Endpoint::Express, Credentials::key("AIza…"), None)?;
//! let developer = gemini(Endpoint::Developer, Credentials::key("AIza…"), None)?;
//!
//! // A private endpoint, a proxy, a test: another base, with or without the version (`/v1`).
//! let elsewhere = gemini(vertex("global"), Credentials::None, Some(address("http://127.0.0.1:8080")?))?;
//!
//! // Ollama, LM Studio, vLLM, llama-server: the address with or without `/v1`; a key only where one is asked for.
//! let base = address("localhost:11434")?;
//! let ollama = OpenAiModel::new(OpenAiConfig {
//!     info: info("qwen3:8b"),
//!     model: "qwen3:8b".to_owned(),
//!     options: OpenAiOptions::of(&base),
//!     base,
//!     credentials: Credentials::None,
//!     limits: Limits::default(),
//! })?;
//! # Ok(())
//! # }
//! ```
//!
//! What a provider offers is listed by `models()` of either; [`GeminiModel::sign_in`] tries the credentials alone.
//! Somebody else's tokens come in through [`Mint`] (asked for a new token, kept by [`Tokens`]) or [`TokenSource`] (asked
//! each time). [`google::about`](credentials::google::about) says what a file of credentials is, without a secret.
//!
//! A reply ends with `Finished`, or with a [`ModelError`](lectern_core::ModelError): `code` is for programs, `message`
//! and `hint` are for people, and `detail` is the [`Fault`] as JSON: `kind`, `http`, `said`, `wait_ms`, `broke_off`.
//! Before the first word of a reply, `Delta::Retrying` tells each pause with its milliseconds.

pub mod credentials;
pub mod decode;
mod documents;
mod exchange;
pub mod fault;
mod flow;
pub mod gemini;
mod loose;
mod names;
pub mod openai;
pub mod outcome;
mod problem;
mod reply;
mod sse;
pub mod transport;

pub use credentials::google::{About, BadCredentials, GoogleLogin};
pub use credentials::{Credentials, Mint, SignInError, Token, TokenSource, Tokens};
pub use decode::{Decoded, Provider, recorded};
pub use fault::{Fault, FaultKind};
pub use gemini::{Endpoint, GeminiConfig, GeminiModel, GeminiOptions, Loss};
pub use openai::{Listed, OpenAiConfig, OpenAiModel, OpenAiOptions};
pub use outcome::{BlockReason, Finish};
pub use transport::{ConfigError, Limits, address};
