//! The local HTTP API in the settings.
//!
//! Invariant: no key. Its keys are named here; what they are and may do is in the keyring.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The local HTTP API.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ApiEntry {
    /// Whether the window serves it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub on: bool,
    /// Where the window listens; none for this computer alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bind: Option<String>,
    /// The window's port; none for the usual one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// Web pages that may ask, by their origin.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub origins: Vec<String>,
    /// Names, beside addresses, under which this computer may be asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// The names of its keys; what they are and may do is in the keyring.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<String>,
    /// Keys of other versions, kept as they are.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl ApiEntry {
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}
