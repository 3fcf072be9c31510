//! What is kept for the local API: how it is served in the settings, with the names of its keys; all else in the keyring.
//!
//! Invariant: what a key may do stands with its secret: a line in the settings, which are a text file, makes no key.

use lectern_mcp::Secrets;

use super::Engine;
use crate::problem::of_secrets;
use crate::secrets::Kept;
use crate::settings::{ApiEntry, Settings};
use crate::view::Problem;

/// A key as it is kept.
#[derive(Clone)]
pub struct KeptKey {
    /// Its name.
    pub name: String,
    /// What the keyring has for it; none when it has nothing.
    pub value: Option<String>,
}

impl Engine {
    /// What the settings say of the API.
    pub fn api_entry(&self) -> Result<ApiEntry, Problem> {
        Ok(Settings::read(&self.0.home)?.api)
    }

    /// Changes what the settings say of the API.
    pub fn change_api(&self, change: impl FnOnce(&mut ApiEntry)) -> Result<(), Problem> {
        self.change_settings(|settings| change(&mut settings.api))
    }

    /// The keys, in the order in which they were made. The keyring may wait for its user.
    pub async fn api_keys(&self) -> Result<Vec<KeptKey>, Problem> {
        let settings = Settings::read(&self.0.home)?;
        let mut keys = Vec::with_capacity(settings.api.keys.len());
        for name in settings.api.keys {
            let value = self.0.secrets.get(&entry(&name)).await.map_err(|error| of_secrets(&error))?;
            keys.push(KeptKey { name, value });
        }
        Ok(keys)
    }

    /// Keeps a key. Where there is no keyring it is good until Lectern ends, and its name is not kept.
    pub async fn keep_api_key(&self, key: KeptKey) -> Result<Kept, Problem> {
        let value = key.value.unwrap_or_default();
        let kept =
            self.0.secrets.keep(&entry(&key.name), &value).await.map_err(|error| of_secrets(&error))?;
        if kept == Kept::InKeyring {
            self.change_settings(|settings| {
                if !settings.api.keys.contains(&key.name) {
                    settings.api.keys.push(key.name);
                }
            })?;
        }
        Ok(kept)
    }

    /// Forgets a key. False when there is none of this name.
    pub async fn forget_api_key(&self, name: &str) -> Result<bool, Problem> {
        let known = self.change_settings(|settings| {
            let before = settings.api.keys.len();
            settings.api.keys.retain(|key| key != name);
            settings.api.keys.len() < before
        })?;
        self.0.secrets.delete(&entry(name)).await.map_err(|error| of_secrets(&error))?;
        Ok(known)
    }
}

fn entry(name: &str) -> String {
    format!("api-key:{name}")
}
