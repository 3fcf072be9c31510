//! The user's visit to the browser: a page to sign in, and back with a code (OAuth 2.1, section 4.1).
//!
//! Invariant: PKCE with S256 and a fresh `state` each time; a code that comes from anybody but the issuer is thrown
//! away (RFC 9207).

use std::time::Duration;

use oauth2::basic::BasicClient;
use oauth2::{AuthUrl, ClientId, CsrfToken, PkceCodeChallenge, RedirectUrl, Scope};

use super::AuthError;
use super::browser::Browser;
use super::client;
use super::discover::{DiscoverError, Found};
use super::loopback::{Loopback, Visit, parsed};
use super::store::Tokens;
use super::token::Endpoint;
use crate::config::SignIn;
use crate::http::reach::Reach;

/// How long the user may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);

/// Why the visit came to nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FlowError {
    #[error("there is no port to come back to: {0}")]
    NoPort(std::io::Error),
    #[error("{0}")]
    NoBrowser(String),
    #[error("nobody signed in within {} minutes", PATIENCE.as_secs() / 60)]
    TooLate,
    #[error("`{issuer}` refused: {error}")]
    Refused { issuer: String, error: String },
    #[error("the answer came from `{found}`, not from `{expected}`")]
    OtherIssuer { expected: String, found: String },
    #[error("the answer does not say that it comes from `{0}`, which promised to say so")]
    NoIssuer(String),
}

/// Lets the user sign in, and gets a token for it.
pub(super) async fn by_user(
    reach: &Reach,
    found: &Found,
    settings: &SignIn,
    scopes: &[String],
    browser: &dyn Browser,
) -> Result<Tokens, AuthError> {
    let page = found.authorization_endpoint.clone();
    let page = page.ok_or_else(|| DiscoverError::NoEndpoint(found.issuer.clone(), "signing in"))?;
    let loopback = Loopback::open().await.map_err(FlowError::NoPort)?;
    let back =
        parsed(&loopback.url()).ok_or(FlowError::NoPort(std::io::ErrorKind::AddrNotAvailable.into()))?;
    let client = client::choose(reach, found, settings, &back, scopes).await?;
    let back = RedirectUrl::from_url(back);
    let (challenge, verifier) = PkceCodeChallenge::new_random_sha256();
    let set = BasicClient::new(ClientId::new(client.id.clone())).set_auth_uri(AuthUrl::from_url(page));
    let request = set
        .authorize_url(CsrfToken::new_random)
        .set_redirect_uri(std::borrow::Cow::Borrowed(&back))
        .set_pkce_challenge(challenge)
        .add_scopes(scopes.iter().cloned().map(Scope::new))
        .add_extra_param("resource", &found.resource);
    // OpenID Connect gives no refresh token unless the user is asked again.
    let offline = scopes.iter().any(|scope| scope == "offline_access");
    let request = if offline { request.add_extra_param("prompt", "consent") } else { request };
    let (url, state) = request.url();
    browser.open(url.as_str()).await.map_err(FlowError::NoBrowser)?;
    let visit = tokio::time::timeout(PATIENCE, loopback.visit(state.secret())).await;
    let code = checked(visit.map_err(|_| FlowError::TooLate)?, found)?;
    let endpoint = Endpoint::new(reach.clone(), found.token_endpoint.clone(), client)?;
    Ok(endpoint.for_code(found, code, verifier, &back, scopes).await?)
}

/// The code, if the answer is the issuer's: compared letter by letter (RFC 9207, section 2.4). Nothing else of a
/// stranger's answer is believed, not even its error.
fn checked(visit: Visit, found: &Found) -> Result<String, FlowError> {
    match &visit.iss {
        Some(iss) if *iss != found.issuer => {
            return Err(FlowError::OtherIssuer { expected: found.issuer.clone(), found: iss.clone() });
        }
        None if found.metadata.authorization_response_iss_parameter_supported => {
            return Err(FlowError::NoIssuer(found.issuer.clone()));
        }
        Some(_) | None => {}
    }
    visit.code.ok_or_else(|| FlowError::Refused {
        issuer: found.issuer.clone(),
        error: visit.description.or(visit.error).unwrap_or_else(|| "no reason given".into()),
    })
}
