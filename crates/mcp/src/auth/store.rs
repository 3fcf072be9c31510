//! Tokens in the keyring.
//!
//! Invariant: an entry belongs to one issuer and one server; both stand in its name and in it, and one that is not for
//! this server is not used.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use reqwest::header::HeaderValue;
use serde::{Deserialize, Serialize};
use url::Url;

use super::client::{Client, RegisterError};
use crate::config::SignIn;
use crate::secrets::{Secrets, SecretsError};

/// A token is renewed so many seconds before it ends.
const BEFORE_THE_END: u64 = 60;

/// What one authorization server gave for one server.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Tokens {
    pub(super) issuer: String,
    pub(super) resource: String,
    pub(super) endpoint: Url,
    pub(super) client: Client,
    pub(super) access: String,
    pub(super) refresh: Option<String>,
    /// Seconds since 1970.
    pub(super) ends: Option<u64>,
    pub(super) scopes: Vec<String>,
    /// All scopes to ask for when the user signs in the next time; empty when these here do.
    #[serde(default)]
    pub(super) wanted: Vec<String>,
}

// Tokens stay out of logs.
impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tokens")
            .field("issuer", &self.issuer)
            .field("ends", &self.ends)
            .finish_non_exhaustive()
    }
}

impl Tokens {
    pub(super) fn header(&self) -> Option<HeaderValue> {
        let mut header = HeaderValue::try_from(format!("Bearer {}", self.access)).ok()?;
        header.set_sensitive(true);
        Some(header)
    }

    pub(super) fn ends_soon(&self) -> bool {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        self.ends.is_some_and(|ends| ends <= now.saturating_add(BEFORE_THE_END))
    }
}

/// The tokens of one server.
pub(crate) struct Kept {
    server: String,
    secrets: Option<Arc<dyn Secrets>>,
}

impl Kept {
    pub(crate) fn new(server: &Url, secrets: Option<Arc<dyn Secrets>>) -> Self {
        let mut server = server.clone();
        server.set_fragment(None);
        server.set_query(None);
        let _ = server.set_password(None);
        let _ = server.set_username("");
        Self { server: server.to_string(), secrets }
    }

    /// Which authorization server signed the user in to this server the last time.
    pub(crate) async fn issuer(&self) -> Result<Option<String>, SecretsError> {
        match &self.secrets {
            Some(secrets) => secrets.get(&self.pointer()).await,
            None => Ok(None),
        }
    }

    /// The tokens that are kept; none as well when the keyring does not answer.
    pub(super) async fn load(&self) -> Option<Tokens> {
        let secrets = self.secrets.as_ref()?;
        let issuer = self.issuer().await.ok()??;
        let text = secrets.get(&self.entry(&issuer)).await.ok()??;
        let tokens: Tokens = serde_json::from_str(&text).ok()?;
        (tokens.issuer == issuer).then_some(tokens)
    }

    pub(super) async fn save(&self, tokens: &Tokens) -> Result<(), super::AuthError> {
        let Some(secrets) = &self.secrets else { return Ok(()) };
        let failed = |why: String| super::AuthError::Keep(why);
        let text = serde_json::to_string(tokens).map_err(|error| failed(error.to_string()))?;
        let kept = secrets.set(&self.entry(&tokens.issuer), &text).await;
        kept.map_err(|error| failed(error.to_string()))?;
        secrets.set(&self.pointer(), &tokens.issuer).await.map_err(|error| failed(error.to_string()))
    }

    /// Forgets what is kept for this server.
    pub(crate) async fn forget(&self) -> Result<(), SecretsError> {
        let Some(secrets) = &self.secrets else { return Ok(()) };
        if let Some(issuer) = self.issuer().await? {
            secrets.delete(&self.entry(&issuer)).await?;
        }
        secrets.delete(&self.pointer()).await
    }

    /// A client id of the settings belongs to the authorization server that it was first used with.
    pub(super) async fn check_client(&self, settings: &SignIn, now: &str) -> Result<(), RegisterError> {
        if settings.client_id.is_none() {
            return Ok(());
        }
        match self.issuer().await {
            Ok(Some(before)) if before != now => {
                Err(RegisterError::OtherIssuer { before, now: now.to_owned() })
            }
            Ok(_) | Err(_) => Ok(()),
        }
    }

    fn entry(&self, issuer: &str) -> String {
        format!("oauth:{issuer} {}", self.server)
    }

    fn pointer(&self) -> String {
        format!("oauth-issuer:{}", self.server)
    }
}
