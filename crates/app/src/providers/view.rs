//! Providers and their models as the shells show them.
//!
//! Invariant: made from the settings and what is known in memory; the keyring is not asked.

use lectern_cloud::transport::host_of;
use lectern_core::ToolMode;

use super::{Remote, address, address_of, name_of, sign_ins};
use crate::models::Model;
use crate::settings::{Login, ProviderEntry, Settings};
use crate::view::{
    LoginView, ModelFacts, ModelOrigin, ModelView, Problem, ProviderKind, ProviderView, Reach, RemoteView,
    SecretPlace, SignInKind,
};

/// What is known of a provider's secret without asking the keyring.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    /// The variable that holds it.
    pub(crate) variable: Option<String>,
    /// Whether it is in memory until Lectern ends.
    pub(crate) for_this_session: bool,
    /// Who signed in until Lectern ends; the settings do not say it.
    pub(crate) session_login: Option<Login>,
    /// What went wrong the last time.
    pub(crate) problem: Option<Problem>,
}

/// A provider as the shells show it.
pub(crate) fn provider_view(entry: &ProviderEntry, settings: &Settings, seen: Seen) -> ProviderView {
    let address = address_of(entry);
    let of_it = settings
        .models
        .iter()
        .filter(|model| model.remote().is_some_and(|remote| remote.provider == entry.id));
    ProviderView {
        id: entry.id.clone(),
        name: name_of(entry),
        kind: entry.kind,
        project: entry.project.clone(),
        location: entry.location.clone(),
        base_url: entry.base_url.clone(),
        address: address.as_ref().map(ToString::to_string).unwrap_or_default(),
        reach: address.as_ref().map_or(Reach::Internet, address::reach),
        sign_in: entry.sign_in,
        sign_ins: sign_ins(entry.kind).to_vec(),
        login: login(entry, &seen),
        options: entry.options.clone(),
        models: of_it.map(|model| model.id.clone()).collect(),
        problem: address.err().or(seen.problem),
    }
}

fn login(entry: &ProviderEntry, seen: &Seen) -> LoginView {
    let session = seen.session_login.as_ref().filter(|_| seen.for_this_session);
    let known = session.or(entry.login.as_ref());
    let signed_in = |place, from: Option<String>| LoginView::SignedIn {
        account: known.and_then(|login| login.account.clone()),
        project: known.and_then(|login| login.project.clone()),
        place,
        from,
    };
    match entry.sign_in {
        SignInKind::None => LoginView::NotNeeded,
        SignInKind::ServiceAccount | SignInKind::Key => match &seen.variable {
            Some(name) => LoginView::SignedIn {
                account: None,
                project: None,
                place: SecretPlace::Environment,
                from: Some(name.clone()),
            },
            None if seen.for_this_session => signed_in(SecretPlace::Session, None),
            None if known.is_some() => signed_in(SecretPlace::Keyring, None),
            None => LoginView::SignedOut,
        },
        SignInKind::ApplicationDefault => match known.and_then(|login| login.agreed.as_ref()) {
            Some(agreed) => signed_in(SecretPlace::File, Some(agreed.path.display().to_string())),
            None => LoginView::SignedOut,
        },
        SignInKind::Metadata if known.is_some() => signed_in(SecretPlace::Machine, None),
        SignInKind::Metadata => LoginView::SignedOut,
    }
}

/// A remote model as the shells show it.
pub(crate) fn model_view(model: &Model, remote: &Remote) -> ModelView {
    let facts = facts_of(remote);
    let view = remote_view(remote, facts);
    let tool_mode = match facts.tools {
        Some(false) => ToolMode::Prompted,
        Some(true) | None => ToolMode::Native,
    };
    let gone = || super::unknown(&remote.entry.provider);
    ModelView {
        id: model.id.clone(),
        name: remote.entry.name.clone().unwrap_or_else(|| remote.entry.model.clone()),
        path: None,
        size: None,
        architecture: None,
        parameters: None,
        quantisation: None,
        context_length: model.options.context_length.or(facts.context_length),
        tool_mode: model.options.tool_mode.unwrap_or(tool_mode),
        vision: facts.vision.unwrap_or(false),
        starter: false,
        origin: ModelOrigin::Remote,
        remote: Some(view),
        missing: remote.provider.is_none(),
        advice: None,
        bench: None,
        problem: match &remote.provider {
            Some(entry) => address_of(entry).err(),
            None => Some(gone()),
        },
    }
}

/// What the user says of the model, else what its name says.
pub(crate) fn facts_of(remote: &Remote) -> ModelFacts {
    let of_kind = remote.provider.as_ref().map(|entry| usual_facts(entry.kind)).unwrap_or_default();
    remote.entry.facts.or(of_kind)
}

/// What holds for all models of a kind.
pub(crate) fn usual_facts(kind: ProviderKind) -> ModelFacts {
    match kind {
        ProviderKind::Vertex | ProviderKind::VertexExpress | ProviderKind::Gemini => {
            ModelFacts { tools: Some(true), vision: Some(true), thinking: Some(true), context_length: None }
        }
        ProviderKind::OpenaiCompatible => ModelFacts::default(),
    }
}

fn remote_view(remote: &Remote, facts: ModelFacts) -> RemoteView {
    let url = remote.provider.as_ref().and_then(|entry| address_of(entry).ok());
    let reach = url.as_ref().map_or(Reach::Internet, address::reach);
    RemoteView {
        provider: remote.entry.provider.clone(),
        provider_name: remote.provider.as_ref().map_or_else(|| remote.entry.provider.0.clone(), name_of),
        kind: remote.provider.as_ref().map(|entry| entry.kind),
        model: remote.entry.model.clone(),
        host: url.as_ref().map(host_of).unwrap_or_default(),
        reach,
        leaves_machine: reach != Reach::ThisComputer,
        facts,
        price: remote.entry.price.clone(),
    }
}
