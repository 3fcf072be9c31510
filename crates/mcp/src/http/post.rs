//! One POST: its headers, and what kind of answer came.
//!
//! Invariant: an answer is judged by its status and its type before anything of it is believed.

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Method, Response, StatusCode};
use serde_json::Value;

use super::Route;
use super::events::{cause, excerpt};
use super::session::Context;

/// How long an acknowledgement of a message that wants no answer may take.
const ACKNOWLEDGED: Duration = Duration::from_secs(30);
/// Characters of an answer that nobody expected, for people.
const SHOWN: usize = 300;

/// What came back for a POST.
pub(super) struct Answer {
    pub(super) response: Response,
    /// What it was sent with.
    pub(super) context: Context,
    /// The token that it was sent with.
    pub(super) token: Option<HeaderValue>,
}

/// How a body is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Json,
    Events,
    Other,
}

impl Route {
    /// Sends one message.
    pub(super) async fn post(&self, message: &Value) -> Result<Answer, reqwest::Error> {
        let (mut headers, token) = self.own_headers().await;
        let context = self.session.mark(Some(message), &mut headers);
        if context.modern {
            self.params.add(message, &mut headers);
        }
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let url = context.post_to.clone().unwrap_or_else(|| self.url.clone());
        let request = self.client.post(url).headers(headers).body(message.to_string());
        let response = request.send().await?;
        Ok(Answer { response, context, token })
    }

    /// Opens a stream of events; `last` is the last event that was seen of it.
    pub(super) async fn get(&self, last: Option<&str>) -> Result<Response, reqwest::Error> {
        let (mut headers, _) = self.own_headers().await;
        self.session.mark(None, &mut headers);
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        if let Some(last) = last.and_then(|last| HeaderValue::try_from(last).ok()) {
            headers.insert("last-event-id", last);
        }
        self.client.get(self.url.clone()).headers(headers).send().await
    }

    /// Sends a message that wants no answer. What goes wrong is only written down: the next request will tell.
    pub(super) async fn tell(self: &Arc<Self>, message: &Value) {
        let trouble = match tokio::time::timeout(ACKNOWLEDGED, self.post(message)).await {
            Ok(Ok(answer)) if answer.response.status().is_success() => return,
            Ok(Ok(answer)) => format!("HTTP {}", answer.response.status()),
            Ok(Err(error)) => cause(&error),
            Err(_) => "no answer".to_owned(),
        };
        let what = message.get("method").and_then(Value::as_str).unwrap_or("an answer");
        self.incoming.log(format!("[lectern] `{what}` was not taken: {trouble}"));
    }

    /// Ends the session (MCP 2025-11-25, Transports, Session Management). A server may refuse.
    pub(super) async fn say_goodbye(&self) {
        if !self.session.has_id() {
            return;
        }
        let (mut headers, _) = self.own_headers().await;
        self.session.mark(None, &mut headers);
        let _ = self.client.request(Method::DELETE, self.url.clone()).headers(headers).send().await;
    }

    /// The user's own headers, and the token, if there is one.
    async fn own_headers(&self) -> (HeaderMap, Option<HeaderValue>) {
        let mut headers = self.headers.clone();
        let token = self.auth.header().await;
        if let Some(token) = &token {
            headers.insert(AUTHORIZATION, token.clone());
        }
        (headers, token)
    }
}

/// How a body says that it is to be read.
pub(super) fn shape(response: &Response) -> Shape {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match kind.as_str() {
        "text/event-stream" => Shape::Events,
        "application/json" => Shape::Json,
        other if other.ends_with("+json") => Shape::Json,
        _ => Shape::Other,
    }
}

/// What came instead of an answer, in a sentence.
pub(super) async fn described(response: Response) -> String {
    let status = response.status();
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).map(str::to_owned);
    if status.is_redirection() {
        let place =
            response.headers().get("location").and_then(|place| place.to_str().ok()).map(str::to_owned);
        return match place {
            Some(place) => format!(
                "HTTP {status}: it sends elsewhere, to `{place}`; if you trust that address, put it into the settings"
            ),
            None => format!("HTTP {status} without a place to go"),
        };
    }
    let text = shown(&excerpt(response).await);
    let text = if text.is_empty() { String::new() } else { format!(": {text}") };
    match kind {
        Some(kind) if status.is_success() => {
            format!("it answered with `{kind}` instead of JSON or events{text}")
        }
        None if status.is_success() && status != StatusCode::ACCEPTED => {
            format!("HTTP {status} without an answer{text}")
        }
        Some(_) | None => format!("HTTP {status}{text}"),
    }
}

/// The words in a body, without the marks of a page.
fn shown(body: &str) -> String {
    let mut words = String::new();
    let mut in_mark = false;
    let is_page = body.trim_start().starts_with('<');
    for c in body.chars() {
        match c {
            '<' if is_page => in_mark = true,
            '>' if in_mark => {
                in_mark = false;
                words.push(' ');
            }
            _ if in_mark => {}
            c => words.push(if c.is_control() { ' ' } else { c }),
        }
    }
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    match words.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &words[..end]),
        None => words,
    }
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn of_a_page_only_its_words_are_shown() {
        assert_eq!(shown("<html><body>\n<h1>502 Bad\tGateway</h1></body></html>"), "502 Bad Gateway");
        assert_eq!(shown("a < b > c"), "a < b > c");
        assert_eq!(shown(&"x".repeat(400)).chars().count(), 301);
    }
}
