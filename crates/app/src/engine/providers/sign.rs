//! Signing in to providers and out again.
//!
//! Invariant: a secret is in the keyring, or in memory where there is none, before the settings say that somebody is
//! signed in.

use std::path::Path;
use std::time::Duration;

use lectern_cloud::Limits;
use lectern_cloud::credentials::Mint;
use lectern_core::clock;
use lectern_mcp::Secrets;

use super::super::Engine;
use crate::problem::of_secrets;
use crate::providers::secret::Secret;
use crate::providers::{address, address_of, found, origin_of, sign_ins};
use crate::secrets::{Kept, variable_of};
use crate::settings::{Login, ProviderEntry};
use crate::view::{FoundLogin, Problem, ProviderId, ProviderView, SignIn, SignInKind, SignedIn};

/// Bytes of a file of credentials at most.
const LONGEST_FILE: u64 = 1 << 20;
/// On such a machine the answer comes at once; elsewhere there is none.
const MACHINE_ANSWERS: Duration = Duration::from_secs(3);

impl Engine {
    /// Signs in. The credentials are looked at, not tried; [`Engine::test_model`] tries them.
    pub async fn sign_in_provider(&self, id: &ProviderId, with: SignIn) -> Result<SignedIn, Problem> {
        let entry = self.provider_entry(id)?;
        let origin = origin_of(&entry)?;
        let plain = || Login { account: None, project: None, agreed: None, at: clock::now() };
        let (kind, secret, login) = match with {
            SignIn::Key { key } => (SignInKind::Key, Some(Secret::of_key(&key, &origin)?), plain()),
            SignIn::ServiceAccount { json } => {
                let (secret, login) = Secret::of_service_account(&json, &origin)?;
                (SignInKind::ServiceAccount, Some(secret), login)
            }
            SignIn::ApplicationDefault { path, account } => {
                (SignInKind::ApplicationDefault, None, found::agree(Path::new(&path), account.as_deref())?)
            }
            SignIn::Metadata => {
                self.ask_machine().await?;
                (SignInKind::Metadata, None, plain())
            }
            SignIn::None => (SignInKind::None, None, plain()),
        };
        if !sign_ins(entry.kind).contains(&kind) {
            return Err(Problem::new(
                "bad_provider",
                "this kind of provider can't be signed in to in this way",
            ));
        }
        if kind != SignInKind::None {
            address::fit_for_secrets(&address_of(&entry)?)?;
        }
        let kept = match &secret {
            Some(secret) => Some(self.keep_secret(&entry, secret).await?),
            None => None,
        };
        let login = Some(login).filter(|_| kind != SignInKind::None);
        let for_this_session = match kept {
            Some(Kept::ForThisSession(reason)) => Some(no_keyring(&entry, &of_secrets(&reason))),
            Some(Kept::InKeyring) | None => None,
        };
        // What lasts until Lectern ends is not written down as if it lasted.
        let (kept, session) = match for_this_session {
            Some(_) => (None, login),
            None => (login, None),
        };
        self.change_login(id, kind, kept, session)?;
        Ok(SignedIn { provider: self.provider(id)?, for_this_session })
    }

    /// The same with the key file of a service account. The file is read once and not kept.
    pub async fn sign_in_provider_with_file(
        &self,
        id: &ProviderId,
        path: &Path,
    ) -> Result<SignedIn, Problem> {
        let json = Self::read_credentials(path)?;
        self.sign_in_provider(id, SignIn::ServiceAccount { json }).await
    }

    /// Reads a file of credentials that the user chose.
    pub fn read_credentials(path: &Path) -> Result<String, Problem> {
        let problem =
            |reason: String| Problem::new("bad_credentials", format!("read {}: {reason}", path.display()));
        let read = std::fs::metadata(path).and_then(|meta| match meta.len() {
            0..=LONGEST_FILE => std::fs::read_to_string(path),
            _ => Err(std::io::Error::other("it is too long for a file of credentials")),
        });
        read.map_err(|error| problem(crate::vaults::reason(&error)))
    }

    /// Signs out: the secret is deleted.
    pub async fn sign_out_provider(&self, id: &ProviderId) -> Result<ProviderView, Problem> {
        let entry = self.provider_entry(id)?;
        self.0.secrets.delete(&entry.secret_name()).await.map_err(|error| of_secrets(&error))?;
        self.change_login(id, entry.sign_in, None, None)?;
        self.provider(id)
    }

    /// The application-default credentials of this computer, as far as they can be shown. They are used only when the
    /// user says so.
    pub fn found_login(&self) -> Option<FoundLogin> {
        found::look(self.0.providers.environment())
    }

    /// Whether this machine has an account of its own.
    async fn ask_machine(&self) -> Result<(), Problem> {
        let limits = Limits { connect: MACHINE_ANSWERS, first_byte: MACHINE_ANSWERS, ..Limits::default() };
        let token = self.0.providers.machine(limits)?.mint().await;
        token.map(drop).map_err(|error| {
            Problem::from_error("no_machine_account", &error)
                .hint("This works on machines in Google's cloud only. Sign in in another way.")
        })
    }

    /// Whether what a provider is signed in with could be kept.
    pub async fn check_keyring_for(&self, id: &ProviderId) -> Result<(), Problem> {
        let entry = self.provider_entry(id)?;
        self.check_keyring().await.map_err(|problem| or_variable(&entry, problem))
    }

    async fn keep_secret(&self, entry: &ProviderEntry, secret: &Secret) -> Result<Kept, Problem> {
        let kept = self.0.secrets.keep(&entry.secret_name(), &secret.to_text()).await;
        kept.map_err(|error| or_variable(entry, of_secrets(&error)))
    }

    fn change_login(
        &self,
        id: &ProviderId,
        kind: SignInKind,
        login: Option<Login>,
        session: Option<Login>,
    ) -> Result<(), Problem> {
        self.change_settings(|settings| {
            if let Some(entry) = settings.providers.iter_mut().find(|entry| entry.id == *id) {
                (entry.sign_in, entry.login) = (kind, login);
            }
        })?;
        self.0.providers.forget(id);
        self.0.providers.signed_in_for_session(id, session);
        self.providers_changed();
        Ok(())
    }
}

/// Without a keyring a variable helps out.
fn or_variable(entry: &ProviderEntry, problem: Problem) -> Problem {
    if problem.code == "no_keyring" { no_keyring(entry, &problem) } else { problem }
}

/// The secret is in memory only.
fn no_keyring(entry: &ProviderEntry, problem: &Problem) -> Problem {
    let variable = variable_of(&entry.secret_name()).unwrap_or_default();
    Problem::new("no_keyring", problem.message.clone()).hint(format!(
        "To keep it, start a keyring (GNOME Keyring, KWallet, KeePassXC) and sign in again, or give it in the variable {variable}."
    ))
}
