//! What the host needs of a keyring.
//!
//! Invariant: only a trait. Where secrets are kept is the app's business; a value that was read here goes to the server
//! that needs it and into that server's mask, and nowhere else.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures::future::{BoxFuture, FutureExt, ready};

/// Why a secret can't be read or kept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SecretsError {
    /// There is a keyring, and it is locked.
    #[error("the keyring is locked")]
    Locked,
    /// There is no keyring on this system, or none that answers. Holds the reason.
    #[error("no keyring: {0}")]
    Unavailable(String),
    /// The keyring refused. Holds the reason, never the value.
    #[error("the keyring refused: {0}")]
    Refused(String),
}

/// A place for secrets, by name. Nothing here blocks the caller's thread.
pub trait Secrets: std::fmt::Debug + Send + Sync {
    /// The secret of this name, if there is one.
    fn get(&self, name: &str) -> BoxFuture<'static, Result<Option<String>, SecretsError>>;

    /// Keeps a secret, over an older one of this name.
    fn set(&self, name: &str, value: &str) -> BoxFuture<'static, Result<(), SecretsError>>;

    /// Forgets a secret; fine when there is none.
    fn delete(&self, name: &str) -> BoxFuture<'static, Result<(), SecretsError>>;
}

/// Secrets that last as long as the process.
#[derive(Default)]
pub struct MemorySecrets(Mutex<BTreeMap<String, String>>);

impl MemorySecrets {
    // A std mutex: nothing awaits while it is held.
    fn kept(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for MemorySecrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("MemorySecrets").field(&self.kept().keys().collect::<Vec<_>>()).finish()
    }
}

impl Secrets for MemorySecrets {
    fn get(&self, name: &str) -> BoxFuture<'static, Result<Option<String>, SecretsError>> {
        ready(Ok(self.kept().get(name).cloned())).boxed()
    }

    fn set(&self, name: &str, value: &str) -> BoxFuture<'static, Result<(), SecretsError>> {
        self.kept().insert(name.to_owned(), value.to_owned());
        ready(Ok(())).boxed()
    }

    fn delete(&self, name: &str) -> BoxFuture<'static, Result<(), SecretsError>> {
        self.kept().remove(name);
        ready(Ok(())).boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn memory_keeps_replaces_and_forgets_and_shows_no_values() {
        let secrets = MemorySecrets::default();
        assert_eq!(secrets.get("a").await, Ok(None));
        secrets.set("a", "first").await.unwrap();
        secrets.set("a", "second").await.unwrap();
        assert_eq!(secrets.get("a").await, Ok(Some("second".into())));
        assert_eq!(format!("{secrets:?}"), r#"MemorySecrets(["a"])"#);
        secrets.delete("a").await.unwrap();
        secrets.delete("a").await.unwrap();
        assert_eq!(secrets.get("a").await, Ok(None));
    }
}
