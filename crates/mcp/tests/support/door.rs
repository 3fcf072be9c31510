//! A remote server with its own authorization server, at one address, and what a test can turn on them.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use futures::future::{BoxFuture, FutureExt};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use lectern_mcp::Browser;
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// What is seen and what holds, for the test to read and change.
#[derive(Debug, Default)]
pub struct Behaviour {
    /// Tokens that the server takes now.
    pub valid: Vec<String>,
    /// How long a token says that it lasts, in seconds.
    pub lasts: u64,
    /// Whether a refresh token is taken.
    pub refuses_refresh: bool,
    /// Where the server says that its metadata is; its own place when none.
    pub metadata_at: Option<String>,
    /// Only calls need a token.
    pub greets_everybody: bool,
    /// The scope that a call needs.
    pub call_needs: Option<String>,
    /// The scopes of the last visit.
    granted: String,
    pub seen: Vec<Seen>,
    given: u32,
}

/// One request.
#[derive(Clone, Debug)]
pub struct Seen {
    pub path: String,
    pub authorization: Option<String>,
    pub fields: BTreeMap<String, String>,
}

/// The server. It lives as long as the test's runtime.
#[derive(Clone)]
pub struct Door {
    pub origin: String,
    state: Arc<Mutex<Behaviour>>,
}

impl Door {
    pub async fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let origin = format!("http://{}", listener.local_addr().expect("own address"));
        let state = Arc::new(Mutex::new(Behaviour { lasts: 3_600, ..Behaviour::default() }));
        let door = Self { origin, state };
        let serving = door.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let door = serving.clone();
                let service = service_fn(move |request| {
                    let door = door.clone();
                    async move { Ok::<_, Infallible>(door.answer(request).await) }
                });
                let connection = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service);
                tokio::spawn(connection);
            }
        });
        door
    }

    pub fn url(&self) -> String {
        format!("{}/mcp", self.origin)
    }

    pub fn state(&self) -> MutexGuard<'_, Behaviour> {
        self.state.lock().expect("no panic")
    }

    /// How often a path was asked for.
    pub fn count(&self, path: &str) -> usize {
        self.state().seen.iter().filter(|seen| seen.path == path).count()
    }

    /// The last request for a path.
    pub fn last(&self, path: &str) -> Seen {
        let state = self.state();
        let found = state.seen.iter().rev().find(|seen| seen.path == path).cloned();
        found.unwrap_or_else(|| panic!("nobody asked for {path}: {:#?}", state.seen))
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let path = request.uri().path().to_owned();
        let query = request.uri().query().unwrap_or_default().to_owned();
        let authorization = request.headers().get("authorization");
        let authorization = authorization.and_then(|value| value.to_str().ok()).map(str::to_owned);
        let body = request.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
        let form = if query.is_empty() { &body[..] } else { query.as_bytes() };
        let fields = url::form_urlencoded::parse(form).into_owned().collect::<BTreeMap<_, _>>();
        let seen = Seen { path: path.clone(), authorization: authorization.clone(), fields: fields.clone() };
        self.state().seen.push(seen);
        match path.as_str() {
            "/mcp" => self.mcp(authorization.as_deref(), &body),
            "/.well-known/oauth-protected-resource/mcp" => json_of(json!({
                "resource": self.url(), "authorization_servers": [self.origin], "scopes_supported": ["notes"],
            })),
            "/.well-known/oauth-authorization-server" => json_of(json!({
                "issuer": self.origin,
                "authorization_endpoint": format!("{}/authorize", self.origin),
                "token_endpoint": format!("{}/token", self.origin),
                "registration_endpoint": format!("{}/register", self.origin),
                "code_challenge_methods_supported": ["S256"],
                "token_endpoint_auth_methods_supported": ["none"],
                "authorization_response_iss_parameter_supported": true,
            })),
            "/register" => {
                json_of(json!({"client_id": "lectern-here", "token_endpoint_auth_method": "none"}))
            }
            "/authorize" => {
                self.state().granted = fields.get("scope").cloned().unwrap_or_default();
                let mut back = url::Url::parse(&fields["redirect_uri"]).expect("an address");
                let pairs = [("code", "the-code"), ("state", &fields["state"]), ("iss", &self.origin)];
                back.query_pairs_mut().extend_pairs(pairs);
                reply(StatusCode::FOUND, &[("location", back.as_str())], String::new())
            }
            "/token" => self.token(&fields),
            _ => reply(StatusCode::NOT_FOUND, &[], String::new()),
        }
    }

    fn token(&self, fields: &BTreeMap<String, String>) -> Response<Full<Bytes>> {
        let mut state = self.state();
        if fields["grant_type"] == "refresh_token" && state.refuses_refresh {
            let error = json!({"error": "invalid_grant"}).to_string();
            return reply(StatusCode::BAD_REQUEST, &[("content-type", "application/json")], error);
        }
        state.given += 1;
        let token = format!("access-{}", state.given);
        state.valid.push(token.clone());
        let refresh = format!("refresh-{}", state.given);
        json_of(
            json!({"access_token": token, "token_type": "Bearer", "refresh_token": refresh, "expires_in": state.lasts}),
        )
    }

    fn mcp(&self, authorization: Option<&str>, body: &[u8]) -> Response<Full<Bytes>> {
        let state = self.state();
        let message: Value = serde_json::from_slice(body).unwrap_or_default();
        let token = authorization.and_then(|value| value.strip_prefix("Bearer "));
        let open = state.greets_everybody && message["method"] != "tools/call";
        if !open && !token.is_some_and(|token| state.valid.iter().any(|valid| valid == token)) {
            let own = format!("{}/.well-known/oauth-protected-resource/mcp", self.origin);
            let at = state.metadata_at.as_ref().unwrap_or(&own);
            let wish = format!("Bearer scope=\"notes\", resource_metadata=\"{at}\"");
            return reply(StatusCode::UNAUTHORIZED, &[("www-authenticate", &wish)], String::new());
        }
        let lacks = |scope: &&String| !state.granted.split(' ').any(|granted| granted == scope.as_str());
        if let Some(scope) = state.call_needs.as_ref().filter(lacks)
            && message["method"] == "tools/call"
        {
            let wish = format!("Bearer error=\"insufficient_scope\", scope=\"{scope}\"");
            return reply(StatusCode::FORBIDDEN, &[("www-authenticate", &wish)], String::new());
        }
        let result = match message["method"].as_str() {
            Some("initialize") => json!({
                "protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                "serverInfo": {"name": "door", "version": "1"},
            }),
            Some("tools/list") => json!({"tools": [{"name": "knock", "inputSchema": {"type": "object"}}]}),
            Some("tools/call") => json!({"content": [{"type": "text", "text": "come in"}]}),
            Some("server/discover") => {
                let error = json!({"code": -32601, "message": "unknown"});
                return json_of(json!({"jsonrpc": "2.0", "id": message["id"], "error": error}));
            }
            _ => return reply(StatusCode::ACCEPTED, &[], String::new()),
        };
        json_of(json!({"jsonrpc": "2.0", "id": message["id"], "result": result}))
    }
}

fn json_of(value: Value) -> Response<Full<Bytes>> {
    reply(StatusCode::OK, &[("content-type", "application/json")], value.to_string())
}

fn reply(status: StatusCode, headers: &[(&'static str, &str)], body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    for (name, value) in headers {
        response.headers_mut().insert(*name, value.parse().expect("a header"));
    }
    response
}

/// A browser whose user says yes to everything.
#[derive(Debug)]
pub struct Yes;

impl Browser for Yes {
    fn open(&self, url: &str) -> BoxFuture<'static, Result<(), String>> {
        let url = url.to_owned();
        tokio::spawn(async move {
            let client = reqwest::Client::builder().no_proxy().build().expect("a client");
            let _ = client.get(url).send().await;
        });
        std::future::ready(Ok(())).boxed()
    }
}
