//! The HTTP client of downloads.
//!
//! Invariant: the token goes to the hub's own origin and nowhere else, and only after the hub refused without it.
//! Redirects are followed here, one by one, so that each is a request with headers of its own.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use reqwest::header::{
    ACCEPT_ENCODING, AUTHORIZATION, CONTENT_ENCODING, ETAG, HeaderMap, HeaderValue, IF_RANGE, LAST_MODIFIED,
    LOCATION, RANGE, RETRY_AFTER,
};
use reqwest::{Client, Response, StatusCode};
use tokio::sync::OnceCell;
use url::Url;

use crate::fault::Fault;

/// Gives the hub's token, if there is one. Asked until there is one, and only when the hub wants it: a keyring
/// may ask its user.
pub type Token = Arc<dyn Fn() -> BoxFuture<'static, Option<String>> + Send + Sync>;

/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_secs(20);
const MOST_REDIRECTS: usize = 10;

/// How the web is reached.
#[derive(Clone)]
pub struct WebOptions {
    /// The hub, or its mirror.
    pub hub: Url,
    /// Where its token comes from.
    pub token: Option<Token>,
    /// How long nothing may come, in the middle of a file too.
    pub silence: Duration,
}

/// The way to the hub and to other servers. Clones are the same.
#[derive(Clone)]
pub(crate) struct Web {
    client: Client,
    options: WebOptions,
    token: Arc<OnceCell<String>>,
}

/// Which part of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rest {
    /// The first byte that is wanted.
    pub(crate) from: u64,
    /// What the file was known by when its beginning came.
    pub(crate) unless_changed: Option<String>,
}

/// An answer with the word of the hub about the file, if it came from there.
pub(crate) struct Reply {
    pub(crate) response: Response,
    /// The host that was asked first.
    pub(crate) host: String,
    /// SHA-256 of the file, from the hub (`X-Linked-Etag`).
    pub(crate) sha256: Option<String>,
    /// Its size, from the hub (`X-Linked-Size`).
    pub(crate) size: Option<u64>,
}

impl Web {
    /// Nothing is connected yet. Proxies are those of the system.
    pub(crate) fn new(options: WebOptions) -> Result<Self, Fault> {
        // Once for the process; a second time is refused, which is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder()
            .user_agent(concat!("lectern/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT.min(options.silence))
            .read_timeout(options.silence)
            .redirect(reqwest::redirect::Policy::none())
            // Another crate may want them; here the bytes are those of the file, and compressed ones are refused.
            .no_gzip()
            .no_brotli()
            .no_deflate()
            .no_zstd()
            // The token must not be seen by a library that logs.
            .referer(false)
            .build()
            .map_err(|error| Fault::Unreachable { host: "the network".into(), reason: plain(&error) })?;
        Ok(Self { client, options, token: Arc::default() })
    }

    pub(crate) fn hub(&self) -> &Url {
        &self.options.hub
    }

    pub(crate) fn silence(&self) -> Duration {
        self.options.silence
    }

    /// Asks for a file, or its rest. An answer is 200 or 206 or 416; everything else is a fault.
    pub(crate) async fn get(&self, url: &Url, rest: Option<&Rest>, what: &str) -> Result<Reply, Fault> {
        let reply = match self.follow(url, rest, false).await {
            Ok(reply) => reply,
            Err(fault) => return Err(fault),
        };
        let wants_token = matches!(
            reply.response.status(),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::NOT_FOUND
        );
        let asked_hub = url.origin() == self.options.hub.origin();
        if wants_token && asked_hub && self.token().await.is_some() {
            let reply = self.follow(url, rest, true).await?;
            return self.judged(reply, what, true);
        }
        self.judged(reply, what, false)
    }

    async fn follow(&self, first: &Url, rest: Option<&Rest>, with_token: bool) -> Result<Reply, Fault> {
        let host = host_of(first);
        let (mut url, mut sha256, mut size) = (first.clone(), None, None);
        for _ in 0..=MOST_REDIRECTS {
            let headers = self.headers(&url, rest, with_token).await;
            let response = self.client.get(url.clone()).headers(headers).send().await;
            let response = response.map_err(|error| self.unreachable(&url, &error))?;
            if url.origin() == self.options.hub.origin() {
                sha256 = sha256.or_else(|| linked_sha256(response.headers()));
                size = size.or_else(|| number(response.headers(), "x-linked-size"));
            }
            if !is_redirect(response.status()) {
                return Ok(Reply { response, host, sha256, size });
            }
            let to = response.headers().get(LOCATION).and_then(|to| to.to_str().ok());
            let to = to.and_then(|to| url.join(to).ok()).filter(|to| matches!(to.scheme(), "http" | "https"));
            let to = to.ok_or_else(|| Fault::Senseless {
                host: host.clone(),
                what: "a redirect to nowhere".into(),
            })?;
            if url.scheme() == "https" && to.scheme() == "http" {
                return Err(Fault::Downgrade { host, to: host_of(&to) });
            }
            url = to;
        }
        Err(Fault::Redirects { host })
    }

    async fn headers(&self, url: &Url, rest: Option<&Rest>, with_token: bool) -> HeaderMap {
        let mut headers = HeaderMap::new();
        // Parts of a compressed file can't be put together, nor compared with the checksum of the file.
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        if let Some(rest) = rest {
            if let Ok(range) = HeaderValue::try_from(format!("bytes={}-", rest.from)) {
                headers.insert(RANGE, range);
            }
            if let Some(Ok(mark)) = rest.unless_changed.as_ref().map(HeaderValue::try_from) {
                headers.insert(IF_RANGE, mark);
            }
        }
        if with_token
            && url.origin() == self.options.hub.origin()
            && let Some(token) = self.token().await
            && let Ok(mut value) = HeaderValue::try_from(format!("Bearer {token}"))
        {
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        headers
    }

    async fn token(&self) -> Option<&str> {
        let token = self.options.token.as_ref()?;
        // That there is none is asked again: a person may keep one after the first refusal.
        let known = async || token().await.filter(|token| !token.is_empty()).ok_or(());
        self.token.get_or_try_init(known).await.ok().map(String::as_str)
    }

    fn judged(&self, reply: Reply, what: &str, with_token: bool) -> Result<Reply, Fault> {
        let (status, host) = (reply.response.status(), reply.host.clone());
        let wait = retry_after(reply.response.headers());
        let fault = match status.as_u16() {
            200 | 206 | 416 => {
                let coding =
                    reply.response.headers().get(CONTENT_ENCODING).map(|it| it.to_str().unwrap_or("?"));
                return match coding
                    .filter(|coding| !coding.is_empty() && !coding.eq_ignore_ascii_case("identity"))
                {
                    Some(coding) => {
                        Err(Fault::Compressed { host, coding: coding.chars().take(20).collect() })
                    }
                    None => Ok(reply),
                };
            }
            401 | 403 => Fault::Refused { page: self.page(what, &host), what: what.into(), host, with_token },
            404 | 410 => Fault::NotFound { host, what: what.into() },
            429 => Fault::TooMany { host, wait },
            status @ 500..600 => Fault::Server { host, status, wait },
            status => Fault::Senseless { host, what: format!("status {status}") },
        };
        Err(fault)
    }

    /// Where the licence of a repository can be accepted; `what` begins with its kind.
    fn page(&self, what: &str, host: &str) -> Option<String> {
        let repository = what.strip_prefix("repository ")?.split(':').next()?;
        let page =
            self.options.hub.join(&format!("{}/{repository}", self.options.hub.path().trim_end_matches('/')));
        page.ok().filter(|page| host_of(page) == host).map(Into::into)
    }

    /// Why nothing came back.
    pub(crate) fn unreachable(&self, url: &Url, error: &reqwest::Error) -> Fault {
        let host = host_of(url);
        if error.is_timeout() {
            return Fault::Silent { host, silence: self.options.silence };
        }
        Fault::Unreachable { host, reason: plain(error) }
    }
}

/// The host with its port, as people know it.
pub(crate) fn host_of(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// What a file can be known by later: a strong tag, else its date.
pub(crate) fn mark_of(headers: &HeaderMap) -> Option<String> {
    let text =
        |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok()).map(str::to_owned);
    // A weak tag may stay the same for other bytes (RFC 9110, section 13.1.5).
    text(ETAG)
        .filter(|tag| !tag.starts_with("W/"))
        .or_else(|| text(LAST_MODIFIED))
        .filter(|mark| mark.len() < 500)
}

fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

fn linked_sha256(headers: &HeaderMap) -> Option<String> {
    let tag = headers.get("x-linked-etag")?.to_str().ok()?;
    sha256(tag.trim_start_matches("W/").trim_matches('"'))
}

/// The text, if it is a SHA-256 in hexadecimal; in small letters.
pub(crate) fn sha256(text: &str) -> Option<String> {
    let text = text.strip_prefix("sha256:").unwrap_or(text);
    (text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())).then(|| text.to_ascii_lowercase())
}

fn number(headers: &HeaderMap, name: &str) -> Option<u64> {
    headers.get(name)?.to_str().ok()?.trim().parse().ok()
}

/// Seconds, or a date (RFC 9110, section 10.2.3).
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse::<u64>() {
        return Some(Duration::from_secs(seconds));
    }
    let at = jiff::fmt::rfc2822::parse(text).ok()?.timestamp();
    let seconds = at.as_second().saturating_sub(jiff::Timestamp::now().as_second());
    Some(Duration::from_secs(u64::try_from(seconds).unwrap_or(0)))
}

/// The innermost cause, which says the most, without the address (its query may be a secret).
pub(crate) fn plain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut innermost = error;
    while let Some(cause) = innermost.source() {
        innermost = cause;
    }
    let text = match innermost.downcast_ref::<reqwest::Error>() {
        Some(error) if error.is_builder() => "the client could not be made".to_owned(),
        Some(_) => "the request failed".to_owned(),
        None => innermost.to_string(),
    };
    text.chars().take(300).collect()
}
