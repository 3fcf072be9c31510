//! The user's secrets, in the keyring of the system.
//!
//! Invariant: a secret is written to the keyring or kept in memory, never to a file of ours, never into a message. The
//! keyring is asked on a thread of its own: it may wait for the user's password, and nobody else waits with it.

mod parts;
mod platform;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use keyring_core::{CredentialStore, Error};
use lectern_mcp::{Secrets, SecretsError};
use tokio::sync::oneshot;

/// How the keyring calls us.
const SERVICE: &str = "lectern";
/// Kept, read and deleted again to see whether the keyring works.
const PROBE: &str = "probe";
/// How long the keyring may take; it may ask the user for a password.
const LIMIT: Duration = Duration::from_secs(120);
/// Set to `off`, no keyring is used at all.
const SWITCH: &str = "LECTERN_KEYRING";

/// Where a secret was put.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kept {
    /// In the keyring of the system.
    InKeyring,
    /// In memory, until Lectern ends, and why not in the keyring.
    ForThisSession(SecretsError),
}

/// The keyring of the system; memory where there is none. Clones are the same.
#[derive(Clone)]
pub struct Keyring(Arc<Inner>);

struct Inner {
    /// What the keyring could not take, until Lectern ends.
    // A std mutex: nothing awaits while it is held.
    memory: Mutex<BTreeMap<String, String>>,
    jobs: Result<mpsc::Sender<Job>, SecretsError>,
    variable: Variable,
}

pub(crate) type Variable = Box<dyn Fn(&str) -> Option<String> + Send + Sync>;
type Job = Box<dyn FnOnce(&mut Door) + Send>;
type Open = Box<dyn Fn() -> Result<Arc<CredentialStore>, Error> + Send>;

/// The way to the keyring, on its own thread.
struct Door {
    open: Open,
    store: Option<Arc<CredentialStore>>,
}

impl Keyring {
    /// The keyring of this system. It is not asked before it is needed. A variable of the environment wins over it:
    /// `LECTERN_SECRET_NAME` for `${secret:NAME}`, `LECTERN_INPUT_ID` for `${input:ID}`, `LECTERN_PROVIDER_ID` for the
    /// secret of a provider.
    pub fn of_system() -> Self {
        let variable = |name: &str| std::env::var(name).ok();
        if variable(SWITCH).is_some_and(|value| value.eq_ignore_ascii_case("off")) {
            return Self::without(SecretsError::Unavailable(format!("{SWITCH} is off")), Box::new(variable));
        }
        Self::with(Box::new(platform::open), Box::new(variable))
    }

    fn with(open: Open, variable: Variable) -> Self {
        let (sender, jobs) = mpsc::channel::<Job>();
        let run = move || {
            let mut door = Door { open, store: None };
            jobs.into_iter().for_each(|job| job(&mut door));
        };
        let thread = std::thread::Builder::new().name("keyring".into()).spawn(run);
        let jobs = match thread {
            Ok(_) => Ok(sender),
            Err(error) => Err(SecretsError::Unavailable(error.to_string())),
        };
        Self(Arc::new(Inner { memory: Mutex::default(), jobs, variable }))
    }

    pub(crate) fn without(reason: SecretsError, variable: Variable) -> Self {
        Self(Arc::new(Inner { memory: Mutex::default(), jobs: Err(reason), variable }))
    }

    /// Keeps a secret in the keyring, or in memory where there is no keyring. A keyring that is locked is an error.
    pub async fn keep(&self, name: &str, value: &str) -> Result<Kept, SecretsError> {
        let (name, value) = (name.to_owned(), value.to_owned());
        let asked = (name.clone(), value.clone());
        match self.ask(move |store| parts::set(store, SERVICE, &asked.0, &asked.1)).await {
            Ok(()) => {
                self.memory(|memory| memory.remove(&name));
                Ok(Kept::InKeyring)
            }
            Err(reason @ SecretsError::Unavailable(_)) => {
                self.memory(|memory| memory.insert(name, value));
                Ok(Kept::ForThisSession(reason))
            }
            Err(error @ (SecretsError::Locked | SecretsError::Refused(_))) => Err(error),
        }
    }

    /// Whether the keyring keeps, gives back and forgets a value. May ask the user to unlock it.
    pub async fn check(&self) -> Result<(), SecretsError> {
        self.ask(|store| {
            let value = format!("{}", std::process::id());
            let name = format!("{PROBE}-{value}");
            parts::set(store, SERVICE, &name, &value)?;
            let read = parts::get(store, SERVICE, &name);
            parts::delete(store, SERVICE, &name)?;
            match read?.as_deref() == Some(value.as_str()) {
                true => Ok(()),
                false => Err(Error::PlatformFailure("it did not give back what it was given".into())),
            }
        })
        .await
    }

    /// The value of a variable of the environment, unless it is empty.
    pub(crate) fn variable(&self, name: &str) -> Option<String> {
        (self.0.variable)(name).filter(|value| !value.is_empty())
    }

    /// Whether a secret is in memory until Lectern ends.
    pub fn is_for_this_session(&self, name: &str) -> bool {
        self.memory(|memory| memory.contains_key(name))
    }

    /// The value that the environment gives a secret.
    fn overriding(&self, name: &str) -> Option<String> {
        (self.0.variable)(&variable_of(name)?).filter(|value| !value.is_empty())
    }

    fn memory<T>(&self, change: impl FnOnce(&mut BTreeMap<String, String>) -> T) -> T {
        change(&mut self.0.memory.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&CredentialStore) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, SecretsError> {
        let (answer, answered) = oneshot::channel();
        let job: Job = Box::new(move |door| _ = answer.send(door.ask(question)));
        let gone = || SecretsError::Unavailable("its thread is gone".into());
        self.0.jobs.as_ref().map_err(Clone::clone)?.send(job).map_err(|_| gone())?;
        match tokio::time::timeout(LIMIT, answered).await {
            Ok(answered) => answered.map_err(|_| gone())?,
            Err(_) => Err(SecretsError::Refused(format!("no answer within {} seconds", LIMIT.as_secs()))),
        }
    }
}

impl Door {
    fn ask<T>(
        &mut self,
        question: impl FnOnce(&CredentialStore) -> Result<T, Error>,
    ) -> Result<T, SecretsError> {
        let store = match &self.store {
            Some(store) => Arc::clone(store),
            None => {
                let opened = (self.open)().map_err(|error| SecretsError::Unavailable(reason(&error)))?;
                Arc::clone(self.store.insert(opened))
            }
        };
        question(&*store).map_err(|error| {
            if matches!(error, Error::PlatformFailure(_)) {
                // The service may have been started anew; the next question knocks again.
                self.store = None;
            }
            platform::meaning(&error)
        })
    }
}

impl std::fmt::Debug for Keyring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keyring").finish_non_exhaustive()
    }
}

impl Secrets for Keyring {
    fn get(&self, name: &str) -> BoxFuture<'static, Result<Option<String>, SecretsError>> {
        let (keyring, name) = (self.clone(), name.to_owned());
        async move {
            if let Some(value) =
                keyring.overriding(&name).or_else(|| keyring.memory(|kept| kept.get(&name).cloned()))
            {
                return Ok(Some(value));
            }
            keyring.ask(move |store| parts::get(store, SERVICE, &name)).await
        }
        .boxed()
    }

    fn set(&self, name: &str, value: &str) -> BoxFuture<'static, Result<(), SecretsError>> {
        let (keyring, name, value) = (self.clone(), name.to_owned(), value.to_owned());
        async move { keyring.keep(&name, &value).await.map(|_| ()) }.boxed()
    }

    fn delete(&self, name: &str) -> BoxFuture<'static, Result<(), SecretsError>> {
        let (keyring, name) = (self.clone(), name.to_owned());
        async move {
            keyring.memory(|kept| kept.remove(&name));
            match keyring.ask(move |store| parts::delete(store, SERVICE, &name)).await {
                // Where nothing is kept there is nothing to forget.
                Ok(()) | Err(SecretsError::Unavailable(_)) => Ok(()),
                Err(error @ (SecretsError::Locked | SecretsError::Refused(_))) => Err(error),
            }
        }
        .boxed()
    }
}

/// The variable that stands for a secret: `LECTERN_SECRET_GITHUB_TOKEN` for `secret:github/token`,
/// `LECTERN_PROVIDER_WORK` for `provider-work`.
pub fn variable_of(key: &str) -> Option<String> {
    let (kind, name) = match key.split_once(':') {
        Some(("secret", name)) => ("SECRET", name),
        Some(("input", name)) => ("INPUT", name),
        Some(_) => return None,
        None => ("PROVIDER", key.strip_prefix("provider-")?),
    };
    let name: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect();
    Some(format!("LECTERN_{kind}_{name}"))
}

/// What went wrong, without the value.
fn reason(error: &Error) -> String {
    match error {
        Error::PlatformFailure(cause) | Error::NoStorageAccess(cause) => cause.to_string(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests;
