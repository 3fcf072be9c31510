//! Who we are to an authorization server: known before, by a document, or registered now (MCP 2025-11-25,
//! Authorization, Client Registration Approaches).
//!
//! Invariant: what one authorization server gave us is used with that one only.

use serde::{Deserialize, Serialize};
use serde_json::json;
use url::Url;

use super::discover::Found;
use crate::config::SignIn;
use crate::http::client::for_strangers_without_redirects;
use crate::http::events::{body, cause};
use crate::http::reach::Reach;

/// Bytes of an answer to a registration.
const LONGEST: usize = 64 << 10;

/// Why we are nobody there.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RegisterError {
    #[error("`{0}` registers no clients by itself: it needs a client id, which its operator gives out")]
    NeedsClientId(String),
    #[error(
        "the client id in the settings belongs to `{before}`; the server now sends to `{now}`, which does not get it"
    )]
    OtherIssuer { before: String, now: String },
    #[error(
        "the server wants to know who you are and does not say how; perhaps it wants an `Authorization` header"
    )]
    Silent,
    #[error("`{0}` did not register the client: {1}")]
    Refused(String, String),
}

/// A client, as an authorization server knows it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Client {
    pub(super) id: String,
    pub(super) secret: Option<String>,
    pub(super) proof: Proof,
}

// The secret stays out of logs.
impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("id", &self.id).field("proof", &self.proof).finish_non_exhaustive()
    }
}

/// How a client proves who it is at the token endpoint (RFC 6749, section 2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Proof {
    /// Not at all.
    None,
    /// With its secret in a header.
    Basic,
    /// With its secret in the body.
    Post,
}

impl Proof {
    fn read(name: &str) -> Option<Self> {
        match name {
            "none" => Some(Self::None),
            "client_secret_basic" => Some(Self::Basic),
            "client_secret_post" => Some(Self::Post),
            _ => None,
        }
    }

    /// What an authorization server wants of a client; the default is RFC 8414's.
    fn chosen(found: &Found, has_secret: bool) -> Self {
        if !has_secret {
            return Self::None;
        }
        match &found.metadata.token_endpoint_auth_methods_supported {
            Some(offered) if !offered.is_empty() => {
                let offers = |name: &str| offered.iter().any(|method| method == name);
                if offers("client_secret_basic") {
                    Self::Basic
                } else if offers("client_secret_post") {
                    Self::Post
                } else {
                    Self::None
                }
            }
            Some(_) | None => Self::Basic,
        }
    }
}

/// The client of the settings.
pub(super) fn configured(settings: &SignIn, found: &Found) -> Result<Client, RegisterError> {
    let id = settings.client_id.clone();
    let id = id.ok_or_else(|| RegisterError::NeedsClientId(found.issuer.clone()))?;
    let secret = settings.client_secret.clone();
    let proof = Proof::chosen(found, secret.is_some());
    Ok(Client { id, secret, proof })
}

/// The client for a visit of the user, who comes back to `back`.
pub(super) async fn choose(
    reach: &Reach,
    found: &Found,
    settings: &SignIn,
    back: &Url,
    scopes: &[String],
) -> Result<Client, super::AuthError> {
    if settings.client_id.is_some() {
        return Ok(configured(settings, found)?);
    }
    let document = settings.client_metadata_url.as_ref();
    if let Some(id) = document.filter(|_| found.metadata.client_id_metadata_document_supported) {
        return Ok(Client { id: id.clone(), secret: None, proof: Proof::None });
    }
    match &found.registration_endpoint {
        Some(endpoint) if found.guessed => {
            let registered = register(reach, endpoint, found, back, scopes).await;
            registered.map_err(|_| RegisterError::Silent.into())
        }
        Some(endpoint) => register(reach, endpoint, found, back, scopes).await,
        None => Err(RegisterError::NeedsClientId(found.issuer.clone()).into()),
    }
}

/// What an authorization server answers (RFC 7591, section 3.2.1).
#[derive(Deserialize)]
struct Registered {
    client_id: String,
    client_secret: Option<String>,
    token_endpoint_auth_method: Option<String>,
}

/// Registers now (RFC 7591). Anew for each visit, because the address to come back to is another one each time.
async fn register(
    reach: &Reach,
    endpoint: &Url,
    found: &Found,
    back: &Url,
    scopes: &[String],
) -> Result<Client, super::AuthError> {
    let refused = |why: String| RegisterError::Refused(found.issuer.clone(), why);
    let offered = found.metadata.token_endpoint_auth_methods_supported.as_deref().unwrap_or_default();
    let wanted = ["none", "client_secret_basic", "client_secret_post"];
    let method = wanted.into_iter().find(|method| offered.iter().any(|other| other == method));
    let mut asked = json!({
        "client_name": "Lectern",
        "application_type": "native",
        "redirect_uris": [back.as_str()],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": method.unwrap_or("none"),
    });
    if !scopes.is_empty() {
        asked["scope"] = json!(scopes.join(" "));
    }
    let client = for_strangers_without_redirects(reach.clone())?;
    let response = client.post(endpoint.clone()).json(&asked).send().await;
    let response = response.map_err(|error| refused(cause(&error)))?;
    let status = response.status();
    let whole = body(response, LONGEST).await.map_err(|error| refused(error.to_string()))?;
    if !status.is_success() {
        let text: String = String::from_utf8_lossy(&whole).chars().take(300).collect();
        return Err(refused(format!("HTTP {status}: {text}")).into());
    }
    let given: Registered = serde_json::from_slice(&whole).map_err(|error| refused(error.to_string()))?;
    let secret = given.client_secret.filter(|secret| !secret.is_empty());
    let agreed = given.token_endpoint_auth_method.as_deref().and_then(Proof::read);
    let proof = agreed.unwrap_or_else(|| Proof::chosen(found, secret.is_some()));
    Ok(Client { id: given.client_id, secret: secret.filter(|_| proof != Proof::None), proof })
}
