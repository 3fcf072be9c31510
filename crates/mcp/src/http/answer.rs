//! Reads the answer to a request: one body, or a stream that is taken up again where it broke.
//!
//! Invariant: what comes on the way to an answer is taken in at once, and a stream that ends without the answer is an
//! error, never a wait.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::Route;
use super::events::{Event, Events, ReadError, body};
use super::post::{Answer, Shape, described, shape};
use super::session::{Context, method_of};
use crate::peer::PeerError;

/// Pause before a stream is taken up again, unless the server names one.
const RESUME_PAUSE: Duration = Duration::from_millis(500);
/// Attempts in a row to take up a stream, without one event of it.
const RESUMES: u32 = 5;
/// What comes after the answer is read for this long, so that the connection can be used again.
const REST: Duration = Duration::from_millis(250);

/// Reads an answer that is none of an error.
pub(super) async fn accept(
    route: &Arc<Route>,
    message: &Value,
    id: &Value,
    answer: Answer,
) -> Result<(), PeerError> {
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
    Ok(())
}

async fn read_json(route: &Arc<Route>, response: reqwest::Response, id: &Value) -> Result<Value, PeerError> {
    let whole = match body(response, route.max_message).await {
        Ok(whole) => whole,
        Err(ReadError::Broken(why)) => {
            route.doubt();
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
    context: &Context,
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
            route.doubt();
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
                route.doubt();
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
}
