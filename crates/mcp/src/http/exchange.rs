//! One request, from its POST to its answer.
//!
//! Invariant: it ends. What is tried again is counted, and only a request that can't have had an effect, or that has
//! none, is sent a second time: a tool that ran once must not run twice because an answer got lost.

use std::sync::Arc;
use std::time::Duration;

use reqwest::StatusCode;
use reqwest::header::RETRY_AFTER;
use serde_json::{Value, json};

use super::events::{Event, Events, ReadError, body, cause};
use super::post::{Answer, Shape, described, shape};
use super::session::method_of;
use super::{Loss, Route};
use crate::auth::{Answered, AuthError, lacks_rights};
use crate::peer::PeerError;

/// Pauses before a request is sent again that did not get through.
const PAUSES: [Duration; 3] =
    [Duration::from_millis(250), Duration::from_millis(500), Duration::from_millis(1_000)];
/// Pause before a stream is taken up again, unless the server names one.
const RESUME_PAUSE: Duration = Duration::from_millis(500);
/// Attempts in a row to take up a stream, without one event of it.
const RESUMES: u32 = 5;
/// A server that asks for a longer pause gets an error instead.
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// What comes after the answer is read for this long, so that the connection can be used again.
const REST: Duration = Duration::from_millis(250);
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
    doubt(route);
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
        _ if status.is_success() => accept(route, message, id, answer).await,
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
    let error = if shape(&response) == Shape::Json {
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
        let Ok(answer) = route.post(&asked).await else { return };
        let Ok(Some(reply)) = route.read_reply(answer.response, &json!("headers")).await else { return };
        route.params.learn(&reply);
        match reply.pointer("/result/nextCursor") {
            Some(cursor) if cursor.is_string() => params["cursor"] = cursor.clone(),
            _ => break,
        }
    }
    // The catalog is stale as well.
    route.incoming.message(json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));
}

/// Reads an answer that is none of an error.
async fn accept(
    route: &Arc<Route>,
    message: &Value,
    id: &Value,
    answer: Answer,
) -> Result<Attempt, PeerError> {
    let response = answer.response;
    let session = response.headers().get("mcp-session-id").cloned();
    let reply = match shape(&response) {
        Shape::Json => read_json(route, response, id).await?,
        Shape::Events => follow(route, response, id, &answer.context).await?,
        Shape::Other => return Err(PeerError::Lost(described(response).await)),
    };
    match method_of(Some(message)) {
        Some("initialize") => route.session.begin(message, &reply, session),
        Some("tools/list") => route.params.learn(&reply),
        Some(_) | None => {}
    }
    route.incoming.message_about(id, reply);
    Ok(Attempt::Done)
}

async fn read_json(route: &Arc<Route>, response: reqwest::Response, id: &Value) -> Result<Value, PeerError> {
    let whole = match body(response, route.max_message).await {
        Ok(whole) => whole,
        Err(ReadError::Broken(why)) => {
            doubt(route);
            return Err(PeerError::Lost(format!("the connection broke within the answer: {why}")));
        }
        Err(error @ (ReadError::TooLong(_) | ReadError::NotText)) => {
            return Err(PeerError::Damaged(error.to_string()));
        }
    };
    let unreadable =
        |why: &dyn std::fmt::Display| PeerError::Damaged(format!("the answer is not valid JSON ({why})"));
    if std::str::from_utf8(&whole).is_err() {
        return Err(PeerError::Damaged("the answer is not valid UTF-8".into()));
    }
    let message: Value = serde_json::from_slice(&whole).map_err(|error| unreadable(&error))?;
    let messages = match message {
        Value::Array(batch) => batch,
        single => vec![single],
    };
    let mut reply = None;
    for message in messages {
        if let Some(found) = route.sorted(message, id) {
            reply = Some(found);
        }
    }
    reply.ok_or_else(|| PeerError::Damaged("the answer is for another request, or for none".into()))
}

/// Reads a stream until the answer comes; takes it up again where the server allows it (MCP 2025-11-25, Transports,
/// Resumability and Redelivery).
async fn follow(
    route: &Arc<Route>,
    response: reqwest::Response,
    id: &Value,
    context: &super::session::Context,
) -> Result<Value, PeerError> {
    let mut events = Events::new(response, route.max_message);
    let mut stream = Resumable::default();
    loop {
        let ended = match stream.read(route, &mut events, id).await? {
            Found::Reply(reply) => {
                tokio::spawn(async move {
                    let rest = async { while let Ok(Some(_)) = events.next().await {} };
                    let _ = tokio::time::timeout(REST, rest).await;
                });
                return Ok(reply);
            }
            Found::End(why) => why,
        };
        let Some(last) = stream.last.clone().filter(|_| !context.modern) else {
            doubt(route);
            return Err(PeerError::Lost(format!(
                "the server ended the stream before the answer came{ended}"
            )));
        };
        events = stream.again(route, &last).await?;
    }
}

/// Where a stream stands.
#[derive(Default)]
struct Resumable {
    last: Option<String>,
    pause: Option<Duration>,
    attempts: u32,
}

enum Found {
    Reply(Value),
    /// The stream ended; holds the reason, as the end of a sentence.
    End(String),
}

impl Resumable {
    async fn read(&mut self, route: &Route, events: &mut Events, id: &Value) -> Result<Found, PeerError> {
        loop {
            let event = match events.next().await {
                Ok(Some(event)) => event,
                Ok(None) => return Ok(Found::End(String::new())),
                Err(ReadError::Broken(why)) => return Ok(Found::End(format!(": {why}"))),
                Err(error @ (ReadError::TooLong(_) | ReadError::NotText)) => {
                    return Err(PeerError::Damaged(error.to_string()));
                }
            };
            let Event { id: event_id, retry, data, .. } = event;
            self.last = event_id.or(self.last.take());
            self.pause = retry.or(self.pause);
            let Some(data) = data else { continue };
            self.attempts = 0;
            let message: Value = serde_json::from_str(&data)
                .map_err(|error| PeerError::Damaged(format!("an event is not valid JSON ({error})")))?;
            if let Some(reply) = route.sorted(message, id) {
                return Ok(Found::Reply(reply));
            }
        }
    }

    async fn again(&mut self, route: &Arc<Route>, last: &str) -> Result<Events, PeerError> {
        loop {
            if self.attempts == RESUMES {
                doubt(route);
                return Err(PeerError::Lost("the stream broke, and could not be taken up again".into()));
            }
            self.attempts += 1;
            tokio::time::sleep(self.pause.unwrap_or(RESUME_PAUSE)).await;
            match route.get(Some(last)).await {
                Ok(response) if response.status().is_success() && shape(&response) == Shape::Events => {
                    return Ok(Events::new(response, route.max_message));
                }
                Ok(response) if response.status().is_server_error() => {}
                Ok(response) => {
                    let why = described(response).await;
                    return Err(PeerError::Lost(format!("the stream could not be taken up again: {why}")));
                }
                Err(_) => {}
            }
        }
    }
}

impl Route {
    /// Takes in a message that came with the answer to a request; gives the answer itself back.
    pub(super) fn sorted(&self, message: Value, id: &Value) -> Option<Value> {
        let answer = message.get("method").is_none();
        let own = message
            .get("id")
            .is_some_and(|found| found == id || (found.is_null() && message.get("error").is_some()));
        if answer && own {
            let mut reply = message;
            reply["id"] = id.clone();
            return Some(reply);
        }
        self.incoming.message_about(id, message);
        None
    }

    /// The answer to a request of our own; none when there is none.
    pub(super) async fn read_reply(
        self: &Arc<Self>,
        response: reqwest::Response,
        id: &Value,
    ) -> Result<Option<Value>, PeerError> {
        if !response.status().is_success() {
            return Ok(None);
        }
        match shape(&response) {
            Shape::Json => read_json(self, response, id).await.map(Some),
            Shape::Events => {
                let mut events = Events::new(response, self.max_message);
                match Resumable::default().read(self, &mut events, id).await? {
                    Found::Reply(reply) => Ok(Some(reply)),
                    Found::End(_) => Ok(None),
                }
            }
            Shape::Other => Ok(None),
        }
    }

    /// Begins the session anew with a server that has forgotten it (MCP 2025-11-25, Transports, Session Management).
    pub(super) async fn renew(self: &Arc<Self>, seen: u64) -> Result<(), PeerError> {
        let _one = self.session.renewing.lock().await;
        let Some((mut greeting, epoch)) = self.session.greeting() else { return Ok(()) };
        if epoch != seen {
            return Ok(());
        }
        let id = json!(format!("again-{epoch}"));
        greeting["id"] = id.clone();
        let lost = |why: String| {
            PeerError::Lost(format!("the server forgot the session and began no new one: {why}"))
        };
        let answer = self.post(&greeting).await.map_err(|error| lost(cause(&error)))?;
        let session = answer.response.headers().get("mcp-session-id").cloned();
        if !answer.response.status().is_success() {
            return Err(lost(described(answer.response).await));
        }
        let reply = self.read_reply(answer.response, &id).await?;
        let reply = reply.filter(|reply| reply.pointer("/result/protocolVersion").is_some());
        let reply = reply.ok_or_else(|| lost("it gave no answer".into()))?;
        self.session.begin(&greeting, &reply, session);
        self.tell(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        self.incoming.log("[lectern] the server had forgotten the session; a new one has begun".into());
        // It may be another version of itself now.
        self.incoming.message(json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));
        Ok(())
    }

    /// The address for people: without what may be secret.
    pub(super) fn shown_url(&self) -> String {
        let mut url = self.url.clone();
        url.set_query(None);
        let _ = url.set_password(None);
        let _ = url.set_username("");
        url.to_string()
    }
}

/// After a broken connection: is the server still there? If not, everything else that waits should know.
fn doubt(route: &Arc<Route>) {
    let route = Arc::clone(route);
    drop(tokio::spawn(async move {
        for pause in PAUSES {
            match route.get(None).await {
                Err(error) if error.is_connect() => tokio::time::sleep(pause).await,
                // Whatever it says, it is there.
                Ok(_) | Err(_) => return,
            }
        }
        route.lose(Loss::Unreachable(format!("`{}` can't be reached any more", route.shown_url())));
    }));
}
