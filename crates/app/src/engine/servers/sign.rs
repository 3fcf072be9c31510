//! Signing in to remote servers, and out.
//!
//! Invariant: a browser opens only because somebody asked for it here.

use std::sync::Arc;

use lectern_core::ServerId;
use lectern_mcp::{SignInError, SystemBrowser};

use crate::engine::{Engine, unknown_server};
use crate::view::Problem;

impl Engine {
    /// Opens the system's browser for the user to sign in to a remote server. Returns when the server is ready.
    pub async fn sign_in(&self, id: &ServerId) -> Result<(), Problem> {
        let signed_in = self.0.host.sign_in(id, Arc::new(SystemBrowser)).await;
        signed_in.map_err(|error| problem(id, error))
    }

    /// Forgets the tokens for a remote server.
    pub async fn sign_out(&self, id: &ServerId) -> Result<(), Problem> {
        self.0.host.sign_out(id).await.map_err(|error| problem(id, error))
    }
}

fn problem(id: &ServerId, error: SignInError) -> Problem {
    match error {
        SignInError::Unknown(_) => unknown_server(id),
        SignInError::NotRemote(_) => Problem::new("not_remote", error.to_string()),
        SignInError::Failed(why) => {
            Problem::new("sign_in_failed", why).hint("Try again; the server's log says more.")
        }
        SignInError::Keyring(_) => Problem::new("no_keyring", error.to_string())
            .hint("Unlock the keyring of your system and try again."),
    }
}
