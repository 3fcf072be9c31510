//! From a provider of the settings to a model that can be asked.
//!
//! Invariant: nothing is asked of a provider here; what is in the way becomes an error of the turn, so that the question
//! is kept.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lectern_core::ChatModel;
use url::Url;

use super::{Remote, Seen, address, view};
use crate::models::Model;
use crate::secrets::Keyring;
use crate::settings::ProviderEntry;
use crate::unusable::Unusable;
use crate::view::{ModelView, Problem, ProviderId, SignInKind};

/// What is known of providers beyond the settings: who is signed in, and what went wrong.
pub(crate) struct Providers {
    keyring: Keyring,
    /// Where one of them is asked in this run, in place of its own address.
    elsewhere: Option<(ProviderId, Url)>,
    // A std mutex: nothing awaits while it is held.
    problems: Mutex<HashMap<ProviderId, Problem>>,
}

impl Providers {
    /// Nothing is read yet.
    pub(crate) fn new(keyring: Keyring, elsewhere: Option<(ProviderId, Url)>) -> Self {
        Self { keyring, elsewhere, problems: Mutex::default() }
    }

    /// What is known of a provider's secret.
    pub(crate) fn seen(&self, entry: &ProviderEntry) -> Seen {
        let name = entry.secret_name();
        Seen {
            variable: self.keyring.variable_with(&name),
            for_this_session: self.keyring.is_for_this_session(&name),
            problem: self.problems().get(&entry.id).cloned(),
        }
    }

    /// What is known of a provider is forgotten: it changed, or somebody signed in or out.
    pub(crate) fn forget(&self, id: &ProviderId) {
        self.problems().remove(id);
    }

    /// The provider as it is asked in this run.
    pub(crate) fn of_run(&self, entry: &ProviderEntry) -> ProviderEntry {
        let elsewhere = self.elsewhere.as_ref().filter(|(id, _)| *id == entry.id);
        let base_url = elsewhere.map(|(_, url)| url.to_string()).or_else(|| entry.base_url.clone());
        ProviderEntry { base_url, ..entry.clone() }
    }

    /// A remote model as the shells show it.
    pub(crate) fn model_view(&self, model: &Model, remote: &Remote) -> ModelView {
        view::model_view(model, &self.remote_of_run(remote))
    }

    fn remote_of_run(&self, remote: &Remote) -> Remote {
        Remote { provider: remote.provider.as_ref().map(|entry| self.of_run(entry)), ..remote.clone() }
    }

    /// The model ready to be asked.
    pub(crate) async fn open(&self, model: &Model, remote: &Remote) -> Arc<dyn ChatModel> {
        match self.try_open(model, &self.remote_of_run(remote)).await {
            Ok(open) => open,
            Err(problem) => {
                if let Some(entry) = &remote.provider {
                    self.problems().insert(entry.id.clone(), problem.clone());
                }
                Arc::new(Unusable::new(model.id.clone(), problem))
            }
        }
    }

    async fn try_open(&self, _model: &Model, remote: &Remote) -> Result<Arc<dyn ChatModel>, Problem> {
        let entry = remote.provider.as_ref().ok_or_else(|| super::unknown(&remote.entry.provider))?;
        let url = super::address_of(entry)?;
        if entry.sign_in != SignInKind::None {
            address::fit_for_secrets(&url)?;
        }
        Err(Problem::new("not_ready", "remote models can't be asked yet"))
    }

    fn problems(&self) -> MutexGuard<'_, HashMap<ProviderId, Problem>> {
        self.problems.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
