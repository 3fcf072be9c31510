//! Agrees with a server on a protocol era.
//!
//! Since 2026-07-28 there is no `initialize`; every request carries its context in `_meta`. A host asks with
//! `server/discover` and falls back to `initialize` on any answer that is not of that era, and on silence.
//!
//! Invariant: no particular error code is needed to recognise an old server, and only capabilities that the host has
//! are declared.

use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::config::HostOptions;
use crate::peer::{Peer, PeerError, Reports};
use crate::requests::capabilities;
use crate::status::Reported;

const MODERN: &str = "2026-07-28";
const NEWEST_WITH_INITIALIZE: &str = "2025-11-25";
const WITH_INITIALIZE: [&str; 5] =
    [NEWEST_WITH_INITIALIZE, "2025-06-18", "2025-03-26", "2024-11-05", "2024-10-07"];

/// Errors that only a server of the modern era gives.
const UNSUPPORTED_VERSION: i64 = -32022;
const MISSING_CAPABILITY: i64 = -32021;

/// How much servers shall log: what a user may want to know, nothing for their makers alone.
pub(crate) const LOG_LEVEL: &str = "info";

/// What was agreed on.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    /// The revision, e.g. `2025-11-25`.
    pub(crate) protocol: String,
    pub(crate) reported: Option<Reported>,
    pub(crate) instructions: Option<String>,
    capabilities: Value,
    /// What every request of the modern era carries; empty before.
    meta: Map<String, Value>,
}

impl Session {
    /// Parameters of a request, with the context that the era wants.
    pub(crate) fn params(&self, params: Value) -> Map<String, Value> {
        let Value::Object(mut params) = params else { return Map::new() };
        if !self.meta.is_empty() {
            params.insert("_meta".into(), Value::Object(self.meta.clone()));
        }
        params
    }

    /// Whether the server declared a capability, e.g. `/tools/listChanged`.
    pub(crate) fn can(&self, pointer: &str) -> bool {
        self.capabilities
            .pointer(pointer)
            .is_some_and(|value| *value != Value::Bool(false) && !value.is_null())
    }

    /// Whether it is of the era of 2026-07-28.
    pub(crate) fn is_modern(&self) -> bool {
        !self.meta.is_empty()
    }
}

/// How to begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opening {
    /// With `server/discover`.
    Probe,
    /// With `initialize` at once: the server is known to end itself when anything else comes first.
    Initialize,
}

/// Why there is no agreement.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HandshakeError {
    #[error("it ended when asked for its protocol")]
    LostInProbe,
    #[error("{0}")]
    Unreachable(String),
    #[error("sign in first: {0}")]
    SignIn(String),
    #[error("it could not be signed in to: {0}")]
    Unauthorized(String),
    #[error("it refused `{method}`: {source}")]
    Refused { method: &'static str, source: PeerError },
    #[error("it speaks {0} only, which Lectern does not know")]
    NoCommonVersion(String),
    #[error("it does not speak {0}, and nothing else was asked for")]
    NotModern(String),
    #[error("its answer to `{0}` makes no sense")]
    Senseless(&'static str),
}

/// Agrees on a protocol. Has no limit of its own except for the silence after the probe, which may last for `patience`
/// before `initialize` is sent as well.
pub(crate) async fn negotiate(
    peer: &Peer,
    options: &HostOptions,
    opening: Opening,
    patience: Duration,
) -> Result<Session, HandshakeError> {
    let opening = match options.protocol.as_deref() {
        Some(version) if version < MODERN => Opening::Initialize,
        Some(_) | None => opening,
    };
    match opening {
        Opening::Initialize => initialize(peer, options).await,
        Opening::Probe => probe(peer, options, patience).await,
    }
}

async fn probe(peer: &Peer, options: &HostOptions, patience: Duration) -> Result<Session, HandshakeError> {
    let params = Map::from_iter([("_meta".to_owned(), Value::Object(context(options)))]);
    let request = peer.request("server/discover", params, Reports::Unwanted).await;
    let mut request = request.map_err(|_| HandshakeError::LostInProbe)?;
    if let Ok(answer) = tokio::time::timeout(patience, request.result()).await {
        return after_probe(peer, options, answer).await;
    }
    // Silence: an old server that ignores what it does not know, or one that is slow to start. Both get their chance.
    let old = initialize(peer, options);
    tokio::pin!(old);
    let refused = tokio::select! {
        biased;
        answer = request.result() => return match answer {
            Ok(found) if speaks_modern(&found) => Ok(modern(&found, options)),
            Err(error) if is_final(&error) => Err(given_up("server/discover", error)),
            Ok(_) | Err(_) => old.await,
        },
        session = &mut old => match session {
            Ok(session) => return Ok(session),
            Err(refused) => refused,
        },
    };
    // It may be a slow server of the modern era, which knows no `initialize`.
    match request.result().await {
        Ok(found) if speaks_modern(&found) => Ok(modern(&found, options)),
        Ok(_) | Err(_) => Err(refused),
    }
}

/// Asks once more, in the revision that the server has just said it knows.
async fn probe_again(peer: &Peer, options: &HostOptions) -> Result<Session, HandshakeError> {
    const METHOD: &str = "server/discover";
    let params = Map::from_iter([("_meta".to_owned(), Value::Object(context(options)))]);
    let found = peer.ask(METHOD, params).await.map_err(|error| given_up(METHOD, error))?;
    if speaks_modern(&found) { Ok(modern(&found, options)) } else { Err(HandshakeError::Senseless(METHOD)) }
}

async fn after_probe(
    peer: &Peer,
    options: &HostOptions,
    answer: Result<Value, PeerError>,
) -> Result<Session, HandshakeError> {
    match answer {
        Ok(found) if speaks_modern(&found) => Ok(modern(&found, options)),
        Ok(_) => initialize(peer, options).await,
        Err(error) if is_final(&error) => Err(given_up("server/discover", error)),
        Err(PeerError::Rpc { code: UNSUPPORTED_VERSION, data, .. }) => {
            let supported = versions(data.as_ref().and_then(|data| data.get("supported")));
            if supported.iter().any(|version| version == MODERN) {
                probe_again(peer, options).await
            } else if supported.is_empty()
                || supported.iter().any(|version| WITH_INITIALIZE.contains(&version.as_str()))
            {
                initialize(peer, options).await
            } else {
                Err(HandshakeError::NoCommonVersion(supported.join(", ")))
            }
        }
        Err(source @ PeerError::Rpc { code: MISSING_CAPABILITY, .. }) => {
            Err(HandshakeError::Refused { method: "server/discover", source })
        }
        // A server that has no `server/discover` over HTTP may answer with a page, or with no JSON-RPC at all.
        Err(_) => initialize(peer, options).await,
    }
}

/// Whether nothing else is worth a try after this error.
fn is_final(error: &PeerError) -> bool {
    match error {
        PeerError::Closed | PeerError::Unreachable(_) | PeerError::SignIn(_) | PeerError::Unauthorized(_) => {
            true
        }
        PeerError::Rpc { .. } | PeerError::Damaged(_) | PeerError::Lost(_) => false,
    }
}

fn given_up(method: &'static str, error: PeerError) -> HandshakeError {
    match error {
        PeerError::Closed if method == "server/discover" => HandshakeError::LostInProbe,
        PeerError::Unreachable(why) => HandshakeError::Unreachable(why),
        PeerError::SignIn(why) => HandshakeError::SignIn(why),
        PeerError::Unauthorized(why) => HandshakeError::Unauthorized(why),
        source @ (PeerError::Closed | PeerError::Rpc { .. } | PeerError::Damaged(_) | PeerError::Lost(_)) => {
            HandshakeError::Refused { method, source }
        }
    }
}

async fn initialize(peer: &Peer, options: &HostOptions) -> Result<Session, HandshakeError> {
    const METHOD: &str = "initialize";
    if let Some(only) = options.protocol.as_deref().filter(|version| *version >= MODERN) {
        return Err(HandshakeError::NotModern(only.to_owned()));
    }
    let wanted = options.protocol.as_deref();
    let wanted = wanted.unwrap_or(NEWEST_WITH_INITIALIZE);
    let params = Map::from_iter([
        ("protocolVersion".to_owned(), json!(wanted)),
        ("capabilities".to_owned(), capabilities(options, false)),
        ("clientInfo".to_owned(), client_info(options)),
    ]);
    let answer = peer.ask(METHOD, params).await;
    let answer = answer.map_err(|error| given_up(METHOD, error))?;
    let version = answer.get("protocolVersion").and_then(Value::as_str);
    let version = version.ok_or(HandshakeError::Senseless(METHOD))?;
    let meta = if version == MODERN {
        // Some servers answer `initialize` with the newest revision they know; from here its rules hold.
        with_log_level(context(options), &answer)
    } else if WITH_INITIALIZE.contains(&version) {
        Map::new()
    } else {
        return Err(HandshakeError::NoCommonVersion(version.to_owned()));
    };
    peer.notify("notifications/initialized", Map::new());
    Ok(Session {
        protocol: version.to_owned(),
        reported: reported(answer.get("serverInfo")),
        instructions: text(&answer, "instructions"),
        capabilities: answer.get("capabilities").cloned().unwrap_or(Value::Null),
        meta,
    })
}

fn speaks_modern(found: &Value) -> bool {
    versions(found.get("supportedVersions")).iter().any(|version| version == MODERN)
}

fn modern(found: &Value, options: &HostOptions) -> Session {
    Session {
        protocol: MODERN.to_owned(),
        reported: reported(found.pointer("/_meta/io.modelcontextprotocol~1serverInfo")),
        instructions: text(found, "instructions"),
        capabilities: found.get("capabilities").cloned().unwrap_or(Value::Null),
        meta: with_log_level(context(options), found),
    }
}

fn versions(value: Option<&Value>) -> Vec<String> {
    let items = value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    items.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn reported(info: Option<&Value>) -> Option<Reported> {
    let name = text(info?, "name")?;
    Some(Reported { name, version: text(info?, "version").unwrap_or_default() })
}

fn text(value: &Value, field: &str) -> Option<String> {
    value.get(field).and_then(Value::as_str).map(str::to_owned)
}

fn context(options: &HostOptions) -> Map<String, Value> {
    Map::from_iter([
        ("io.modelcontextprotocol/protocolVersion".to_owned(), json!(MODERN)),
        ("io.modelcontextprotocol/clientCapabilities".to_owned(), capabilities(options, true)),
        ("io.modelcontextprotocol/clientInfo".to_owned(), client_info(options)),
    ])
}

/// A server of the modern era logs only for requests that say how much (2026-07-28, Logging).
fn with_log_level(mut meta: Map<String, Value>, answer: &Value) -> Map<String, Value> {
    if answer.pointer("/capabilities/logging").is_some_and(Value::is_object) {
        meta.insert("io.modelcontextprotocol/logLevel".into(), LOG_LEVEL.into());
    }
    meta
}

fn client_info(options: &HostOptions) -> Value {
    json!({"name": options.client_name, "title": "Lectern", "version": options.client_version})
}
