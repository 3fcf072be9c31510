//! Providers of models that run in a test.
//!
//! [`Server`] answers as it is told: in pieces, late, never, or not to the end. [`vertex::Vertex`] is a strict Vertex AI
//! on top of it.
//!
//! Invariant: nothing is known here of how Lectern asks; what a request must be is written down from the provider's side.
#![expect(clippy::unwrap_used, reason = "a test's own server: whatever goes wrong is to end the test")]

pub mod jwt;
pub mod real;
pub mod rules;
pub mod tls;
pub mod vertex;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, Stream};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// A request that came.
#[derive(Clone, Debug)]
pub struct Seen {
    /// `GET`, `POST`.
    pub method: String,
    /// Without the query.
    pub path: String,
    /// Without the question mark.
    pub query: String,
    /// Names in lower case.
    pub headers: BTreeMap<String, String>,
    /// As it came.
    pub raw: Vec<u8>,
}

impl Seen {
    /// The body as JSON; null when it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.raw).unwrap_or_default()
    }

    /// A header, or an empty text.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }
}

/// What is answered.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// More headers.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub pieces: Vec<Piece>,
}

/// A piece of a body.
#[derive(Clone, Debug)]
pub enum Piece {
    /// These bytes.
    Bytes(Vec<u8>),
    /// Nothing for a while.
    Pause(Duration),
    /// Nothing any more, and no end.
    Stall,
    /// The connection breaks.
    Cut,
}

impl Answer {
    /// JSON.
    pub fn json(status: u16, body: &Value) -> Self {
        Self::of(status, "application/json; charset=UTF-8", body.to_string())
    }

    /// A body of this type.
    pub fn of(status: u16, kind: &str, body: impl Into<Vec<u8>>) -> Self {
        Self {
            status,
            headers: vec![("content-type".to_owned(), kind.to_owned())],
            pieces: vec![Piece::Bytes(body.into())],
        }
    }

    /// A stream of events, one piece for each, with `\r\n` as Google writes it.
    pub fn events<'a>(events: impl IntoIterator<Item = &'a Value>) -> Self {
        let piece = |event: &Value| Piece::Bytes(format!("data: {event}\r\n\r\n").into_bytes());
        Self {
            status: 200,
            headers: vec![("content-type".to_owned(), "text/event-stream".to_owned())],
            pieces: events.into_iter().map(piece).collect(),
        }
    }

    /// With one more piece.
    #[must_use]
    pub fn then(mut self, piece: Piece) -> Self {
        self.pieces.push(piece);
        self
    }

    /// With one more header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }
}

/// Answers requests.
pub type Handler = Arc<dyn Fn(&Seen) -> Answer + Send + Sync>;

/// A server on this computer. It ends with this value.
pub struct Server {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    open: Arc<AtomicUsize>,
    connections: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

#[derive(Clone)]
struct Shared {
    handler: Handler,
    seen: Arc<Mutex<Vec<Seen>>>,
    open: Arc<AtomicUsize>,
}

impl Server {
    /// Answers with `handler`.
    pub async fn start(handler: Handler) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Shared { handler, seen: Arc::default(), open: Arc::default() };
        let (seen, open) = (Arc::clone(&shared.seen), Arc::clone(&shared.open));
        let connections = Arc::<AtomicUsize>::default();
        let count = Arc::clone(&connections);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::SeqCst);
                let shared = shared.clone();
                tokio::spawn(async move {
                    let service = service_fn(move |request| respond(request, shared.clone()));
                    let server = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
                    let _ = server.serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        Self { address, seen, open, connections, task }
    }

    /// Answers with these, one after the other; the last one again and again.
    pub async fn script(answers: Vec<Answer>) -> Self {
        let next = AtomicUsize::new(0);
        Self::start(Arc::new(move |_| {
            let at = next.fetch_add(1, Ordering::SeqCst).min(answers.len() - 1);
            answers[at].clone()
        }))
        .await
    }

    /// Its address.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The requests so far.
    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Connections so far.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// Answers that are being sent just now.
    pub fn open(&self) -> usize {
        self.open.load(Ordering::SeqCst)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

type Body = http_body_util::combinators::UnsyncBoxBody<Bytes, std::io::Error>;

async fn respond(request: Request<Incoming>, shared: Shared) -> Result<Response<Body>, Infallible> {
    let (head, body) = request.into_parts();
    let raw = body.collect().await.map(|body| body.to_bytes().to_vec()).unwrap_or_default();
    let headers = head
        .headers
        .iter()
        .map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into()));
    let seen = Seen {
        method: head.method.to_string(),
        path: head.uri.path().to_owned(),
        query: head.uri.query().unwrap_or_default().to_owned(),
        headers: headers.collect(),
        raw,
    };
    let answer = (shared.handler)(&seen);
    shared.seen.lock().unwrap_or_else(PoisonError::into_inner).push(seen);
    let mut response = Response::builder().status(answer.status);
    for (name, value) in &answer.headers {
        response = response.header(name, value);
    }
    let sending = Sending::new(shared.open);
    Ok(response.body(StreamBody::new(body_of(answer.pieces, sending)).boxed_unsync()).unwrap())
}

/// Counts an answer as open until its end, or until nobody reads it any more.
struct Sending(Arc<AtomicUsize>);

impl Sending {
    fn new(open: Arc<AtomicUsize>) -> Self {
        open.fetch_add(1, Ordering::SeqCst);
        Self(open)
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

fn body_of(
    pieces: Vec<Piece>,
    sending: Sending,
) -> impl Stream<Item = Result<Frame<Bytes>, std::io::Error>> + Send {
    stream::unfold((pieces.into_iter(), sending), |(mut pieces, sending)| async move {
        loop {
            match pieces.next()? {
                Piece::Bytes(bytes) => return Some((Ok(Frame::data(bytes.into())), (pieces, sending))),
                Piece::Pause(time) => tokio::time::sleep(time).await,
                Piece::Stall => std::future::pending().await,
                Piece::Cut => {
                    return Some((Err(std::io::ErrorKind::ConnectionReset.into()), (pieces, sending)));
                }
            }
        }
    })
}

/// Google's shape of an error.
pub fn google_error(code: u16, status: &str, message: &str) -> Answer {
    Answer::json(code, &json!({"error": {"code": code, "message": message, "status": status}}))
}
