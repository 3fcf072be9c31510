//! Signing in to a remote server, and out again, when the user wants it.
//!
//! Invariant: a browser opens during the start that the user asked for, and at no other time.

use std::sync::{Arc, PoisonError};

use super::Server;
use crate::auth::{Browser, Kept};
use crate::config::{HostOptions, Transport};
use crate::secrets::SecretsError;
use crate::status::ServerState;

/// Why somebody could not sign in or out.
#[derive(Debug, thiserror::Error)]
pub enum SignInError {
    /// There is no such server.
    #[error(transparent)]
    Unknown(#[from] crate::host::UnknownServer),
    /// It is a program on this computer.
    #[error("`{0}` is no remote server")]
    NotRemote(String),
    /// The start did not come through; holds why.
    #[error("{0}")]
    Failed(String),
    /// The keyring does not answer.
    #[error(transparent)]
    Keyring(#[from] SecretsError),
}

impl Server {
    /// Starts the server anew and lets the user sign in on the way, if it wants that. Returns when it is ready.
    pub(crate) async fn sign_in(&self, browser: Arc<dyn Browser>) -> Result<(), SignInError> {
        self.remote_url()?;
        let mut watch = self.status.subscribe();
        let before = watch.borrow_and_update().starts;
        *self.visit.lock().unwrap_or_else(PoisonError::into_inner) = Some(browser);
        self.restart();
        let over = |state: &ServerState| !matches!(state, ServerState::Starting(_));
        let settled = watch.wait_for(|status| status.starts > before && over(&status.state)).await;
        let state = settled.map(|status| status.state.clone());
        match state {
            Ok(ServerState::Ready | ServerState::Degraded(_)) => Ok(()),
            Ok(ServerState::Failed(failure) | ServerState::Restarting { failure, .. }) => {
                Err(SignInError::Failed(failure.message))
            }
            Ok(
                ServerState::Stopped
                | ServerState::Starting(_)
                | ServerState::NeedsApproval
                | ServerState::NeedsSignIn,
            )
            | Err(_) => Err(SignInError::Failed(format!("nobody signed in to `{}`", self.id()))),
        }
    }

    /// Forgets the tokens for this server and starts it anew without them.
    pub(crate) async fn sign_out(&self) -> Result<(), SignInError> {
        let url = self.remote_url()?;
        if let Ok(url) = crate::http::client::address(&url) {
            Kept::new(&url, self.options.secrets.clone()).forget().await?;
        }
        self.restart();
        Ok(())
    }

    fn remote_url(&self) -> Result<String, SignInError> {
        match &self.config.transport {
            Transport::Http(endpoint) => Ok(endpoint.url.clone()),
            Transport::Stdio(_) => Err(SignInError::NotRemote(self.id().to_string())),
        }
    }

    /// What holds for the next start: with a browser, and the time that a person needs, if the user asked for it.
    pub(super) fn options_for_start(&self) -> HostOptions {
        let mut options = (*self.options).clone();
        if let Some(browser) = self.visit.lock().unwrap_or_else(PoisonError::into_inner).take() {
            options.browser = Some(browser);
            options.start_timeout += crate::auth::PATIENCE;
        }
        options
    }
}
