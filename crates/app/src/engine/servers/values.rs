//! The values behind `${secret:…}` and `${input:…}`: which are needed, which are there, set and forget.
//!
//! Invariant: a value goes in and never comes out.

use std::collections::BTreeMap;

use lectern_core::ServerId;
use lectern_mcp::placeholder::{Reference, input_key, references, secret_key};
use lectern_mcp::{Secrets, SecretsError};
use serde::{Deserialize, Serialize};

use crate::engine::Engine;
use crate::problem::of_secrets;
use crate::secrets::{Kept, variable_of};
use crate::settings::Settings;
use crate::view::Problem;

/// Which kind of placeholder a value stands behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ValueKind {
    /// `${secret:NAME}`.
    Secret,
    /// `${input:ID}`.
    Input,
}

impl ValueKind {
    fn key(self, name: &str) -> String {
        match self {
            Self::Secret => secret_key(name),
            Self::Input => input_key(name),
        }
    }
}

/// A value that servers refer to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NeededValue {
    /// Which kind.
    pub kind: ValueKind,
    /// Its name.
    pub name: String,
    /// Who refers to it.
    pub servers: Vec<ServerId>,
    /// Whether it is there; none when the keyring does not say.
    pub set: Option<bool>,
    /// The variable of the environment that wins over the keyring.
    pub variable: Option<String>,
}

impl Engine {
    /// The values that the servers of the settings refer to. The keyring may ask the user to unlock it.
    pub async fn needed_values(&self) -> Result<Vec<NeededValue>, Problem> {
        let settings = Settings::read(&self.0.home)?;
        let mut needed: BTreeMap<(ValueKind, String), Vec<ServerId>> = BTreeMap::new();
        for (id, config) in settings.servers.keys().filter_map(|id| Some((id, settings.server(id)?.ok()?))) {
            for reference in references(&config) {
                let key = match reference {
                    Reference::Secret(name) => (ValueKind::Secret, name),
                    Reference::Input(name) => (ValueKind::Input, name),
                    Reference::Variable { .. } | Reference::UserHome | Reference::PathSeparator => continue,
                };
                needed.entry(key).or_default().push(id.as_str().into());
            }
        }
        let mut values = Vec::new();
        for ((kind, name), servers) in needed {
            let key = kind.key(&name);
            let set = self.0.secrets.get(&key).await.ok().map(|value| value.is_some());
            values.push(NeededValue { kind, name, servers, set, variable: variable_of(&key) });
        }
        Ok(values)
    }

    /// Keeps a value, over an older one. Says where.
    pub async fn set_value(&self, kind: ValueKind, name: &str, value: &str) -> Result<Kept, Problem> {
        if name.is_empty() || name.contains('}') {
            return Err(Problem::new("bad_secret", "a secret needs a name without `}`"));
        }
        self.0.secrets.keep(&kind.key(name), value).await.map_err(|error| of_secrets(&error))
    }

    /// Forgets a value; fine when there is none.
    pub async fn forget_value(&self, kind: ValueKind, name: &str) -> Result<(), Problem> {
        self.0.secrets.delete(&kind.key(name)).await.map_err(|error| of_secrets(&error))
    }

    /// Whether secrets outlive this process: a keyring is there and takes what it is given.
    pub async fn check_keyring(&self) -> Result<(), Problem> {
        self.0.secrets.check().await.map_err(|error: SecretsError| of_secrets(&error))
    }
}
