//! The providers of the settings: where remote models are asked, and as whom.
//!
//! Invariant: no secret. A provider's secret is in the keyring under [`ProviderEntry::secret_name`].

use lectern_core::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::view::{ProviderId, ProviderKind, ProviderOptions, SignInKind};

/// Where remote models are asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProviderEntry {
    /// Our id.
    pub id: ProviderId,
    /// What is spoken there.
    pub kind: ProviderKind,
    /// The user's name for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The project, at Vertex AI.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// The location, at Vertex AI: a region, `global`, `us` or `eu`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// The address; none for the provider's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// As whom it is asked.
    pub sign_in: SignInKind,
    /// What was signed in with, without the secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub login: Option<Login>,
    /// Settings of the provider's own.
    #[serde(flatten)]
    pub options: ProviderOptions,
    /// Keys of other versions, kept as they are.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// That the user signed in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Login {
    /// Whose it is, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// The project that the credentials name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Application-default credentials that the user said yes to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agreed: Option<Agreed>,
    /// When.
    pub at: Timestamp,
}

/// Which credentials of this computer the user said yes to. Others that are found there later are not used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agreed {
    /// The file.
    pub path: std::path::PathBuf,
    /// `service_account` or `authorized_user`.
    pub kind: String,
    /// SHA-256 of the file in hexadecimal.
    pub digest: String,
}

impl ProviderEntry {
    /// What its secret is called in the keyring.
    pub fn secret_name(&self) -> String {
        secret_name(&self.id)
    }
}

/// What a provider's secret is called in the keyring.
pub fn secret_name(id: &ProviderId) -> String {
    format!("provider-{id}")
}
