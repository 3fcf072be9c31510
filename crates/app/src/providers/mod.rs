//! Where remote models are asked, and as whom.
//!
//! Invariant: secrets are read from the keyring or the environment when a model is opened, and go to the provider's own
//! client; settings, views and problems never hold one.

pub mod address;
pub(crate) mod found;
mod known;
mod list;
mod open;
pub(crate) mod secret;
mod view;
mod waits;

use lectern_cloud::Endpoint;
use lectern_cloud::transport::host_of;
use url::Url;

use crate::settings::{ProviderEntry, RemoteEntry};
use crate::view::{Problem, ProviderId, ProviderKind, SignInKind};

pub(crate) use known::{Providers, origin_of};
pub(crate) use list::{RemovedEntry, add, add_model, change, change_model, put_back, remove};
pub(crate) use open::of_model;
pub(crate) use view::{Seen, provider_view, usual_facts};
pub use waits::WAIT_SECONDS;

/// The location that is asked when none is said.
pub const USUAL_LOCATION: &str = "global";

/// A model of a provider, with the provider; none when it is gone from the settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Remote {
    /// The model.
    pub entry: RemoteEntry,
    /// The provider.
    pub provider: Option<ProviderEntry>,
}

/// An endpoint that is in no settings, for one run.
pub(crate) fn endpoint(base_url: &str) -> Result<ProviderEntry, Problem> {
    let url = address::read(base_url)?;
    Ok(ProviderEntry {
        id: "endpoint".into(),
        kind: ProviderKind::OpenaiCompatible,
        name: None,
        project: None,
        location: None,
        base_url: Some(url.to_string()),
        sign_in: SignInKind::None,
        login: None,
        options: crate::view::ProviderOptions::default(),
        other: serde_json::Map::new(),
    })
}

/// The ways to sign in that there are, the usual one first.
pub fn sign_ins(kind: ProviderKind) -> &'static [SignInKind] {
    match kind {
        ProviderKind::Vertex => {
            &[SignInKind::ServiceAccount, SignInKind::ApplicationDefault, SignInKind::Metadata]
        }
        ProviderKind::VertexExpress | ProviderKind::Gemini => &[SignInKind::Key],
        ProviderKind::OpenaiCompatible => &[SignInKind::Key, SignInKind::None],
    }
}

/// Where a provider is asked.
pub(crate) fn address_of(entry: &ProviderEntry) -> Result<Url, Problem> {
    let own = || match entry.kind {
        ProviderKind::Vertex => Some(vertex(entry, String::new()).origin()),
        ProviderKind::VertexExpress => Some(Endpoint::Express.origin()),
        ProviderKind::Gemini => Some(Endpoint::Developer.origin()),
        ProviderKind::OpenaiCompatible => None,
    };
    let text = entry.base_url.clone().or_else(own).ok_or_else(|| {
        Problem::new("bad_address", format!("the provider `{}` has no address", entry.id))
            .hint("Give it the address of the endpoint, e.g. http://localhost:11434/v1.")
    })?;
    address::read(&text)
}

/// Vertex AI where the settings want it.
fn vertex(entry: &ProviderEntry, project: String) -> Endpoint {
    let location = entry.location.clone().unwrap_or_else(|| USUAL_LOCATION.to_owned());
    Endpoint::Vertex { project, location }
}

/// What a kind is called.
pub(crate) fn kind_name(kind: ProviderKind) -> &'static str {
    match kind {
        ProviderKind::Vertex => "Vertex AI",
        ProviderKind::VertexExpress => "Vertex AI (express)",
        ProviderKind::Gemini => "Gemini API",
        ProviderKind::OpenaiCompatible => "OpenAI-compatible",
    }
}

/// A name for people.
pub(crate) fn name_of(entry: &ProviderEntry) -> String {
    let usual = || match entry.kind {
        ProviderKind::OpenaiCompatible => match address_of(entry) {
            Ok(url) => host_of(&url),
            Err(_) => entry.id.0.clone(),
        },
        kind @ (ProviderKind::Vertex | ProviderKind::VertexExpress | ProviderKind::Gemini) => {
            kind_name(kind).to_owned()
        }
    };
    entry.name.clone().unwrap_or_else(usual)
}

/// There is no such provider.
pub(crate) fn unknown(id: &ProviderId) -> Problem {
    Problem::new("unknown_provider", format!("there is no provider `{id}`"))
        .hint("`lectern models providers` shows them.")
}

#[cfg(test)]
mod tests;
