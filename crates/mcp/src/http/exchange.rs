//! One request, from its POST to its answer.
//!
//! Invariant: it ends. What is tried again is counted, and only a request that can't have had an effect, or that has
//! none, is sent a second time: a tool that ran once must not run twice because an answer got lost.

use std::sync::Arc;
use std::time::Duration;

use lectern_core::WireDirection;
use reqwest::StatusCode;
use reqwest::header::RETRY_AFTER;
use serde_json::{Value, json};

use super::answer::accept;
use super::events::{body, cause};
use super::post::{Answer, Shape, described, shape};
use super::session::method_of;
use super::{Loss, Route};
use crate::auth::{Answered, AuthError, lacks_rights};
use crate::peer::PeerError;

/// Pauses before a request is sent again that did not get through.
pub(super) const PAUSES: [Duration; 3] =
    [Duration::from_millis(250), Duration::from_millis(500), Duration::from_millis(1_000)];
/// A server that asks for a longer pause gets an error instead.
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// How often is looked whether somebody still waits for the answer.
const LOOK: Duration = Duration::from_millis(500);
/// Refusals of one request: a token that is kept, a renewed one, a new one, and two times more rights.
const MOST_REFUSALS: u32 = 5;
/// The headers do not fit the message (MCP 2026-07-28; -32001 in its drafts).
const HEADER_MISMATCH: i64 = -32_020;

/// Sends a request and sees to it that it settles.
pub(super) async fn run(route: Arc<Route>, message: Value) {
    let id = message.get("id").cloned().unwrap_or_default();
    let outcome = tokio::select! {
        biased;
        outcome = converse(&route, &message, &id) => outcome,
        // Closing the stream tells a server of the modern era that nobody wants the answer any more.
        () = unwanted(&route, &id) => return,
    };
    if let Err(failed) = outcome {
        let loss = match &failed {
            PeerError::Unreachable(why) => Some(Loss::Unreachable(why.clone())),
            // Who may not see what is there beside the tools can use the tools all the same.
            PeerError::SignIn(_) if is_listed_beside(&message) => None,
            PeerError::SignIn(why) => Some(Loss::SignIn(why.clone())),
            PeerError::Closed
            | PeerError::Damaged(_)
            | PeerError::Lost(_)
            | PeerError::Unauthorized(_)
            | PeerError::Rpc { .. } => None,
        };
        route.incoming.settle(&id, failed);
        if let Some(loss) = loss {
            route.lose(loss);
        }
    }
}

/// Whether a message asks for a list that the host looks at by itself, without anybody having wished for it.
fn is_listed_beside(message: &Value) -> bool {
    let method = message.get("method").and_then(Value::as_str);
    matches!(method, Some(crate::resources::LIST | crate::prompts::LIST))
}

async fn unwanted(route: &Route, id: &Value) {
    while route.incoming.waits_for(id) {
        tokio::time::sleep(LOOK).await;
    }
}

/// What is left to try.
#[derive(Default)]
struct Tries {
    sends: usize,
    renewed: bool,
    relisted: bool,
    asked_for_endpoint: bool,
    /// Refusals for lack of a token or of rights.
    refusals: u32,
    answered: Option<Answered>,
}

impl Tries {
    /// Waits before the next attempt; false when there is none left.
    async fn pause(&mut self, wanted: Option<Duration>) -> bool {
        let Some(pause) = PAUSES.get(self.sends) else { return false };
        self.sends += 1;
        tokio::time::sleep(wanted.unwrap_or(*pause)).await;
        true
    }
}

/// What one attempt came to.
enum Attempt {
    /// The answer was handed over.
    Done,
    /// The request may be sent once more.
    Again,
}

async fn converse(route: &Arc<Route>, message: &Value, id: &Value) -> Result<(), PeerError> {
    let mut tries = Tries::default();
    loop {
        let attempt = match route.post(message).await {
            Ok(answer) => take(route, message, id, answer, &mut tries).await?,
            Err(error) => undelivered(route, message, &error, &mut tries).await?,
        };
        match attempt {
            Attempt::Done => return Ok(()),
            Attempt::Again => {}
        }
    }
}

/// There was no answer at all.
async fn undelivered(
    route: &Arc<Route>,
    message: &Value,
    error: &reqwest::Error,
    tries: &mut Tries,
) -> Result<Attempt, PeerError> {
    let why = cause(error);
    // Without a connection nothing can have had an effect.
    if (error.is_connect() || is_safe(message)) && tries.pause(None).await {
        return Ok(Attempt::Again);
    }
    if error.is_connect() {
        return Err(PeerError::Unreachable(format!("`{}` can't be reached: {why}", route.shown_url())));
    }
    route.doubt();
    Err(PeerError::Lost(format!("the connection broke before the answer came: {why}")))
}

/// Whether sending it twice is as good as sending it once.
fn is_safe(message: &Value) -> bool {
    match method_of(Some(message)) {
        Some("initialize" | "ping" | "server/discover" | "completion/complete" | "resources/read") => true,
        Some(method) => method.ends_with("/list") || method.ends_with("/get"),
        None => false,
    }
}

/// Judges an answer by its status.
async fn take(
    route: &Arc<Route>,
    message: &Value,
    id: &Value,
    answer: Answer,
    tries: &mut Tries,
) -> Result<Attempt, PeerError> {
    let status = answer.response.status();
    match status {
        _ if answer.context.post_to.is_some() && status.is_success() => {
            // The answer comes over the stream, and with it the end of the request.
            std::future::pending().await
        }
        _ if status.is_success() => {
            accept(route, message, id, answer).await?;
            Ok(Attempt::Done)
        }
        StatusCode::UNAUTHORIZED => authorize(route, answer, tries, false).await,
        StatusCode::FORBIDDEN if lacks_rights(answer.response.headers()) => {
            authorize(route, answer, tries, true).await
        }
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
            later(message, id, answer, tries, route).await
        }
        StatusCode::BAD_GATEWAY | StatusCode::GATEWAY_TIMEOUT if is_safe(message) => {
            later(message, id, answer, tries, route).await
        }
        _ => refused(route, message, id, answer, tries).await,
    }
}

/// A server that wants a token, or one with more rights.
async fn authorize(
    route: &Arc<Route>,
    answer: Answer,
    tries: &mut Tries,
    more_rights: bool,
) -> Result<Attempt, PeerError> {
    let Answer { response, token, .. } = answer;
    let headers = response.headers().clone();
    let said = described(response).await;
    tries.refusals += 1;
    if tries.refusals > MOST_REFUSALS {
        return Err(PeerError::Unauthorized(said));
    }
    let answered = route.auth.refused(&headers, token.as_ref(), tries.answered, more_rights).await;
    tries.answered = Some(answered.map_err(|error| match error {
        AuthError::NeedsUser => PeerError::SignIn(said),
        AuthError::NeedsRights(rights) => PeerError::SignIn(format!(
            "it wants more rights for this ({rights}); sign in again to grant them"
        )),
        other => PeerError::Unauthorized(other.to_string()),
    })?);
    Ok(Attempt::Again)
}

/// A server that is busy gets time, as much as it asks for.
async fn later(
    message: &Value,
    id: &Value,
    answer: Answer,
    tries: &mut Tries,
    route: &Arc<Route>,
) -> Result<Attempt, PeerError> {
    let wanted = answer.response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    let wanted = wanted.and_then(|value| value.trim().parse().ok()).map(Duration::from_secs);
    if wanted.is_none_or(|wanted| wanted <= LONGEST_WAIT) && tries.pause(wanted).await {
        return Ok(Attempt::Again);
    }
    refused(route, message, id, answer, tries).await
}

/// Not taken: by a server that has forgotten the session, by one of 2024, or for a reason that it gives.
async fn refused(
    route: &Arc<Route>,
    message: &Value,
    id: &Value,
    answer: Answer,
    tries: &mut Tries,
) -> Result<Attempt, PeerError> {
    let Answer { response, context, .. } = answer;
    let status = response.status();
    let error = if shape(&response) == Shape::Json && !status.is_redirection() {
        Refusal::read(response, route).await
    } else {
        Refusal::Other(response)
    };
    let ours = matches!(&error, Refusal::Rpc(reply) if reply.get("id") == Some(id));
    let forgotten = status == StatusCode::NOT_FOUND || (status == StatusCode::BAD_REQUEST && !ours);
    if context.has_session && forgotten && !tries.renewed {
        tries.renewed = true;
        route.renew(context.epoch).await?;
        return Ok(Attempt::Again);
    }
    let old =
        [StatusCode::BAD_REQUEST, StatusCode::NOT_FOUND, StatusCode::METHOD_NOT_ALLOWED].contains(&status);
    let greeting = method_of(Some(message)) == Some("initialize");
    if old && greeting && !ours && !tries.asked_for_endpoint {
        tries.asked_for_endpoint = true;
        if super::legacy::open(route).await {
            return Ok(Attempt::Again);
        }
    }
    match error {
        Refusal::Rpc(mut reply) => {
            let code = reply.pointer("/error/code").and_then(Value::as_i64);
            let call = method_of(Some(message)) == Some("tools/call");
            if code == Some(HEADER_MISMATCH) && call && !tries.relisted {
                tries.relisted = true;
                relist(route, message).await;
                return Ok(Attempt::Again);
            }
            // An error without an id is the answer to the request that it came for.
            reply["id"] = id.clone();
            route.incoming.message(reply);
            Ok(Attempt::Done)
        }
        Refusal::Text(text) if text.trim().is_empty() => Err(PeerError::Lost(format!("HTTP {status}"))),
        Refusal::Text(text) => Err(PeerError::Lost(format!("HTTP {status}: {text}"))),
        Refusal::Other(response) => Err(PeerError::Lost(described(response).await)),
    }
}

/// What stands in an answer that is an error.
enum Refusal {
    Rpc(Value),
    Text(String),
    Other(reqwest::Response),
}

impl Refusal {
    async fn read(response: reqwest::Response, route: &Route) -> Self {
        let Ok(whole) = body(response, route.max_message).await else {
            return Self::Text("the rest could not be read".into());
        };
        match serde_json::from_slice::<Value>(&whole) {
            Ok(reply) if reply.get("error").is_some_and(Value::is_object) => Self::Rpc(reply),
            Ok(_) | Err(_) => {
                let text: String = String::from_utf8_lossy(&whole).chars().take(300).collect();
                Self::Text(text)
            }
        }
    }
}

/// Learns anew which headers a tool wants.
async fn relist(route: &Arc<Route>, message: &Value) {
    let meta = message.pointer("/params/_meta").cloned().unwrap_or_else(|| json!({}));
    let mut params = json!({"_meta": meta});
    for _ in 0..50 {
        let asked = json!({"jsonrpc": "2.0", "id": "headers", "method": "tools/list", "params": params});
        route.incoming.carried(WireDirection::Sent, &asked);
        let Ok(answer) = route.post(&asked).await else { return };
        let Ok(Some(reply)) = route.read_reply(answer.response, &json!("headers")).await else { return };
        route.incoming.carried(WireDirection::Received, &reply);
        route.params.learn(&reply);
        match reply.pointer("/result/nextCursor") {
            Some(cursor) if cursor.is_string() => params["cursor"] = cursor.clone(),
            _ => break,
        }
    }
    // The catalog is stale as well.
    route.incoming.tools_may_have_changed();
}
