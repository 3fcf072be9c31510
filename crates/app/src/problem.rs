//! How an error reaches a person: a code, a sentence, a way out.
//!
//! Invariant: only here do errors turn into `Problem`s, so that every shell says the same.

use lectern_core::{StartError, StoreError};
use lectern_mcp::SecretsError;

use crate::view::Problem;

impl Problem {
    /// A problem with its code and its sentence.
    pub fn new(code: &str, message: impl Into<String>) -> Self {
        Self { code: code.to_owned(), message: message.into(), hint: None, detail: None }
    }

    /// With a way out.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// With more for those who want to see it.
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// An error and its causes in one sentence: `write settings: permission denied`.
    pub fn from_error(code: &str, error: &dyn std::error::Error) -> Self {
        Self::new(code, chain(error))
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Problem {}

/// The messages of an error and its causes, outermost first.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut out = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let message = error.to_string();
        // Some errors repeat their cause in their own message.
        if !out.ends_with(&message) {
            out.push_str(": ");
            out.push_str(&message);
        }
        cause = error.source();
    }
    out
}

/// What went wrong with the conversations.
pub(crate) fn of_store(error: &StoreError) -> Problem {
    let code = match error {
        StoreError::UnknownConversation(_) => "unknown_conversation",
        StoreError::Busy(_) => "turn_running",
        StoreError::Open { .. } | StoreError::Damaged { .. } | StoreError::Newer { .. } => "bad_store",
        StoreError::Sql(_) | StoreError::Unreadable { .. } => "store_failed",
    };
    Problem { hint: error.hint().map(str::to_owned), ..Problem::from_error(code, error) }
}

/// Why a turn did not start.
pub(crate) fn of_start(error: &StartError) -> Problem {
    match error {
        StartError::Running { .. } => {
            Problem::from_error("turn_running", error).hint("Wait for the answer, or stop it.")
        }
        StartError::Store(cause) => of_store(cause),
    }
}

/// Why a secret was not kept.
pub(crate) fn of_secrets(error: &SecretsError) -> Problem {
    match error {
        SecretsError::Locked => Problem::from_error("keyring_locked", error)
            .hint("Unlock the keyring of your system and try again."),
        SecretsError::Unavailable(_) => Problem::from_error("no_keyring", error)
            .hint("Start a keyring (GNOME Keyring, KWallet, KeePassXC), then try again."),
        SecretsError::Refused(_) => Problem::from_error("keyring_refused", error),
    }
}
