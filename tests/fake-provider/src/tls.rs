//! The same servers behind TLS, and a proxy in front of them.
//!
//! Invariant: the certificate is made for this run, and trusted by whoever is told of its file alone.

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::ServerConfig;
use rustls::pki_types::PrivatePkcs8KeyDer;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

use crate::Server;

/// TLS in front of a [`Server`], which speaks HTTP/2 and HTTP/1.1.
pub struct Tls {
    port: u16,
    host: String,
    /// The certificate as PEM.
    pub certificate: String,
    /// What was agreed on with each client (ALPN).
    protocols: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl Tls {
    /// In front of this server, for this name.
    pub async fn before(server: &Server, host: &str) -> Self {
        let made = rcgen::generate_simple_self_signed(vec![host.to_owned()]).unwrap();
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key.into())
            .unwrap();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (acceptor, target) = (TlsAcceptor::from(Arc::new(config)), server.address);
        let protocols = Arc::<Mutex<Vec<String>>>::default();
        let told = Arc::clone(&protocols);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, told) = (acceptor.clone(), Arc::clone(&told));
                tokio::spawn(async move {
                    // A client that does not trust us goes away here.
                    let Ok(mut inside) = acceptor.accept(stream).await else { return };
                    let agreed = inside.get_ref().1.alpn_protocol().unwrap_or_default().to_vec();
                    told.lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .push(String::from_utf8_lossy(&agreed).into());
                    let mut behind = TcpStream::connect(target).await.unwrap();
                    let _ = copy_bidirectional(&mut inside, &mut behind).await;
                });
            }
        });
        Self { port, host: host.to_owned(), certificate: made.cert.pem(), protocols, task }
    }

    /// Its address.
    pub fn url(&self) -> String {
        format!("https://{}:{}", self.host, self.port)
    }

    /// What was agreed on with each client so far: `h2`, `http/1.1`.
    pub fn protocols(&self) -> Vec<String> {
        self.protocols.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The certificate in a file.
    pub fn write_certificate(&self, folder: &std::path::Path) -> PathBuf {
        let path = folder.join("certificate.pem");
        std::fs::write(&path, &self.certificate).unwrap();
        path
    }
}

impl Drop for Tls {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// An HTTP proxy: opens tunnels (`CONNECT`, RFC 9110, 9.3.6) and passes plain requests on. Whatever host is asked for,
/// it goes to this computer, so that a test can name hosts that are nowhere.
pub struct Proxy {
    port: u16,
    asked: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl Proxy {
    /// Listens on this computer.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::<Mutex<Vec<String>>>::default();
        let told = Arc::clone(&asked);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&told)));
            }
        });
        Self { port, asked, task }
    }

    /// Its address.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// What it was asked for: the method, and the host with its port.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(stream: TcpStream, asked: Arc<Mutex<Vec<String>>>) {
    let service = service_fn(move |request: Request<Incoming>| {
        let (authority, method) = (request.uri().authority().cloned(), request.method().clone());
        let line = format!("{method} {}", authority.as_ref().map_or("", |authority| authority.as_str()));
        asked.lock().unwrap_or_else(PoisonError::into_inner).push(line);
        let port = authority.and_then(|authority| authority.port_u16()).unwrap_or(80);
        async move {
            let target = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
            Ok::<_, Infallible>(match method {
                Method::CONNECT => tunnel(request, target),
                _ => pass_on(request, target).await,
            })
        }
    });
    let server = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
    let _ = server.serve_connection_with_upgrades(TokioIo::new(stream), service).await;
}

type Body = http_body_util::combinators::UnsyncBoxBody<Bytes, hyper::Error>;

fn tunnel(request: Request<Incoming>, mut target: TcpStream) -> Response<Body> {
    tokio::spawn(async move {
        let upgraded = hyper::upgrade::on(request).await.unwrap();
        let _ = copy_bidirectional(&mut TokioIo::new(upgraded), &mut target).await;
    });
    Response::new(Empty::new().map_err(|never| match never {}).boxed_unsync())
}

/// In the form of an origin's server (RFC 9112, 3.2.1).
async fn pass_on(mut request: Request<Incoming>, target: TcpStream) -> Response<Body> {
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str()).to_owned();
    *request.uri_mut() = path.parse().unwrap();
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(target)).await.unwrap();
    tokio::spawn(connection);
    sender.send_request(request).await.unwrap().map(|body| body.boxed_unsync())
}
