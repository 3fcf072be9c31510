//! The HTTP client of remote models, and its limits.
//!
//! Invariant: a key goes to the provider's own origin only. A redirect is followed there when it keeps the request as it
//! is (307, 308); any other answer of that kind is told, not followed.

use std::time::Duration;

use hyper_util::client::proxy::matcher::Matcher;
use lectern_core::nearness::Nearness;
use reqwest::redirect::{Action, Attempt, Policy};
use url::Url;

const MOST_REDIRECTS: usize = 5;
/// Between two requests of a conversation a person reads and writes.
const IDLE: Duration = Duration::from_secs(90);
const KEEPALIVE: Duration = Duration::from_secs(20);

/// How long things may take, and how often they are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Until a connection stands.
    pub connect: Duration,
    /// From the request to the first byte of the answer. A server may load a model in that time.
    pub first_byte: Duration,
    /// Between two pieces of an answer.
    pub read: Duration,
    /// A reply as a whole, with all its tries.
    pub total: Duration,
    /// How often a provider is asked at most, for one reply.
    pub attempts: u32,
    /// The first pause; the following ones double.
    pub pause: Duration,
    /// A longer pause is not waited for, also when the provider asks for it.
    pub longest_pause: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            first_byte: Duration::from_secs(300),
            read: Duration::from_secs(120),
            total: Duration::from_secs(3_600),
            attempts: 4,
            pause: Duration::from_secs(1),
            longest_pause: Duration::from_secs(120),
        }
    }
}

/// Why a model can't be set up.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The address can't be read.
    #[error("`{0}` is not an address")]
    NoAddress(String),
    /// Only HTTP is spoken.
    #[error("`{0}` does not begin with https:// or http://")]
    Scheme(String),
    /// A project, a location or a model has characters that no name of that kind has.
    #[error("`{value}` is no name of a {what}")]
    Name {
        /// What it should name.
        what: &'static str,
        /// What was given.
        value: String,
    },
    /// No client.
    #[error("the HTTP client could not be made")]
    Client(#[source] reqwest::Error),
}

/// Reads an address that the user gave. `localhost:11434` is meant as `http://localhost:11434`.
pub fn address(text: &str) -> Result<Url, ConfigError> {
    let text = text.trim().trim_end_matches('/');
    let full = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    let url = Url::parse(&full).map_err(|_| ConfigError::NoAddress(text.to_owned()))?;
    match url.scheme() {
        "http" | "https" if url.has_host() => Ok(url),
        _ => Err(ConfigError::Scheme(text.to_owned())),
    }
}

/// The client for one provider. It keeps connections, speaks HTTP/2 where the server does, takes compressed answers and
/// uses the proxy of the environment.
pub(crate) fn client(base: &Url, limits: &Limits) -> Result<reqwest::Client, ConfigError> {
    // A proxy can't reach this computer.
    if is_here(base) {
        return direct_client(base, limits);
    }
    builder(base, limits).build().map_err(ConfigError::Client)
}

/// The proxy on the way to an address, by its host and port and without its password; none when it is asked directly.
pub(crate) fn proxy_of(base: &Url) -> Option<String> {
    if is_here(base) {
        return None;
    }
    let asked = base.as_str().parse().ok()?;
    let proxy = Matcher::from_system().intercept(&asked)?;
    let uri = proxy.uri();
    let host = uri.host()?;
    Some(uri.port_u16().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")))
}

/// A host, with the proxy on the way to it.
pub(crate) fn way_to(host: &str, proxy: Option<&str>) -> String {
    proxy.map_or_else(|| host.to_owned(), |proxy| format!("{host} (through the proxy {proxy})"))
}

/// The same without a proxy.
pub(crate) fn direct_client(base: &Url, limits: &Limits) -> Result<reqwest::Client, ConfigError> {
    builder(base, limits).no_proxy().build().map_err(ConfigError::Client)
}

fn builder(base: &Url, limits: &Limits) -> reqwest::ClientBuilder {
    // Once for the process; a second time is refused, which is fine.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let origin = base.clone();
    reqwest::Client::builder()
        .user_agent(concat!("lectern/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(limits.connect)
        .pool_idle_timeout(IDLE)
        .tcp_keepalive(KEEPALIVE)
        .redirect(Policy::custom(move |attempt| same_origin(&origin, attempt)))
}

fn same_origin(origin: &Url, attempt: Attempt<'_>) -> Action {
    let keeps = matches!(attempt.status().as_u16(), 307 | 308);
    let same = attempt.url().origin() == origin.origin();
    if keeps && same && attempt.previous().len() <= MOST_REDIRECTS {
        attempt.follow()
    } else {
        attempt.stop()
    }
}

/// The host and, where it is not the usual one, the port.
pub fn host_of(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// Adds segments to the path of an address, escaped.
pub(crate) fn extend<'a>(url: &mut Url, segments: impl IntoIterator<Item = &'a str>) {
    // An address with a host always has a path.
    if let Ok(mut path) = url.path_segments_mut() {
        path.pop_if_empty().extend(segments);
    }
}

/// The same address with these segments after its path.
pub(crate) fn below<'a>(base: &Url, segments: impl IntoIterator<Item = &'a str>) -> Url {
    let mut url = base.clone();
    extend(&mut url, segments);
    url
}

/// Whether the address is this computer.
pub(crate) fn is_here(url: &Url) -> bool {
    match url.host_str().map(Nearness::of_host) {
        Some(Nearness::ThisComputer | Nearness::Unspecified) => true,
        Some(Nearness::Link | Nearness::Private | Nearness::Public) | None => false,
    }
}

/// The innermost cause of an error of the client, without the address, which may hold secrets.
pub(crate) fn cause(error: &reqwest::Error) -> String {
    let mut at: &dyn std::error::Error = error;
    while let Some(source) = at.source() {
        at = source;
    }
    at.to_string()
}
