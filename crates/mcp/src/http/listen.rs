//! The stream for what a server says by itself (MCP 2025-03-26 to 2025-11-25, Transports, Listening for Messages).
//!
//! Invariant: a server that has no such stream is asked once; one whose stream breaks is asked again, ever more slowly.

use std::sync::Arc;
use std::time::Duration;

use reqwest::StatusCode;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::events::{Event, Events};
use super::post::{Shape, shape};
use super::{Loss, Route};

/// How long messages wait for the stream to open.
const OPENING: Duration = Duration::from_secs(1);
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// Failures to connect, one after the other, until the server is given up.
const GIVEN_UP: u32 = 5;

/// The task that listens, as long as it is wanted.
#[derive(Default)]
pub(super) struct Listener(Option<JoinHandle<()>>);

impl Listener {
    /// Listens, if this is a session in which there may be something to hear. Returns when the stream is open, or
    /// soon after: what a server says early would otherwise be lost, but not every server opens it before it speaks.
    pub(super) async fn begin(&mut self, route: &Arc<Route>) {
        if self.0.is_none() && route.session.listens() {
            let (opened, open) = oneshot::channel();
            self.0 = Some(tokio::spawn(listen(Arc::clone(route), opened)));
            let _ = tokio::time::timeout(OPENING, open).await;
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Some(task) = &self.0 {
            task.abort();
        }
    }
}

async fn listen(route: Arc<Route>, opened: oneshot::Sender<()>) {
    let mut opened = Some(opened);
    let mut last: Option<String> = None;
    let mut pause = FIRST_PAUSE;
    let mut failures = 0;
    loop {
        let epoch = route.session.epoch();
        let mut wanted = None;
        let answer = route.get(last.as_deref()).await;
        if let Some(opened) = opened.take() {
            let _ = opened.send(());
        }
        match answer {
            Ok(response) if response.status().is_success() && shape(&response) == Shape::Events => {
                failures = 0;
                let mut events = Events::new(response, route.max_message);
                while let Ok(Some(event)) = events.next().await {
                    let Event { id, retry, data, .. } = event;
                    last = id.or(last);
                    wanted = retry.or(wanted);
                    if let Some(message) = data.and_then(|data| serde_json::from_str(&data).ok()) {
                        pause = FIRST_PAUSE;
                        route.incoming.message(message);
                    }
                }
            }
            Ok(response) => match response.status() {
                StatusCode::NOT_FOUND | StatusCode::BAD_REQUEST if route.session.has_id() => {
                    last = None;
                    if route.renew(epoch).await.is_err() {
                        return;
                    }
                }
                status if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS => {}
                // It has no such stream, which is its right, or wants something that requests will find out.
                _ => return,
            },
            Err(error) if error.is_connect() => failures += 1,
            Err(_) => {}
        }
        if failures == GIVEN_UP {
            let why = format!("`{}` can't be reached any more", route.shown_url());
            return route.lose(Loss::Unreachable(why));
        }
        tokio::time::sleep(wanted.unwrap_or(pause)).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}
