//! What servers may ask of a client, read into questions, and the answers as the protocol wants them.
//!
//! Invariant: pure. Only what the capabilities declare is more than a refusal; what can't be shown to a person is
//! refused and never reaches one.

use lectern_core::{Question, QuestionAnswer, Reply, ServerId, form};
use serde_json::{Value, json};

use crate::config::{Answers, HostOptions};
use crate::sampling;

/// Characters of a server's message to the user.
const MOST_MESSAGE: usize = 4_000;
/// Bytes of an address.
const MOST_URL: usize = 8_192;
/// Bytes of a form's schema.
const MOST_SCHEMA: usize = 128 << 10;

/// What a request wants.
#[derive(Debug)]
pub(crate) enum Wanted {
    /// To know that somebody is there.
    Nothing,
    /// The folders.
    Roots,
    /// A person's answer.
    Answer(Question),
}

/// Why a request gets no result.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Refusal {
    pub(crate) code: i64,
    pub(crate) message: String,
}

impl Refusal {
    fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    pub(crate) fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(-32602, message)
    }

    pub(crate) fn invalid_request(message: &str) -> Self {
        Self::new(-32600, message)
    }

    pub(crate) fn busy(message: &str) -> Self {
        Self::new(-32603, message)
    }

    /// The error reply.
    pub(crate) fn reply(&self, id: &Value) -> Value {
        json!({"jsonrpc": "2.0", "id": id, "error": {"code": self.code, "message": self.message}})
    }
}

/// What the client can do, as it is declared to servers. `modern`: in the era of 2026-07-28.
pub(crate) fn capabilities(options: &HostOptions, modern: bool) -> Value {
    let mut declared = serde_json::Map::new();
    if !options.roots.now().is_empty() {
        let roots = if modern { json!({}) } else { json!({"listChanged": true}) };
        declared.insert("roots".into(), roots);
    }
    if options.answers.sampling {
        declared.insert("sampling".into(), json!({"tools": {}}));
    }
    if options.answers.elicitation {
        declared.insert("elicitation".into(), json!({"form": {}, "url": {}}));
    }
    if modern {
        declared.insert("extensions".into(), json!({"io.modelcontextprotocol/tasks": {}}));
    }
    Value::Object(declared)
}

/// Reads a request: of a server (`jsonrpc`, `id`, …) or within a result (`method` and `params` alone).
pub(crate) fn read(server: &ServerId, answers: Answers, request: &Value) -> Result<Wanted, Refusal> {
    let method = request.get("method").and_then(Value::as_str).unwrap_or_default();
    let params = request.get("params").unwrap_or(&Value::Null);
    match method {
        "ping" => Ok(Wanted::Nothing),
        "roots/list" => Ok(Wanted::Roots),
        "elicitation/create" if answers.elicitation => elicitation(params).map(Wanted::Answer),
        "sampling/createMessage" if answers.sampling => {
            let request = Box::new(sampling::read(server, params)?);
            Ok(Wanted::Answer(Question::Sampling { request, model: None }))
        }
        "elicitation/create" | "sampling/createMessage" => {
            Err(Refusal::new(-32601, format!("{method} is not supported: the client did not declare it")))
        }
        _ => Err(Refusal::new(-32601, "Method not found")),
    }
}

/// The result that a server gets for a reply, or why it gets none.
pub(crate) fn response(question: &Question, reply: Reply) -> Result<Value, Refusal> {
    match (question, reply) {
        (_, Reply::Failed(why)) => Err(Refusal::new(-32603, format!("the model did not answer: {why}"))),
        (Question::Sampling { .. }, Reply::Answer(_)) => {
            // MCP 2025-11-25, Sampling, "Error Handling".
            Err(Refusal::new(-1, "User rejected sampling request"))
        }
        (_, Reply::Sample(sample)) => Ok(sampling::result(&sample)),
        (question, Reply::Answer(answer)) => {
            // Once more: what does not fit is not sent, whoever answered.
            if !question.faults(&answer).is_empty() {
                return Ok(json!({"action": "cancel"}));
            }
            Ok(match (question, answer) {
                (Question::Form { fields, .. }, QuestionAnswer::Accepted { content }) => {
                    json!({"action": "accept", "content": form::only_asked(fields, content.unwrap_or_default())})
                }
                (_, QuestionAnswer::Accepted { .. }) => json!({"action": "accept"}),
                (_, QuestionAnswer::Declined) => json!({"action": "decline"}),
                (_, QuestionAnswer::Cancelled) => json!({"action": "cancel"}),
            })
        }
    }
}

/// A form or an address (MCP 2025-11-25, Elicitation). Without a mode it is a form.
pub(crate) fn elicitation(params: &Value) -> Result<Question, Refusal> {
    let text = |name: &str| params.get(name).and_then(Value::as_str);
    let message = shortened(text("message").unwrap_or_default(), MOST_MESSAGE);
    match text("mode").unwrap_or("form") {
        "form" => {
            let schema = params.get("requestedSchema").cloned().unwrap_or(Value::Null);
            if schema.to_string().len() > MOST_SCHEMA {
                return Err(Refusal::invalid_params("the requested schema is too long"));
            }
            let fields = form::read(&schema).map_err(|fault| Refusal::invalid_params(fault.to_string()))?;
            Ok(Question::Form { message, fields, schema })
        }
        "url" => {
            let url = text("url").filter(|url| can_be_visited(url));
            let url = url.ok_or_else(|| Refusal::invalid_params("the address is none of http or https"))?;
            let elicitation_id = text("elicitationId").filter(|id| !id.is_empty()).map(str::to_owned);
            Ok(Question::Url { message, url: url.to_owned(), elicitation_id })
        }
        mode => Err(Refusal::invalid_params(format!("elicitation has no mode `{}`", shortened(mode, 40)))),
    }
}

/// Only what a browser opens as a page: never `javascript:`, `file:` or `data:`, nothing hidden by blanks.
fn can_be_visited(url: &str) -> bool {
    let Some((scheme, rest)) = url.split_once("://") else { return false };
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    ["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known))
        && !host.is_empty()
        && url.len() <= MOST_URL
        && !url.chars().any(|c| c.is_whitespace() || c.is_control() || c == '\\')
}

/// So many characters of a text.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lectern_core::JsonObject;

    const BOTH: Answers = Answers { elicitation: true, sampling: true };

    fn wanted(method: &str, params: Value) -> Result<Wanted, i64> {
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        read(&ServerId::from("s"), BOTH, &request).map_err(|refusal| refusal.code)
    }

    #[test]
    fn only_what_is_declared_is_answered() {
        let request =
            json!({"method": "elicitation/create", "params": {"mode": "url", "url": "https://a.b"}});
        let refused = read(&ServerId::from("s"), Answers::default(), &request).unwrap_err();
        assert_eq!(refused.code, -32601);
        assert_eq!(wanted("tasks/list", json!({})).unwrap_err(), -32601);
        let options = HostOptions { answers: BOTH, ..HostOptions::default() };
        assert_eq!(
            capabilities(&options, false),
            json!({"sampling": {"tools": {}}, "elicitation": {"form": {}, "url": {}}})
        );
        assert_eq!(capabilities(&HostOptions::default(), false), json!({}));
    }

    #[test]
    fn addresses_that_are_no_pages_are_refused() {
        for bad in [
            "javascript:alert(1)",
            "file:///etc/passwd",
            "data:text/html,x",
            "https://",
            "https:///x",
            "x",
            "https://a b",
            "https://a\nb",
            "https://good.example\\@evil.example",
        ] {
            assert_eq!(
                wanted("elicitation/create", json!({"mode": "url", "url": bad})).unwrap_err(),
                -32602,
                "{bad}"
            );
        }
        let good = wanted(
            "elicitation/create",
            json!({"mode": "url", "url": "HTTPS://a.b/c?d#e", "elicitationId": "1"}),
        );
        assert!(matches!(good, Ok(Wanted::Answer(Question::Url { url, .. })) if url == "HTTPS://a.b/c?d#e"));
    }

    #[test]
    fn an_answer_that_does_not_fit_is_never_sent() {
        let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
        let Ok(Wanted::Answer(question)) =
            wanted("elicitation/create", json!({"message": "n?", "requestedSchema": schema}))
        else {
            panic!("a form")
        };
        let answer = |value: Value| {
            let content: JsonObject = serde_json::from_value(value).unwrap();
            Reply::Answer(QuestionAnswer::Accepted { content: Some(content) })
        };
        assert_eq!(response(&question, answer(json!({"n": "x"}))).unwrap(), json!({"action": "cancel"}));
        assert_eq!(
            response(&question, answer(json!({"n": 1, "m": 2}))).unwrap(),
            json!({"action": "accept", "content": {"n": 1}})
        );
        assert_eq!(
            response(&question, Reply::Answer(QuestionAnswer::Declined)).unwrap(),
            json!({"action": "decline"})
        );
    }
}
