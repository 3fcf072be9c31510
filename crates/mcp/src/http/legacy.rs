//! HTTP with SSE, as servers of 2024-11-05 speak it: one stream for everything that the server says, whose first event
//! names the address for what it shall hear.
//!
//! Invariant: messages go to the server's own origin only, whatever address it names.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use url::Url;

use super::events::{Event, Events};
use super::post::{Shape, shape};
use super::{Loss, Route};

/// How long a server may take to name its address.
const ENDPOINT: Duration = Duration::from_secs(10);

/// Opens the stream, if this is such a server, and goes on with it from here.
pub(super) async fn open(route: &Arc<Route>) -> bool {
    let opened = tokio::time::timeout(ENDPOINT, greet(route)).await.ok().flatten();
    let Some((events, endpoint)) = opened else { return false };
    route.session.post_to(endpoint);
    drop(tokio::spawn(read(Arc::clone(route), events)));
    true
}

async fn greet(route: &Arc<Route>) -> Option<(Events, Url)> {
    let response = route.get(None).await.ok()?;
    if !response.status().is_success() || shape(&response) != Shape::Events {
        return None;
    }
    let mut events = Events::new(response, route.max_message);
    while let Ok(Some(Event { kind, data, .. })) = events.next().await {
        if kind.as_deref() == Some("endpoint") {
            let endpoint = route.url.join(data?.trim()).ok()?;
            return (endpoint.origin() == route.url.origin()).then_some((events, endpoint));
        }
    }
    None
}

async fn read(route: Arc<Route>, mut events: Events) {
    let why = loop {
        let event = tokio::select! {
            () = route.closing.cancelled() => return,
            event = events.next() => event,
        };
        match event {
            Ok(Some(Event { data: Some(data), .. })) => match serde_json::from_str::<Value>(&data) {
                Ok(message) => route.incoming.message(message),
                Err(error) => route.incoming.damaged(None, format!("an event is not valid JSON ({error})")),
            },
            Ok(Some(_)) => {}
            Ok(None) => break "the server ended its stream".to_owned(),
            Err(error) => break error.to_string(),
        }
    };
    // Without the stream no answer can arrive.
    route.lose(Loss::Unreachable(why));
}
