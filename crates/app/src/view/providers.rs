//! Remote models: providers, logins, what they offer, what a test found.
//!
//! Invariant: no secret goes out; one that comes in is never printed.

use std::collections::BTreeMap;

use lectern_core::{ModelId, Timestamp, ToolName, Usage};
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::{ModelView, Problem};

/// Our id of a provider.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, TS)]
#[serde(transparent)]
#[ts(export, export_to = "app/providers.ts")]
pub struct ProviderId(pub String);

impl std::fmt::Display for ProviderId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<&str> for ProviderId {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

/// What is spoken at a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export, export_to = "app/providers.ts")]
pub enum ProviderKind {
    /// Vertex AI in a project of Google Cloud.
    Vertex,
    /// Vertex AI with a key (express mode).
    VertexExpress,
    /// The Gemini developer API, with a key.
    Gemini,
    /// OpenAI's chat completions: Ollama, LM Studio, vLLM, llama-server, OpenRouter, OpenAI.
    OpenaiCompatible,
}

/// As whom a provider is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export, export_to = "app/providers.ts")]
pub enum SignInKind {
    /// With the key of a service account, which is kept in the keyring.
    ServiceAccount,
    /// With the application-default credentials of this computer, which stay where they are.
    ApplicationDefault,
    /// As the machine itself, in Google's cloud.
    Metadata,
    /// With a key, which is kept in the keyring.
    Key,
    /// As nobody.
    None,
}

/// How far away an address is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export, export_to = "app/providers.ts")]
pub enum Reach {
    /// This computer.
    ThisComputer,
    /// The network around it.
    PrivateNetwork,
    /// Anywhere.
    Internet,
}

/// Settings of a provider's own. What is unset is its own default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(default)]
#[ts(export, export_to = "app/providers.ts")]
pub struct ProviderOptions {
    /// How hard models think: `low`, `medium`, `high`. Gemini 3 and later, and models that reason at OpenAI-compatible
    /// endpoints.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub thinking_level: Option<String>,
    /// Gemini: what is let through, `HARM_CATEGORY_…` to `BLOCK_…`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub safety: BTreeMap<String, String>,
    /// Gemini: whether tools are described with the whole JSON Schema; else with the subset that every endpoint takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub whole_schemas: Option<bool>,
    /// OpenAI-compatible: whether usage is asked for with the stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub stream_usage: Option<bool>,
    /// Seconds until the first byte of an answer. A server may load a model, or read a long prompt, in that time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub wait_seconds: Option<u32>,
    /// Seconds between two pieces of an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub stall_seconds: Option<u32>,
}

/// A provider as the shells show it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/providers.ts")]
pub struct ProviderView {
    /// Its id.
    pub id: ProviderId,
    /// A name for people.
    pub name: String,
    /// What is spoken there.
    pub kind: ProviderKind,
    /// The project, at Vertex AI.
    pub project: Option<String>,
    /// The location, at Vertex AI.
    pub location: Option<String>,
    /// The address that the user gave; none for the provider's own.
    pub base_url: Option<String>,
    /// Where requests go.
    pub address: String,
    /// How far away that is.
    pub reach: Reach,
    /// As whom it is asked.
    pub sign_in: SignInKind,
    /// The ways to sign in that there are for this kind.
    pub sign_ins: Vec<SignInKind>,
    /// Whether somebody is signed in, and who.
    pub login: LoginView,
    /// Settings of its own.
    pub options: ProviderOptions,
    /// The models of the list that it answers for.
    pub models: Vec<ModelId>,
    /// What is in the way, when something is.
    pub problem: Option<Problem>,
}

/// Whether somebody is signed in at a provider, as far as is known without asking the keyring.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(tag = "type", rename_all = "snake_case")]
#[ts(export, export_to = "app/providers.ts")]
pub enum LoginView {
    /// It is asked as nobody.
    NotNeeded,
    /// Nobody.
    SignedOut,
    /// Somebody.
    SignedIn {
        /// Whose account it is, where that is known.
        account: Option<String>,
        /// The project that the credentials name.
        project: Option<String>,
        /// Where the secret is.
        place: SecretPlace,
        /// The variable or the file, where it is in one.
        from: Option<String>,
    },
}

/// Where a secret is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export, export_to = "app/providers.ts")]
pub enum SecretPlace {
    /// In the keyring of the system.
    Keyring,
    /// In memory until Lectern ends, because there is no keyring.
    Session,
    /// In a variable of the environment, which wins.
    Environment,
    /// In a file of another program, which Lectern may read.
    File,
    /// The machine itself gives it.
    Machine,
}

/// A provider to add, or what it is to become.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/providers.ts")]
pub struct ProviderDraft {
    /// What is spoken there; can't be changed later.
    pub kind: ProviderKind,
    /// A name for people; none for the usual one.
    #[serde(default)]
    #[ts(optional)]
    pub name: Option<String>,
    /// The project, at Vertex AI; none for that of the credentials.
    #[serde(default)]
    #[ts(optional)]
    pub project: Option<String>,
    /// The location, at Vertex AI; none for `global`.
    #[serde(default)]
    #[ts(optional)]
    pub location: Option<String>,
    /// The address; none for the provider's own. OpenAI-compatible endpoints need one.
    #[serde(default)]
    #[ts(optional)]
    pub base_url: Option<String>,
    /// As whom it is asked; none for what is usual.
    #[serde(default)]
    #[ts(optional)]
    pub sign_in: Option<SignInKind>,
    /// Settings of its own.
    #[serde(default)]
    #[ts(as = "Option<ProviderOptions>", optional)]
    pub options: ProviderOptions,
}

/// Signing in. Whatever is secret in it is kept in the keyring and nowhere else.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(tag = "type", rename_all = "snake_case")]
#[ts(export, export_to = "app/providers.ts")]
pub enum SignIn {
    /// With a key.
    Key {
        /// The key.
        key: String,
    },
    /// With the key file of a service account.
    ServiceAccount {
        /// Its JSON.
        json: String,
    },
    /// The user's yes to credentials that were found, as they were shown.
    ApplicationDefault {
        /// The file, as it was shown.
        path: String,
        /// The account, as it was shown.
        #[serde(default)]
        #[ts(optional)]
        account: Option<String>,
    },
    /// As the machine itself.
    Metadata,
    /// As nobody.
    None,
}

impl std::fmt::Debug for SignIn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Key { .. } => "Key(…)",
            Self::ServiceAccount { .. } => "ServiceAccount(…)",
            Self::ApplicationDefault { .. } => "ApplicationDefault",
            Self::Metadata => "Metadata",
            Self::None => "None",
        })
    }
}

/// What came of signing in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/providers.ts")]
pub struct SignedIn {
    /// The provider as it is now.
    pub provider: ProviderView,
    /// Why the secret is kept for this session only, when it is.
    pub for_this_session: Option<Problem>,
}

/// Credentials of this computer that Lectern found and does not use before the user says yes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/providers.ts")]
pub struct FoundLogin {
    /// The file.
    pub path: String,
    /// The variable that names the file; none for the usual place.
    pub variable: Option<String>,
    /// `service_account` or `authorized_user`; none when it can't be read.
    pub kind: Option<String>,
    /// Whose it is, where the file says so.
    pub account: Option<String>,
    /// The project (of a person's login: the one that pays).
    pub project: Option<String>,
    /// Why it can't be used, when it can't.
    pub problem: Option<Problem>,
}

/// A model that a provider offers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/providers.ts")]
pub struct OfferedModel {
    /// The provider's name for it.
    pub model: String,
    /// A name for people, when the provider has one.
    pub name: Option<String>,
    /// What is known of it.
    pub facts: ModelFacts,
    /// The model of the list that this is.
    pub added: Option<ModelId>,
}

/// What a model can; none where nobody said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(default)]
#[ts(export, export_to = "app/providers.ts")]
pub struct ModelFacts {
    /// Calls tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub tools: Option<bool>,
    /// Sees images.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub vision: Option<bool>,
    /// Thinks before it answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub thinking: Option<bool>,
    /// Tokens of context.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub context_length: Option<u32>,
}

impl ModelFacts {
    /// Whether nothing is said.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// What these say and the usual ones do not.
    #[must_use]
    pub fn beyond(self, usual: Self) -> Self {
        fn said<T: PartialEq>(said: Option<T>, usual: Option<T>) -> Option<T> {
            if said == usual { None } else { said }
        }
        Self {
            tools: said(self.tools, usual.tools),
            vision: said(self.vision, usual.vision),
            thinking: said(self.thinking, usual.thinking),
            context_length: said(self.context_length, usual.context_length),
        }
    }

    /// These, and the others where these say nothing.
    #[must_use]
    pub fn or(self, others: Self) -> Self {
        Self {
            tools: self.tools.or(others.tools),
            vision: self.vision.or(others.vision),
            thinking: self.thinking.or(others.thinking),
            context_length: self.context_length.or(others.context_length),
        }
    }
}

/// What a model costs, as the user entered it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/providers.ts")]
pub struct Price {
    /// A million tokens of the prompt.
    pub input: f64,
    /// A million tokens that it writes, thinking included.
    pub output: f64,
    /// A million tokens of the prompt that the provider had kept; none where they cost the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub cached: Option<f64>,
    /// E.g. `EUR`.
    pub currency: String,
}

impl Price {
    /// What this cost, in the currency of the price.
    pub fn of(&self, usage: &Usage) -> f64 {
        let kept = usage.reused_tokens.min(usage.prompt_tokens);
        let read = f64::from(usage.prompt_tokens - kept) * self.input;
        let read = read + f64::from(kept) * self.cached.unwrap_or(self.input);
        (read + f64::from(usage.generated_tokens) * self.output) / 1e6
    }
}

/// What is particular to a remote model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/providers.ts")]
pub struct RemoteView {
    /// Who answers.
    pub provider: ProviderId,
    /// The provider's name for people.
    pub provider_name: String,
    /// What is spoken there; none when the provider is gone.
    pub kind: Option<ProviderKind>,
    /// The provider's name for the model.
    pub model: String,
    /// The host that is asked.
    pub host: String,
    /// How far away that is.
    pub reach: Reach,
    /// Whether what is written leaves this computer.
    pub leaves_machine: bool,
    /// What it can.
    pub facts: ModelFacts,
    /// What it costs, if the user said so.
    pub price: Option<Price>,
}

/// A model of a provider to add to the list, or what it is to become.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/providers.ts")]
pub struct RemoteDraft {
    /// Who answers.
    pub provider: ProviderId,
    /// The provider's name for the model.
    pub model: String,
    /// The user's name for it.
    #[serde(default)]
    #[ts(optional)]
    pub name: Option<String>,
    /// What it costs.
    #[serde(default)]
    #[ts(optional)]
    pub price: Option<Price>,
    /// What it can, where the user knows better.
    #[serde(default)]
    #[ts(as = "Option<ModelFacts>", optional)]
    pub facts: ModelFacts,
}

/// A provider that was removed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/providers.ts")]
pub struct RemovedProvider {
    /// Brings it back, until Lectern ends; then its secret is deleted.
    pub token: String,
    /// The provider as it was.
    pub provider: ProviderView,
    /// Its models, which went with it.
    pub models: Vec<ModelView>,
}

/// What the test of a model found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/providers.ts")]
pub struct ModelTest {
    /// The model.
    pub model: ModelId,
    /// When.
    #[ts(type = "string")]
    pub at: Timestamp,
    /// A tiny question.
    pub answer: TestedReply,
    /// A question that needs a tool; none when the first one failed.
    pub call: Option<TestedReply>,
}

/// One reply of a test.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/providers.ts")]
pub struct TestedReply {
    /// Whether it was as it should be.
    pub passed: bool,
    /// What it wrote.
    pub text: String,
    /// What it thought.
    pub thinking: String,
    /// What it called.
    pub calls: Vec<TestedCall>,
    /// Tokens, in the provider's own numbers.
    pub usage: Usage,
    /// Milliseconds until the first piece.
    pub first_ms: Option<u32>,
    /// Milliseconds as a whole.
    pub total_ms: u32,
    /// Why there is no reply, or what is wrong with it.
    pub problem: Option<Problem>,
}

/// A call of a test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/providers.ts")]
pub struct TestedCall {
    /// The tool.
    pub tool: ToolName,
    /// The arguments, JSON text as the model wrote it.
    pub arguments: String,
}
