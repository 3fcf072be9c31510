//! The HTTP client of one remote server.
//!
//! Invariant: what is secret goes to the server's own origin only. A redirect is followed within that origin (or from
//! `http` to `https` on the same host), and refused elsewhere with the address to use instead.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::redirect::{Action, Attempt, Policy};
use url::Url;

use super::reach::{Reach, is_loopback};

/// How long a connection may take to be made.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// A connection is not used again after this time. Node and uvicorn close theirs after 5 s, and a request that meets the
/// end of its connection may not be sent twice.
const IDLE: Duration = Duration::from_secs(4);
/// A connection on which nothing comes is asked for a sign of life after this time.
const KEEPALIVE: Duration = Duration::from_secs(15);
/// A request to an address that a server named, as a whole.
const STRANGERS_LIMIT: Duration = Duration::from_secs(30);
const MOST_REDIRECTS: usize = 5;

/// Why there is no client for an address.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClientError {
    #[error("`{0}` is not an address: {1}")]
    NoAddress(String, url::ParseError),
    #[error("`{0}` does not begin with https:// or http://")]
    Scheme(String),
    #[error("the header `{0}` has a name or a value that HTTP does not allow")]
    Header(String),
    #[error("the HTTP client could not be made")]
    Build(#[source] reqwest::Error),
}

/// Reads the address that the user gave.
pub(crate) fn address(text: &str) -> Result<Url, ClientError> {
    let url = Url::parse(text.trim()).map_err(|error| ClientError::NoAddress(text.into(), error))?;
    match url.scheme() {
        "http" | "https" if url.has_host() => Ok(url),
        _ => Err(ClientError::Scheme(text.into())),
    }
}

/// Reads the headers that the user gave. Values are marked as secret, so that nothing prints them.
pub(crate) fn headers(given: &BTreeMap<String, String>) -> Result<HeaderMap, ClientError> {
    let mut headers = HeaderMap::new();
    for (name, value) in given {
        let bad = || ClientError::Header(name.clone());
        let parsed = HeaderName::try_from(name.trim()).map_err(|_| bad())?;
        let mut value = HeaderValue::try_from(value.trim()).map_err(|_| bad())?;
        value.set_sensitive(true);
        headers.insert(parsed, value);
    }
    Ok(headers)
}

/// A client for the server at this address.
pub(crate) fn for_server(url: &Url) -> Result<reqwest::Client, ClientError> {
    let origin = url.clone();
    let builder = base().redirect(Policy::custom(move |attempt| same_origin(&origin, attempt)));
    // A proxy can't reach this computer.
    let builder = if is_loopback(url) { builder.no_proxy() } else { builder };
    builder.build().map_err(ClientError::Build)
}

/// A client for addresses that a server named.
pub(crate) fn for_strangers(reach: Reach) -> Result<reqwest::Client, ClientError> {
    let checked = reach.clone();
    let policy = Policy::custom(move |attempt| {
        let refused = checked.check(attempt.url()).err();
        match refused {
            Some(refused) => attempt.error(refused),
            None if attempt.previous().len() > MOST_REDIRECTS => attempt.error("too many redirects"),
            None => attempt.follow(),
        }
    });
    strangers(reach, policy)
}

/// As [`for_strangers`], for what must arrive there and nowhere else.
pub(crate) fn for_strangers_without_redirects(reach: Reach) -> Result<reqwest::Client, ClientError> {
    strangers(reach, Policy::none())
}

fn strangers(reach: Reach, policy: Policy) -> Result<reqwest::Client, ClientError> {
    let builder = base().redirect(policy).timeout(STRANGERS_LIMIT).dns_resolver(Arc::new(reach));
    builder.build().map_err(ClientError::Build)
}

fn base() -> reqwest::ClientBuilder {
    // Once for the process; a second time is refused, which is fine.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
        .user_agent(concat!("lectern/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_LIMIT)
        .pool_idle_timeout(IDLE)
        .tcp_keepalive(KEEPALIVE)
        .tcp_keepalive_interval(KEEPALIVE)
        .tcp_keepalive_retries(2)
}

fn same_origin(origin: &Url, attempt: Attempt<'_>) -> Action {
    let to = attempt.url();
    let same = to.origin() == origin.origin();
    let upgraded = origin.scheme() == "http"
        && to.scheme() == "https"
        && to.host() == origin.host()
        && to.port().is_none()
        && origin.port().is_none();
    if (same || upgraded) && attempt.previous().len() <= MOST_REDIRECTS {
        attempt.follow()
    } else {
        // The answer itself is then shown, with the place that it names.
        attempt.stop()
    }
}
