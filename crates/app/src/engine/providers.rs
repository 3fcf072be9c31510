//! Where remote models are asked: the list of providers, and their models on the list of models.
//!
//! Invariant: what changes is in the settings before anyone is told; a removed provider's secret is deleted when it can't
//! come back any more.

mod ask;
mod sign;

use lectern_core::ModelId;
use lectern_mcp::Secrets;

use super::Engine;
use crate::providers::{self, RemovedEntry};
use crate::settings::{ProviderEntry, Settings};
use crate::view::{
    AppNews, ModelView, Problem, ProviderDraft, ProviderId, ProviderView, RemoteDraft, RemovedProvider,
};

/// A provider that was removed and can come back.
pub(super) struct Removed {
    token: String,
    entry: RemovedEntry,
}

impl Engine {
    /// All providers, in the order of the settings. The keyring is not asked.
    pub fn providers(&self) -> Vec<ProviderView> {
        let settings = self.state().settings.clone();
        let view = |entry| {
            let entry = self.0.providers.of_run(entry);
            providers::provider_view(&entry, &settings, self.0.providers.seen(&entry))
        };
        settings.providers.iter().map(view).collect()
    }

    /// One provider.
    pub fn provider(&self, id: &ProviderId) -> Result<ProviderView, Problem> {
        self.providers().into_iter().find(|view| view.id == *id).ok_or_else(|| providers::unknown(id))
    }

    /// Adds a provider. Nothing is asked of it.
    pub fn add_provider(&self, draft: ProviderDraft) -> Result<ProviderView, Problem> {
        let entry = self.change_settings(|settings| providers::add(settings, draft))??;
        self.tell_providers();
        self.provider(&entry.id)
    }

    /// Changes a provider. When it is asked at another address from now on, or in another way, it has to be signed in to
    /// again.
    pub fn change_provider(&self, id: &ProviderId, draft: ProviderDraft) -> Result<ProviderView, Problem> {
        self.change_settings(|settings| providers::change(settings, id, draft))??;
        self.0.providers.forget(id);
        self.providers_changed();
        self.provider(id)
    }

    /// Takes a provider off the list, and its models. It can come back until Lectern ends; then its secret is deleted.
    pub async fn remove_provider(&self, id: &ProviderId) -> Result<RemovedProvider, Problem> {
        let provider = self.provider(id)?;
        let models = self.models().into_iter().filter(|model| provider.models.contains(&model.id)).collect();
        let entry = self.change_settings(|settings| providers::remove(settings, id))??;
        let token = format!("{id}-{}", lectern_core::clock::now().as_millisecond());
        self.state().removed_providers.push(Removed { token: token.clone(), entry });
        self.0.providers.forget(id);
        self.providers_changed();
        Ok(RemovedProvider { token, provider, models })
    }

    /// Brings a removed provider back, and its models.
    pub fn restore_provider(&self, token: &str) -> Result<ProviderView, Problem> {
        let removed = {
            let mut state = self.state();
            let place = state.removed_providers.iter().position(|removed| removed.token == token);
            place.map(|place| state.removed_providers.remove(place))
        };
        let gone = || Problem::new("unknown_removal", "what was removed can't come back any more");
        let entry = removed.ok_or_else(gone)?.entry;
        let entry = self.change_settings(|settings| providers::put_back(settings, entry))?;
        self.providers_changed();
        self.provider(&entry.id)
    }

    /// Deletes the secrets of providers that can't come back any more.
    pub(super) async fn forget_removed_providers(&self) {
        let removed = std::mem::take(&mut self.state().removed_providers);
        let there = self.state().settings.providers.clone();
        for Removed { entry, .. } in removed {
            if !there.iter().any(|known| known.id == entry.provider.id)
                && let Err(error) = self.0.secrets.delete(&entry.provider.secret_name()).await
            {
                tracing::warn!(%error, provider = %entry.provider.id, "a secret was not deleted");
            }
        }
    }

    /// Adds a model of a provider to the list, or finds it there. The provider is not asked whether there is such a
    /// model; a test is.
    pub fn add_remote_model(&self, draft: RemoteDraft) -> Result<ModelView, Problem> {
        let entry = self.change_settings(|settings| providers::add_model(settings, draft))??;
        self.providers_changed();
        Ok(self.model_view(&self.listed(&entry.id)?))
    }

    /// Changes what the user says of a remote model: its name, its price, what it can.
    pub fn change_remote_model(&self, id: &ModelId, draft: RemoteDraft) -> Result<ModelView, Problem> {
        self.change_settings(|settings| providers::change_model(settings, id, draft))??;
        self.providers_changed();
        Ok(self.model_view(&self.listed(id)?))
    }

    /// What somebody else wrote into the settings of providers, e.g. the command line beside a window.
    pub(super) fn take_providers(&self, settings: &Settings) {
        let before = {
            let mut state = self.state();
            std::mem::replace(&mut state.settings.providers, settings.providers.clone())
        };
        let changed = changed(&before, &settings.providers);
        if changed.is_empty() {
            return;
        }
        changed.into_iter().for_each(|id| self.0.providers.forget(id));
        self.providers_changed();
    }

    fn provider_entry(&self, id: &ProviderId) -> Result<ProviderEntry, Problem> {
        let state = self.state();
        let entry = state.settings.providers.iter().find(|entry| entry.id == *id);
        entry.cloned().ok_or_else(|| providers::unknown(id))
    }

    /// The model that answers may be one of a provider that changed.
    fn providers_changed(&self) {
        self.choose_one_that_is_there();
        self.tell_providers();
        self.tell_models();
    }

    pub(super) fn tell_providers(&self) {
        self.tell(AppNews::ProvidersChanged { providers: self.providers() });
    }
}

/// The providers that came, went, or are not what they were.
fn changed<'a>(before: &'a [ProviderEntry], after: &'a [ProviderEntry]) -> Vec<&'a ProviderId> {
    let differs = |entry: &&ProviderEntry, others: &[ProviderEntry]| !others.contains(entry);
    let gone = before.iter().filter(|entry| differs(entry, after));
    let new = after.iter().filter(|entry| differs(entry, before));
    gone.chain(new).map(|entry| &entry.id).collect()
}
