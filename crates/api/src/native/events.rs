//! `GET /api/events?conversation=SESSION`: the engine's own events of a session, as the window sees those of its own.
//!
//! Each event has an id, `TURN:SEQ`. Who comes back with the last one (`Last-Event-ID`, or `after`) gets what followed, of
//! that turn and of later ones.
//!
//! Invariant: a client that comes back misses nothing. Of a turn that is over and no longer in memory it gets the events as
//! they are kept: without deltas, whose words are in the event that ends their step.

use axum::extract::{Extension, Query, State};
use axum::http::HeaderMap;
use axum::response::Response;
use bytes::Bytes;
use futures::stream;
use lectern_core::{ConversationId, Event, Events, StoreError, TurnId};
use serde::Deserialize;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::auth::{Caller, Scope};
use crate::document::{Failures, ServerSentEvent};
use crate::error::ApiError;
use crate::fields::missing;
use crate::sse;
use crate::state::Api;

/// What is asked.
#[derive(Debug, Deserialize)]
pub struct Asked {
    /// A session's name.
    conversation: Option<String>,
    /// The last event that the client has: `TURN:SEQ`, or the number alone for the last turn.
    after: Option<String>,
    /// Whether it ends when no turn runs, in place of waiting for the next one.
    #[serde(default)]
    once: bool,
}

/// The last event that a client has.
#[derive(Debug, PartialEq)]
struct Place {
    turn: Option<TurnId>,
    /// The number of the next event.
    next: u64,
}

/// Follows what happens in a session.
///
/// The data of each event is a `SessionEvent`, and its id `TURN:SEQ`; the last one is `[DONE]`.
#[utoipa::path(
    get,
    path = "/api/events",
    operation_id = "follow_events",
    tag = "Lectern",
    params(
        ("conversation" = String, Query, description = "The session", min_length = 1),
        ("after" = Option<String>, Query, nullable = false,
            description = "The last event that the client has: `TURN:SEQ`, or the number alone for the last turn"),
        ("once" = Option<bool>, Query, nullable = false,
            description = "Whether it ends when no turn runs, in place of waiting for the next one"),
        ("Last-Event-ID" = Option<String>, Header, nullable = false, description = "As `after`, and before it"),
    ),
    responses(
        (status = 200, description = "The events", body = ServerSentEvent, content_type = "text/event-stream"),
        Failures,
    ),
)]
pub async fn follow(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    asked: Result<Query<Asked>, axum::extract::rejection::QueryRejection>,
) -> Result<Response, ApiError> {
    caller.must(Scope::Models)?;
    let wrong = |_| ApiError::invalid("invalid_type", "once", "`once` has to be true or false");
    let Query(asked) = asked.map_err(wrong)?;
    let name = asked.conversation.ok_or_else(|| missing("conversation".to_owned()))?;
    let session = api.sessions.known(&caller.id, name).map_err(|error| error.at("conversation"))?;
    let header = headers.get("last-event-id").and_then(|value| value.to_str().ok()).map(str::to_owned);
    let place = match header.or(asked.after) {
        None => None,
        Some(text) => Some(read(&text).ok_or_else(|| {
            ApiError::invalid("invalid_value", "after", "`after` has to be the id of an event")
        })?),
    };
    // It is not in use by who only looks on: it can be deleted, and then there is nothing more to tell.
    let conversation = session.conversation.clone();
    let begun = api.sessions.begun();
    let following = Following { api, conversation, begun, once: asked.once, turn: None, events: None, place };
    let frames = stream::unfold(Some(following), |following| async move {
        let mut following = following?;
        match following.next().await {
            Next::Event(event) => Some((frame(&event), Some(following))),
            Next::Nothing => Some((sse::comment("waiting"), Some(following))),
            Next::End => Some((Bytes::from_static(sse::DONE), None)),
        }
    });
    Ok(sse::response(frames))
}

fn read(text: &str) -> Option<Place> {
    let (turn, seq) = match text.rsplit_once(':') {
        Some((turn, seq)) => (Some(TurnId(turn.to_owned())), seq),
        None => (None, text),
    };
    let seq: i64 = seq.parse().ok()?;
    // -1 is before the first one.
    Some(Place { turn, next: u64::try_from(seq.checked_add(1)?).ok()? })
}

struct Following {
    api: Api,
    conversation: ConversationId,
    /// Fires when a turn begins, or a session is deleted.
    begun: watch::Receiver<()>,
    once: bool,
    /// The turn that is told.
    turn: Option<TurnId>,
    events: Option<Source>,
    /// Where the client is, until that is found.
    place: Option<Place>,
}

enum Source {
    /// It runs, or is remembered.
    Live(Events),
    /// As it is kept.
    Kept(std::vec::IntoIter<Event>),
}

enum Next {
    Event(Box<Event>),
    Nothing,
    End,
}

impl Following {
    async fn next(&mut self) -> Next {
        loop {
            let event = match &mut self.events {
                Some(Source::Kept(events)) => events.next(),
                Some(Source::Live(events)) => {
                    tokio::select! {
                        biased;
                        () = self.api.ending.cancelled() => return Next::End,
                        next = timeout(sse::AWAKE, events.next()) => match next {
                            Err(_) => return Next::Nothing,
                            Ok(event) => event,
                        },
                    }
                }
                None => None,
            };
            if let Some(event) = event {
                return Next::Event(Box::new(event));
            }
            self.events = None;
            self.begun.borrow_and_update();
            match self.another() {
                Ok(true) => {}
                Ok(false) if self.once => return Next::End,
                Ok(false) => {
                    tokio::select! {
                        () = self.api.ending.cancelled() => return Next::End,
                        begun = timeout(sse::AWAKE, self.begun.changed()) => match begun {
                            Ok(Ok(())) => {}
                            Ok(Err(_)) => return Next::End,
                            Err(_) => return Next::Nothing,
                        },
                    }
                }
                // It was deleted, or can't be read, which is in the log; the client comes back with where it was.
                Err(_) => return Next::End,
            }
        }
    }

    /// Goes on to the turn after the one that was told. False when there is none yet.
    fn another(&mut self) -> Result<bool, StoreError> {
        let store = self.api.sessions.store();
        store.conversation(&self.conversation)?;
        let turns = store.turns(&self.conversation)?;
        let position = |turn: &TurnId| turns.iter().position(|known| known.id == *turn);
        let (at, from) = match (&self.turn, self.place.take()) {
            (Some(told), _) => (position(told).map_or(0, |at| at + 1), 0),
            (None, None) => (turns.len().saturating_sub(1), 0),
            (None, Some(Place { turn: None, next })) => (turns.len().saturating_sub(1), next),
            // A turn that is not there any more was before all that are.
            (None, Some(Place { turn: Some(turn), next })) => match position(&turn) {
                Some(at) => (at, next),
                None => (0, 0),
            },
        };
        let Some(turn) = turns.into_iter().nth(at) else { return Ok(false) };
        self.turn = Some(turn.id.clone());
        self.events = Some(match self.api.sessions.turns.get(&turn.id) {
            Some(handle) => Source::Live(handle.events_from(from)),
            None => {
                let events: Vec<Event> = turn.events.into_iter().filter(|event| event.seq >= from).collect();
                Source::Kept(events.into_iter())
            }
        });
        Ok(true)
    }
}

fn frame(event: &Event) -> Bytes {
    let mut out = format!("id: {}:{}\n", event.turn.as_str(), event.seq).into_bytes();
    out.extend_from_slice(&sse::data(&serde_json::to_value(event).unwrap_or_default()));
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_of_an_event_is_read() {
        let place = |turn: Option<&str>, next| Some(Place { turn: turn.map(|t| TurnId(t.to_owned())), next });
        assert_eq!(read("7"), place(None, 8));
        assert_eq!(read("-1"), place(None, 0));
        assert_eq!(read("turn-1:7"), place(Some("turn-1"), 8));
        for bad in ["", "x", "turn:", "9223372036854775807", "-7"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
