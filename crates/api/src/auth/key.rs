//! A key: its name, its secret, what it may do.
//!
//! Invariant: the secret is never in a debug print.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::Caller;

/// What a key may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Ask models.
    Models,
    /// Run tools of the user's servers.
    Tools,
    /// Answer for the user when a tool needs consent.
    Approvals,
}

impl Scope {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Models, Self::Tools, Self::Approvals];

    /// As it is typed and shown.
    pub fn name(self) -> &'static str {
        match self {
            Self::Models => "models",
            Self::Tools => "tools",
            Self::Approvals => "approvals",
        }
    }
}

/// A key.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    /// What the user calls it; stands in the audit log.
    pub name: String,
    secret: String,
    /// Tells it from an earlier key of the same name; its name when there is none.
    #[serde(default)]
    id: String,
    /// What it may do.
    pub scopes: Vec<Scope>,
    /// Whether the user's servers serve each of its requests, also those that don't ask for it.
    #[serde(default)]
    pub server_tools: bool,
}

impl Key {
    /// A new key that may ask models and run tools.
    pub fn fresh(name: &str) -> Self {
        // 244 random bits. Some clients know a key by its beginning.
        let random = || uuid::Uuid::new_v4().simple();
        Self {
            name: name.to_owned(),
            secret: format!("sk-lectern-{}{}", random(), random()),
            id: random().to_string(),
            scopes: vec![Scope::Models, Scope::Tools],
            server_tools: false,
        }
    }

    /// With other scopes.
    #[must_use]
    pub fn with_scopes(mut self, scopes: impl Into<Vec<Scope>>) -> Self {
        self.scopes = scopes.into();
        self
    }

    /// Whose requests the user's servers serve.
    #[must_use]
    pub fn with_server_tools(mut self, server_tools: bool) -> Self {
        self.server_tools = server_tools;
        self
    }

    /// With a name that says all: what an earlier key of this name has kept is this one's too.
    #[must_use]
    pub fn known_by_its_name(mut self) -> Self {
        self.id.clear();
        self
    }

    /// What a client sends.
    pub fn secret(&self) -> &str {
        &self.secret
    }

    pub(super) fn caller(&self) -> Caller {
        Caller {
            name: self.name.as_str().into(),
            id: if self.id.is_empty() { self.name.as_str() } else { self.id.as_str() }.into(),
            scopes: self.scopes.as_slice().into(),
            server_tools: self.server_tools,
            request: None,
        }
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Key").field("name", &self.name).field("scopes", &self.scopes).finish_non_exhaustive()
    }
}

pub(super) fn digest(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}
