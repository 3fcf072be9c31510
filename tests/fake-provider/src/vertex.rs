//! A strict Vertex AI: tokens for assertions that it verifies, replies that are signed, 400 for what breaks a rule.
//!
//! Invariant: a request is answered with the next step of the script only if it keeps all rules, came with a token of
//! ours that is still valid, and after the last answer was read to its end.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::rules::{Issued, check};
use crate::{Answer, Piece, Seen, Server, google_error, jwt};

/// A key for tests. Everybody knows it; nothing in the world trusts it.
pub const PRIVATE_KEY: &str = include_str!("key.pem");
const PUBLIC_KEY: &str = include_str!("public.pem");

/// Whose key it is.
pub const EMAIL: &str = "tester@p-1.iam.gserviceaccount.com";

/// What the model does in one step: its chunks, each a list of parts. Calls are signed and get their ids here.
#[derive(Clone, Debug, Default)]
pub struct Step {
    chunks: Vec<Vec<Value>>,
    ids: bool,
}

impl Step {
    /// These chunks, each a list of parts.
    pub fn of(chunks: Vec<Vec<Value>>) -> Self {
        Self { chunks, ids: false }
    }

    /// One chunk for each text.
    pub fn says(texts: &[&str]) -> Self {
        Self { chunks: texts.iter().map(|text| vec![json!({ "text": text })]).collect(), ids: false }
    }

    /// One chunk more with a call.
    #[must_use]
    pub fn calls(mut self, name: &str, args: &Value) -> Self {
        self.chunks.push(vec![json!({"functionCall": {"name": name, "args": args}})]);
        self
    }

    /// The calls have ids.
    #[must_use]
    pub fn with_ids(mut self) -> Self {
        self.ids = true;
        self
    }

    /// One chunk more with thoughts.
    #[must_use]
    pub fn thinks(mut self, text: &str) -> Self {
        self.chunks.push(vec![json!({ "text": text, "thought": true })]);
        self
    }

    /// One chunk more with an empty, signed text.
    #[must_use]
    pub fn signed_end(mut self) -> Self {
        self.chunks.push(vec![json!({ "text": "", "thoughtSignature": "" })]);
        self
    }
}

#[derive(Default)]
struct State {
    steps: Vec<Step>,
    next: usize,
    issued: Vec<Issued>,
    signed_text: Vec<(String, String)>,
    tokens: Vec<String>,
    /// Refusals of requests, for the test that wonders.
    refusals: Vec<String>,
}

/// A strict Vertex AI on this computer.
pub struct Vertex {
    /// The server.
    pub server: Server,
    state: Arc<Mutex<State>>,
}

impl Vertex {
    /// Plays these steps.
    pub async fn start(steps: Vec<Step>) -> Self {
        let state = Arc::new(Mutex::new(State { steps, ..State::default() }));
        let shared = Arc::clone(&state);
        // The handler has to know whether an answer is still being read, which the server knows.
        let busy: Arc<Mutex<Option<Arc<AtomicUsize>>>> = Arc::default();
        let seen_busy = Arc::clone(&busy);
        let server = Server::start(Arc::new(move |seen: &Seen| {
            let open = busy.lock().unwrap_or_else(PoisonError::into_inner);
            let open = open.as_ref().map_or(0, |open| open.load(Ordering::SeqCst));
            answer(&mut shared.lock().unwrap_or_else(PoisonError::into_inner), seen, open)
        }))
        .await;
        *seen_busy.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&server.open));
        Self { server, state }
    }

    /// A service account's JSON, as Google gives it, for this server's token endpoint.
    pub fn service_account(&self) -> Value {
        json!({
            "type": "service_account",
            "project_id": "p-1",
            "private_key_id": "k1",
            "private_key": PRIVATE_KEY,
            "client_email": EMAIL,
            "client_id": "1",
            "token_uri": format!("{}/token", self.server.url()),
        })
    }

    /// What was refused, and why.
    pub fn refusals(&self) -> Vec<String> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).refusals.clone()
    }

    /// A token without an assertion.
    pub fn token(&self) -> String {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).fresh_token()
    }

    /// Takes back all tokens.
    pub fn revoke(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).tokens.clear();
    }
}

impl State {
    fn fresh_token(&mut self) -> String {
        let token = format!("ya29.test-{}-{:x}", self.tokens.len(), now());
        self.tokens.push(token.clone());
        token
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

fn answer(state: &mut State, seen: &Seen, open: usize) -> Answer {
    if seen.path == "/token" {
        return token(state, seen);
    }
    if seen.path.starts_with("/computeMetadata/") {
        if seen.header("metadata-flavor") != "Google" {
            return Answer::of(403, "text/html", "<html>Missing Metadata-Flavor:Google header</html>");
        }
        let token = state.fresh_token();
        return Answer::json(
            200,
            &json!({"access_token": token, "expires_in": 3599, "token_type": "Bearer"}),
        );
    }
    let known = |state: &State| {
        let token = seen.header("authorization").strip_prefix("Bearer ").unwrap_or_default();
        state.tokens.iter().any(|known| known == token)
    };
    if !known(state) {
        return google_error(401, "UNAUTHENTICATED", "Die Anmeldung ist abgelaufen.");
    }
    let refusal = if open > 0 {
        Err("the stream of the last step was not read to its end".to_owned())
    } else if !seen.path.ends_with(":streamGenerateContent") || seen.query != "alt=sse" {
        Err(format!("{} {} is no method", seen.path, seen.query))
    } else {
        check(&seen.json(), &state.issued, &state.signed_text)
    };
    match refusal {
        Ok(()) if state.next < state.steps.len() => step(state),
        Ok(()) => google_error(400, "INVALID_ARGUMENT", "the script is over"),
        Err(why) => {
            state.refusals.push(why.clone());
            google_error(400, "INVALID_ARGUMENT", &why)
        }
    }
}

/// RFC 7523 and RFC 6749, 6.
fn token(state: &mut State, seen: &Seen) -> Answer {
    let refuse =
        |why: String| Answer::json(400, &json!({"error": "invalid_grant", "error_description": why}));
    let form = |name: &str| {
        url::form_urlencoded::parse(&seen.raw)
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.into_owned())
    };
    match form("grant_type").as_deref() {
        Some("urn:ietf:params:oauth:grant-type:jwt-bearer") => {
            let assertion = form("assertion").unwrap_or_default();
            let claims = match jwt::verify(&assertion, &jwt::der(PUBLIC_KEY)) {
                Ok(claims) => claims,
                Err(why) => return refuse(why),
            };
            let lasts =
                claims["exp"].as_u64().unwrap_or(0).saturating_sub(claims["iat"].as_u64().unwrap_or(0));
            let scope = claims["scope"].as_str().unwrap_or_default();
            let fresh = claims["exp"].as_u64().is_some_and(|end| end > now()) && (1..=3_600).contains(&lasts);
            let ours = claims["aud"].as_str().is_some_and(|aud| aud.ends_with("/token"));
            if claims["iss"] != EMAIL || !fresh || !ours || !scope.contains("/auth/cloud-platform") {
                return refuse(format!("the claims are wrong: {claims}"));
            }
        }
        Some("refresh_token") if form("refresh_token").as_deref() == Some("1//refresh") => {}
        other => return refuse(format!("no grant: {other:?}")),
    }
    let token = state.fresh_token();
    Answer::json(200, &json!({"access_token": token, "expires_in": 3599, "token_type": "Bearer"}))
}

fn step(state: &mut State) -> Answer {
    let number = state.next;
    state.next += 1;
    let Step { chunks, ids } = state.steps[number].clone();
    let mut calls = 0;
    let mut events = Vec::new();
    for mut parts in chunks {
        for part in &mut parts {
            if part.get("functionCall").is_some() {
                sign_call(state, part, number, calls, ids);
                calls += 1;
            } else if part.get("thoughtSignature").is_some() {
                let signature = format!("dGV4dC0x{number}+/=");
                state
                    .signed_text
                    .push((signature.clone(), part["text"].as_str().unwrap_or_default().to_owned()));
                part["thoughtSignature"] = Value::String(signature);
            }
        }
        events.push(json!({"candidates": [{"content": {"role": "model", "parts": parts}, "index": 0}]}));
    }
    events.push(json!({
        "candidates": [{"content": {"role": "model", "parts": [{"text": ""}]}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {"promptTokenCount": 10 + number, "candidatesTokenCount": 5, "thoughtsTokenCount": 2,
            "cachedContentTokenCount": 3, "totalTokenCount": 17 + number},
    }));
    // Whoever answers the calls before the end of the stream is caught.
    let end = Piece::Bytes(b"\r\n".to_vec());
    Answer::events(&events).then(Piece::Pause(Duration::from_millis(100))).then(end)
}

/// Only the first of parallel calls is signed.
fn sign_call(state: &mut State, part: &mut Value, number: usize, call: usize, ids: bool) {
    let id = ids.then(|| format!("call-{number}-{call}"));
    let signature = (call == 0).then(|| format!("c2lnbmF0dXJl/{number}+A=="));
    if let Some(id) = &id {
        part["functionCall"]["id"] = json!(id);
    }
    if let Some(signature) = &signature {
        part["thoughtSignature"] = json!(signature);
    }
    state.issued.push(Issued {
        name: part["functionCall"]["name"].as_str().unwrap_or_default().to_owned(),
        args: part["functionCall"]["args"].clone(),
        id,
        signature,
    });
}
