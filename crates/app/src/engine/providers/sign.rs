//! Signing in to providers and out again.
//!
//! Invariant: a secret is in the keyring, or in memory where there is none, before the settings say that somebody is
//! signed in.

use std::path::Path;

use lectern_core::clock;
use lectern_mcp::Secrets;

use super::super::Engine;
use crate::problem::of_secrets;
use crate::secrets::Kept;
use crate::settings::{Login, ProviderEntry};
use crate::view::{FoundLogin, Problem, ProviderId, ProviderView, SignIn, SignInKind, SignedIn};

impl Engine {
    /// Signs in. The credentials are looked at, not tried; [`Engine::test_model`] tries them.
    pub async fn sign_in_provider(&self, id: &ProviderId, with: SignIn) -> Result<SignedIn, Problem> {
        let entry = self.provider_entry(id)?;
        let (kind, secret) = match with {
            SignIn::Key { key } => (SignInKind::Key, Some(key)),
            SignIn::ServiceAccount { json } => (SignInKind::ServiceAccount, Some(json)),
            SignIn::ApplicationDefault { .. } => (SignInKind::ApplicationDefault, None),
            SignIn::Metadata => (SignInKind::Metadata, None),
            SignIn::None => (SignInKind::None, None),
        };
        let login = Login { account: None, project: None, agreed: None, at: clock::now() };
        let kept = match secret {
            Some(secret) => Some(self.keep_secret(&entry, secret.trim()).await?),
            None => None,
        };
        let for_this_session = match kept {
            Some(Kept::ForThisSession(reason)) => Some(of_secrets(&reason)),
            Some(Kept::InKeyring) | None => None,
        };
        let login = for_this_session.is_none().then_some(login);
        self.change_login(id, kind, login)?;
        Ok(SignedIn { provider: self.provider(id)?, for_this_session })
    }

    /// The same with the key file of a service account. The file is read once and not kept.
    pub async fn sign_in_provider_with_file(
        &self,
        id: &ProviderId,
        path: &Path,
    ) -> Result<SignedIn, Problem> {
        let json = std::fs::read_to_string(path).map_err(|error| {
            Problem::new(
                "bad_credentials",
                format!("read {}: {}", path.display(), crate::vaults::reason(&error)),
            )
        })?;
        self.sign_in_provider(id, SignIn::ServiceAccount { json }).await
    }

    /// Signs out: the secret is deleted.
    pub async fn sign_out_provider(&self, id: &ProviderId) -> Result<ProviderView, Problem> {
        let entry = self.provider_entry(id)?;
        self.0.secrets.delete(&entry.secret_name()).await.map_err(|error| of_secrets(&error))?;
        self.change_login(id, entry.sign_in, None)?;
        self.provider(id)
    }

    /// The application-default credentials of this computer, as far as they can be shown. They are used only when the
    /// user says so.
    pub fn found_login(&self) -> Option<FoundLogin> {
        None
    }

    async fn keep_secret(&self, entry: &ProviderEntry, secret: &str) -> Result<Kept, Problem> {
        if secret.is_empty() {
            return Err(Problem::new("bad_credentials", "the key is empty"));
        }
        let kept = self.0.secrets.keep(&entry.secret_name(), secret).await;
        kept.map_err(|error| of_secrets(&error))
    }

    fn change_login(&self, id: &ProviderId, kind: SignInKind, login: Option<Login>) -> Result<(), Problem> {
        self.change_settings(|settings| {
            if let Some(entry) = settings.providers.iter_mut().find(|entry| entry.id == *id) {
                (entry.sign_in, entry.login) = (kind, login);
            }
        })?;
        self.0.providers.forget(id);
        self.providers_changed();
        Ok(())
    }
}
