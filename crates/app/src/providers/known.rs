//! What is known of providers beyond the settings: who is signed in, where they are asked in this run, what went wrong.
//!
//! Invariant: the keyring is asked once for each login, however many wait for it; a problem is not remembered as a login.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lectern_cloud::credentials::google::METADATA_HOST;
use lectern_cloud::{Credentials, GoogleLogin, Limits};
use lectern_mcp::Secrets;
use tokio::sync::Mutex as AsyncMutex;
use url::Url;

use super::secret::{Secret, bad_credentials};
use super::{Seen, address, address_of, found, name_of};
use crate::problem::of_secrets;
use crate::secrets::{Keyring, variable_of};
use crate::settings::{Login, ProviderEntry};
use crate::view::{Problem, ProviderId, ProviderKind, Reach, SignInKind};

/// What is known of providers beyond the settings.
pub(crate) struct Providers {
    keyring: Keyring,
    /// Where one of them is asked in this run, in place of its own address.
    elsewhere: Option<(ProviderId, Url)>,
    // Std mutexes: nothing awaits while they are held.
    problems: Mutex<HashMap<ProviderId, Problem>>,
    /// Who is signed in until Lectern ends.
    session: Mutex<HashMap<ProviderId, Login>>,
    logins: Mutex<HashMap<ProviderId, Arc<AsyncMutex<Option<SignedIn>>>>>,
}

/// Somebody is signed in.
#[derive(Clone)]
pub(crate) struct SignedIn {
    /// For which state of the provider this holds.
    entry: ProviderEntry,
    /// Who we are.
    pub(crate) credentials: Credentials,
    /// The project that the credentials name.
    pub(crate) project: Option<String>,
}

impl Providers {
    /// Nothing is read yet.
    pub(crate) fn new(keyring: Keyring, elsewhere: Option<(ProviderId, Url)>) -> Self {
        let (problems, session, logins) = (Mutex::default(), Mutex::default(), Mutex::default());
        Self { keyring, elsewhere, problems, session, logins }
    }

    pub(crate) fn environment(&self) -> &Keyring {
        &self.keyring
    }

    /// What is known of a provider's secret.
    pub(crate) fn seen(&self, entry: &ProviderEntry) -> Seen {
        Seen {
            variable: self.variable(entry).map(|(name, _)| name),
            for_this_session: self.keyring.is_for_this_session(&entry.secret_name()),
            session_login: lock(&self.session).get(&entry.id).cloned(),
            problem: lock(&self.problems).get(&entry.id).cloned(),
        }
    }

    /// What is known of a provider is forgotten: it changed, or somebody signed in or out.
    pub(crate) fn forget(&self, id: &ProviderId) {
        lock(&self.problems).remove(id);
        lock(&self.logins).remove(id);
    }

    /// Remembers who signed in with a secret that lasts until Lectern ends; none when nobody did.
    pub(crate) fn signed_in_for_session(&self, id: &ProviderId, login: Option<Login>) {
        match login {
            Some(login) => _ = lock(&self.session).insert(id.clone(), login),
            None => _ = lock(&self.session).remove(id),
        }
    }

    /// Remembers what is in the way, for those who look.
    pub(crate) fn failed(&self, id: &ProviderId, problem: &Problem) {
        lock(&self.problems).insert(id.clone(), problem.clone());
    }

    /// The provider as it is asked in this run.
    pub(crate) fn of_run(&self, entry: &ProviderEntry) -> ProviderEntry {
        let elsewhere = self.elsewhere(entry).map(|url| url.to_string().trim_end_matches('/').to_owned());
        ProviderEntry { base_url: elsewhere.or_else(|| entry.base_url.clone()), ..entry.clone() }
    }

    fn elsewhere(&self, entry: &ProviderEntry) -> Option<&Url> {
        self.elsewhere.as_ref().filter(|(id, _)| *id == entry.id).map(|(_, url)| url)
    }

    /// Who we are to a provider of the settings.
    pub(crate) async fn signed_in(&self, entry: &ProviderEntry) -> Result<SignedIn, Problem> {
        let place = Arc::clone(lock(&self.logins).entry(entry.id.clone()).or_default());
        let mut place = place.lock().await;
        if let Some(known) = place.as_ref().filter(|known| known.entry == *entry) {
            return Ok(known.clone());
        }
        let (credentials, project) = self.sign_in(entry).await?;
        let known = SignedIn { entry: entry.clone(), credentials, project };
        *place = Some(known.clone());
        lock(&self.problems).remove(&entry.id);
        Ok(known)
    }

    async fn sign_in(&self, entry: &ProviderEntry) -> Result<(Credentials, Option<String>), Problem> {
        let login = entry.login.as_ref();
        if entry.sign_in != SignInKind::None {
            address::fit_for_secrets(&address_of(&self.of_run(entry))?)?;
        }
        match entry.sign_in {
            SignInKind::None => Ok((Credentials::None, None)),
            SignInKind::Key | SignInKind::ServiceAccount => {
                let secret = self.secret(entry).await?;
                let fits = matches!(
                    (&secret, entry.sign_in),
                    (Secret::Key { .. }, SignInKind::Key)
                        | (Secret::ServiceAccount { .. }, SignInKind::ServiceAccount)
                );
                if !fits {
                    return Err(signed_out(entry));
                }
                Ok((secret.credentials()?, secret.project()))
            }
            SignInKind::ApplicationDefault => {
                let agreed =
                    login.and_then(|login| login.agreed.as_ref()).ok_or_else(|| signed_out(entry))?;
                Ok((found::credentials(agreed)?, login.and_then(|login| login.project.clone())))
            }
            SignInKind::Metadata if login.is_some() => {
                Ok((Credentials::tokens(self.machine(Limits::default())?), None))
            }
            SignInKind::Metadata => Err(signed_out(entry)),
        }
    }

    /// The account of this machine, in Google's cloud.
    pub(crate) fn machine(&self, limits: Limits) -> Result<GoogleLogin, Problem> {
        let host = self.keyring.variable("GCE_METADATA_HOST").unwrap_or_else(|| METADATA_HOST.to_owned());
        GoogleLogin::machine(&host, limits).map_err(|error| bad_credentials(&error))
    }

    async fn secret(&self, entry: &ProviderEntry) -> Result<Secret, Problem> {
        if let Some((_, value)) = self.variable(entry) {
            return Secret::of_environment(&value);
        }
        let text = self
            .keyring
            .get(&entry.secret_name())
            .await
            .map_err(|error| no_secret(entry, &of_secrets(&error)))?;
        let secret = Secret::of_text(&text.ok_or_else(|| signed_out(entry))?)?;
        if origin_of(entry)? != secret.origin() {
            return Err(Problem::new(
                "address_changed",
                format!(
                    "the secret of `{}` was given for another address, so it is not sent",
                    name_of(entry)
                ),
            )
            .hint("Sign in again for the address as it is now."));
        }
        Ok(secret)
    }

    /// The variable that holds the secret, and its value. The variables of other programs hold for the addresses that
    /// they are meant for, and for what is near.
    fn variable(&self, entry: &ProviderEntry) -> Option<(String, String)> {
        let own = variable_of(&entry.secret_name());
        let of_others: &[&str] = match entry.kind {
            ProviderKind::Vertex => &[],
            ProviderKind::VertexExpress | ProviderKind::Gemini => &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
            ProviderKind::OpenaiCompatible => &["OPENAI_API_KEY"],
        };
        let of_others = of_others.iter().filter(|_| self.meant_for(entry)).map(|name| (*name).to_owned());
        let takes_secret = matches!(entry.sign_in, SignInKind::Key | SignInKind::ServiceAccount);
        own.into_iter()
            .chain(of_others)
            .filter(|_| takes_secret)
            .find_map(|name| self.keyring.variable(&name).map(|value| (name, value)))
    }

    fn meant_for(&self, entry: &ProviderEntry) -> bool {
        let Ok(url) = address_of(entry) else { return false };
        let host = url.host_str().unwrap_or_default();
        match entry.kind {
            ProviderKind::OpenaiCompatible => host == "api.openai.com",
            ProviderKind::Vertex | ProviderKind::VertexExpress | ProviderKind::Gemini => {
                host.ends_with(".googleapis.com") || address::reach(&url) != Reach::Internet
            }
        }
    }
}

/// The origin of a provider, as it stands in the settings.
pub(crate) fn origin_of(entry: &ProviderEntry) -> Result<String, Problem> {
    Ok(address_of(entry)?.origin().ascii_serialization())
}

/// Nobody is signed in.
pub(crate) fn signed_out(entry: &ProviderEntry) -> Problem {
    let variable = variable_of(&entry.secret_name()).unwrap_or_default();
    let hint = match entry.sign_in {
        SignInKind::Key | SignInKind::ServiceAccount => format!(
            "Sign in under Settings, Providers, or with `lectern models login {}`; or give the secret in the variable {variable}.",
            entry.id
        ),
        SignInKind::ApplicationDefault | SignInKind::Metadata | SignInKind::None => {
            format!("Sign in under Settings, Providers, or with `lectern models login {}`.", entry.id)
        }
    };
    Problem::new("signed_out", format!("nobody is signed in to {}", name_of(entry))).hint(hint)
}

/// The keyring does not give the secret.
pub(crate) fn no_secret(entry: &ProviderEntry, problem: &Problem) -> Problem {
    let variable = variable_of(&entry.secret_name()).unwrap_or_default();
    let hint = match problem.code.as_str() {
        "keyring_locked" => {
            format!(
                "Unlock the keyring of your system and try again, or give the secret in the variable {variable}."
            )
        }
        "no_keyring" => format!(
            "Start a keyring (GNOME Keyring, KWallet, KeePassXC) and sign in again, or give the secret in the variable {variable}."
        ),
        _ => format!("Look at the keyring of your system, or give the secret in the variable {variable}."),
    };
    let message = format!("the secret of {} can't be read: {}", name_of(entry), problem.message);
    Problem::new(&problem.code, message).hint(hint)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
