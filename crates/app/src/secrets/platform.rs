//! The keyring of each system, and what its errors mean.

use std::sync::Arc;

use keyring_core::{CredentialStore, Error};
use lectern_mcp::SecretsError;

use super::reason;

/// Opens the Secret Service (GNOME Keyring, KWallet, KeePassXC).
#[cfg(all(unix, not(target_os = "macos")))]
pub(super) fn open() -> Result<Arc<CredentialStore>, Error> {
    let store = zbus_secret_service_keyring_store::Store::new()?;
    Ok(store)
}

/// Opens the login keychain.
#[cfg(target_os = "macos")]
pub(super) fn open() -> Result<Arc<CredentialStore>, Error> {
    let store = apple_native_keyring_store::keychain::Store::new()?;
    Ok(store)
}

/// Opens the Credential Manager.
#[cfg(windows)]
pub(super) fn open() -> Result<Arc<CredentialStore>, Error> {
    let store = windows_native_keyring_store::Store::new()?;
    Ok(store)
}

/// What an error means for the user.
pub(super) fn meaning(error: &Error) -> SecretsError {
    match error {
        // A Secret Service that was never set up has no collection to write to, and nothing that could be unlocked.
        Error::NoStorageAccess(_) if reason(error).contains("result not returned") => {
            SecretsError::Unavailable("it was never set up".into())
        }
        // The Secret Service says so of a locked keyring, and of a user who did not unlock it.
        Error::NoStorageAccess(_) => SecretsError::Locked,
        Error::NoDefaultStore | Error::NotSupportedByStore(_) => SecretsError::Unavailable(reason(error)),
        other => SecretsError::Refused(reason(other)),
    }
}
