//! The address to which the browser brings the user back: this computer, a random port, for one visit.
//!
//! Invariant: only a request that names this very address as its host is listened to, and the first answer with the
//! right `state` ends it.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{CACHE_CONTROL, CONNECTION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use url::Url;

const PATH: &str = "/callback";
/// Connections at the same time; a browser needs one or two.
const MOST_CONNECTIONS: usize = 16;

/// What the authorization server says through the browser (RFC 6749, section 4.1.2; RFC 9207).
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct Visit {
    pub(super) code: Option<String>,
    pub(super) iss: Option<String>,
    pub(super) error: Option<String>,
    pub(super) description: Option<String>,
}

/// Waits for the browser.
pub(super) struct Loopback {
    listener: TcpListener,
    address: SocketAddr,
}

impl Loopback {
    pub(super) async fn open() -> std::io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address })
    }

    /// Where the browser shall go.
    pub(super) fn url(&self) -> String {
        format!("http://{}{PATH}", self.address)
    }

    /// Waits for a visit with this `state`. Dropping it closes the port.
    pub(super) async fn visit(self, state: &str) -> Visit {
        let (found, mut visits) = mpsc::channel(1);
        let expected = Arc::new(Expected { host: self.address.to_string(), state: state.to_owned() });
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                Some(visit) = visits.recv() => {
                    // The browser shall still get its page.
                    let last = async { while connections.join_next().await.is_some() {} };
                    let _ = tokio::time::timeout(std::time::Duration::from_secs(2), last).await;
                    return visit;
                }
                Ok((stream, _)) = self.listener.accept() => {
                    while connections.try_join_next().is_some() {}
                    if connections.len() < MOST_CONNECTIONS {
                        connections.spawn(serve(stream, Arc::clone(&expected), found.clone()));
                    }
                }
            }
        }
    }
}

struct Expected {
    host: String,
    state: String,
}

async fn serve(stream: TcpStream, expected: Arc<Expected>, found: mpsc::Sender<Visit>) {
    let service = service_fn(move |request: Request<Incoming>| {
        let answer = answer(&request, &expected, &found);
        std::future::ready(Ok::<_, Infallible>(answer))
    });
    // A browser that breaks off has had its chance.
    let _ = hyper::server::conn::http1::Builder::new()
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

fn answer(
    request: &Request<Incoming>,
    expected: &Expected,
    found: &mpsc::Sender<Visit>,
) -> Response<Full<Bytes>> {
    let host = request.headers().get(HOST).and_then(|host| host.to_str().ok());
    if host != Some(expected.host.as_str()) {
        return page(StatusCode::FORBIDDEN, "This address is for signing in only.");
    }
    if request.method() != Method::GET || request.uri().path() != PATH {
        return page(StatusCode::NOT_FOUND, "There is nothing here.");
    }
    let Some(visit) = read(request.uri().query().unwrap_or_default(), &expected.state) else {
        return page(StatusCode::BAD_REQUEST, "This is not the answer that Lectern waits for.");
    };
    let failed = visit.code.is_none();
    if found.try_send(visit).is_err() {
        return page(StatusCode::GONE, "This address has been used.");
    }
    if failed {
        page(StatusCode::OK, "Signing in did not work. Lectern says why; you can close this page.")
    } else {
        page(StatusCode::OK, "You can close this page and go back to Lectern.")
    }
}

/// What stands in the address; none when it is not the answer to our question.
fn read(query: &str, state: &str) -> Option<Visit> {
    let mut visit = Visit::default();
    let mut known = false;
    for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
        let value = value.into_owned();
        match name.as_ref() {
            "state" => known = value == state,
            "code" => visit.code = Some(value),
            "iss" => visit.iss = Some(value),
            "error" => visit.error = Some(value),
            "error_description" => visit.description = Some(value),
            _ => {}
        }
    }
    (known && (visit.code.is_some() || visit.error.is_some())).then_some(visit)
}

/// A page of our own words only: nothing of the address comes back.
fn page(status: StatusCode, words: &str) -> Response<Full<Bytes>> {
    let html = format!("<!doctype html><meta charset=utf-8><title>Lectern</title><p>{words}</p>");
    let mut response = Response::new(Full::new(Bytes::from(html)));
    *response.status_mut() = status;
    for (name, value) in [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CACHE_CONTROL, "no-store"),
        (CONTENT_SECURITY_POLICY, "default-src 'none'"),
        (CONNECTION, "close"),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// The address to come back to, parsed.
pub(super) fn parsed(url: &str) -> Option<Url> {
    Url::parse(url).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn get(url: &str, host: Option<&str>) -> u16 {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let request = client.get(url);
        let request = match host {
            Some(host) => request.header("host", host),
            None => request,
        };
        request.send().await.unwrap().status().as_u16()
    }

    #[tokio::test]
    async fn only_the_right_visit_ends_it_and_only_once() {
        let loopback = Loopback::open().await.unwrap();
        let url = loopback.url();
        assert!(url.starts_with("http://127.0.0.1:"), "{url}");
        let waiting = tokio::spawn(async move { loopback.visit("right").await });
        assert_eq!(get(&format!("{url}?code=x&state=wrong"), None).await, 400);
        assert_eq!(get(&format!("{url}?state=right"), None).await, 400);
        assert_eq!(get(&format!("{url}?code=x&state=right"), Some("evil.example")).await, 403);
        assert_eq!(get(&url.replace("/callback", "/"), None).await, 404);
        assert_eq!(get(&format!("{url}?code=a%20b&state=right&iss=https%3A%2F%2Fas"), None).await, 200);
        let visit = waiting.await.unwrap();
        assert_eq!((visit.code.as_deref(), visit.iss.as_deref()), (Some("a b"), Some("https://as")));
        assert!(reqwest::Client::builder().no_proxy().build().unwrap().get(&url).send().await.is_err());
    }
}
