//! The list of models that a provider offers.
//!
//! Shapes: OpenAI's `{"data": [{"id"}]}` (with `max_model_len` at vLLM, `meta.n_ctx_train` at llama-server,
//! `loaded_context_length` at LM Studio), the developer API's `{"models": [{"name", "inputTokenLimit"}]}`, Vertex AI's
//! `{"publisherModels": [{"name"}]}`, a bare list.
//!
//! Invariant: an entry that can't be read costs itself. What says of itself that it does not chat is left out.

use reqwest::header::ACCEPT;
use serde::Serialize;
use serde_json::Value;
use tokio::time::timeout;
use url::Url;

use crate::exchange::{Line, error_answer, no_token, not_sent};
use crate::fault::{Fault, FaultKind, Stage};
use crate::reply::no_answer;
use crate::transport::cause;

/// Bytes of a list at most.
const LONGEST: usize = 8 << 20;
/// Pages of a list at most.
const MOST_PAGES: usize = 20;

/// A model as its provider lists it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Listed {
    /// The name to ask for.
    pub id: String,
    /// A name for people, when the provider has one.
    pub name: Option<String>,
    /// Tokens that fit into its context, when the provider says it.
    pub context_length: Option<u32>,
}

/// Fetches a list.
pub(crate) async fn fetch(line: &Line, url: &Url) -> Result<Vec<Listed>, Fault> {
    let limit = line.limits.first_byte.min(std::time::Duration::from_secs(30));
    let late = || Fault::of(FaultKind::TimedOut { stage: Stage::Waiting, seconds: limit.as_secs() });
    timeout(limit, ask(line, url)).await.unwrap_or_else(|_| Err(late()))
}

/// All pages of it.
async fn ask(line: &Line, url: &Url) -> Result<Vec<Listed>, Fault> {
    let mut all: Vec<Listed> = Vec::new();
    let mut at = url.clone();
    for _ in 0..MOST_PAGES {
        let value = page(line, &at).await?;
        let listed = read(&value).ok_or_else(|| no_answer(value.to_string().as_bytes()))?;
        all.extend(
            listed.into_iter().filter(|one| all.iter().all(|known| known.id != one.id)).collect::<Vec<_>>(),
        );
        let next = value.get("nextPageToken").and_then(Value::as_str).filter(|token| !token.is_empty());
        let Some(token) = next else { break };
        at = url.clone();
        at.query_pairs_mut().append_pair("pageToken", token);
    }
    Ok(all)
}

async fn page(line: &Line, url: &Url) -> Result<Value, Fault> {
    let mut refused = None;
    for _ in 0..2 {
        let proof = line.credentials.proof(line.key, refused.take()).await.map_err(no_token)?;
        let request = line.client.get(url.clone()).headers(proof.headers).header(ACCEPT, "application/json");
        let mut response = request.send().await.map_err(|error| not_sent(&error))?;
        match response.status().as_u16() {
            200..=299 => {
                let mut body = Vec::new();
                let broken = |why| Fault::of(FaultKind::Broken { why });
                while let Some(chunk) = response.chunk().await.map_err(|error| broken(cause(&error)))? {
                    body.extend_from_slice(&chunk);
                    if body.len() > LONGEST {
                        return Err(broken("the list is longer than it may be".to_owned()));
                    }
                }
                return serde_json::from_slice(&body).map_err(|_| no_answer(&body));
            }
            401 if line.credentials.can_renew() && proof.token.is_some() => refused = proof.token,
            _ => return Err(line.judged(error_answer(response).await)),
        }
    }
    Err(Fault::of(FaultKind::SignedOut))
}

/// Reads any of the shapes.
pub(crate) fn read(value: &Value) -> Option<Vec<Listed>> {
    let fields = ["data", "models", "publisherModels"];
    let list = fields.iter().find_map(|name| value.get(name)).unwrap_or(value);
    // Go writes an empty list as null.
    let empty = Vec::new();
    let items = if list.is_null() { &empty } else { list.as_array()? };
    Some(items.iter().filter(|item| chats(item)).filter_map(listed).collect())
}

/// Whether a model may be asked for replies. Google lists those for embeddings, pictures and films beside them.
fn chats(item: &Value) -> bool {
    let methods = item.get("supportedGenerationMethods").and_then(Value::as_array);
    let generates =
        |method: &Value| matches!(method.as_str(), Some("generateContent" | "streamGenerateContent"));
    if let Some(methods) = methods {
        return methods.iter().any(generates);
    }
    // Mistral; LM Studio.
    let refuses = item.pointer("/capabilities/completion_chat") == Some(&Value::Bool(false));
    let embeds = item.get("type").and_then(Value::as_str).is_some_and(|kind| kind == "embeddings");
    // Vertex AI says nothing but the name.
    let google = item
        .get("name")
        .and_then(Value::as_str)
        .and_then(|name| name.split_once("publishers/google/models/"));
    let other = google.is_some_and(|(_, id)| {
        [
            "embedding",
            "imagen",
            "veo-",
            "lyria",
            "chirp",
            "imagegeneration",
            "multimodalembedding",
            "textembedding",
        ]
        .iter()
        .any(|part| id.contains(part))
    });
    !(refuses || embeds || other)
}

fn listed(item: &Value) -> Option<Listed> {
    let text = |name: &str| item.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let path = item.as_str().or_else(|| text("id")).or_else(|| text("name")).or_else(|| text("model"))?;
    // Google lists `models/x` and `publishers/google/models/x`.
    let id = match path.strip_prefix("models/") {
        Some(id) => id,
        None => {
            path.split_once("/models/").filter(|_| path.starts_with("publishers/")).map_or(path, |(_, id)| id)
        }
    };
    let number =
        |pointer: &str| item.pointer(pointer).and_then(Value::as_u64).and_then(|n| u32::try_from(n).ok());
    let lengths = [
        "/inputTokenLimit",
        "/max_model_len",
        "/loaded_context_length",
        "/context_length",
        "/max_context_length",
        "/meta/n_ctx_train",
    ];
    Some(Listed {
        id: id.to_owned(),
        name: text("displayName").or_else(|| text("display_name")).map(str::to_owned),
        context_length: lengths.iter().find_map(|pointer| number(pointer)),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_does_not_chat_is_left_out() {
        let list = json!({"models": [
            {"name": "models/gemini-3.5-flash", "supportedGenerationMethods": ["generateContent", "countTokens"]},
            {"name": "models/gemini-embedding-001", "supportedGenerationMethods": ["embedContent"]},
            {"name": "models/imagen-4", "supportedGenerationMethods": ["predict"]},
            {"name": "models/new", "displayName": "New"},
            {"name": "publishers/google/models/veo-3.1"},
            {"id": "mistral-embed", "capabilities": {"completion_chat": false}},
        ]});
        let ids: Vec<_> = read(&list).unwrap().into_iter().map(|one| one.id).collect();
        assert_eq!(ids, ["gemini-3.5-flash", "new"]);
    }

    #[test]
    fn every_shape_is_read() {
        let ids =
            |value: Value| read(&value).map(|all| all.into_iter().map(|one| one.id).collect::<Vec<_>>());
        assert_eq!(
            ids(json!({"data": [{"id": "a"}, {"nothing": 1}, {"id": "o/models/b"}]})).unwrap(),
            ["a", "o/models/b"]
        );
        assert_eq!(ids(json!({"models": [{"name": "models/g"}]})).unwrap(), ["g"]);
        assert_eq!(ids(json!({"publisherModels": [{"name": "publishers/google/models/g"}]})).unwrap(), ["g"]);
        assert_eq!(ids(json!(["x"])).unwrap(), ["x"]);
        assert_eq!(ids(json!({"data": null})).unwrap(), Vec::<String>::new());
        assert_eq!(ids(json!({"data": 3})), None);
        let long = read(&json!({"data": [{"id": "v", "max_model_len": 4096}]})).unwrap();
        assert_eq!(long[0].context_length, Some(4096));
    }
}
