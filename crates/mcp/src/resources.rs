//! The resources of a server: lists, templates, texts, news of changes (MCP 2025-11-25 and 2026-07-28, Resources).
//!
//! Invariant: what can't be read of an entry leaves that entry out, never the list; a list ends.

use std::sync::Arc;

use lectern_core::{Asker, Blob, Part, ResourceRef, ServerId};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

use crate::cache::Key;
use crate::exchange::{Exchange, Waiter, sentence};
use crate::peer::PeerError;
use crate::server::{Live, Server};
use crate::subscription::Subscription;

/// Pages of one list; more are a loop.
const MOST_PAGES: usize = 200;
/// Entries of one list.
const MOST_ENTRIES: usize = 10_000;
/// News that may wait for a slow listener.
const NEWS_BACKLOG: usize = 256;
/// "Method not found".
const NO_METHOD: i64 = -32601;

pub(crate) const LIST: &str = "resources/list";
pub(crate) const TEMPLATES: &str = "resources/templates/list";
pub(crate) const READ: &str = "resources/read";

/// A resource as it is listed; untrusted text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Resource {
    /// Its address.
    pub uri: String,
    /// Its name.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// What it is.
    pub description: Option<String>,
    /// MIME type.
    pub mime: Option<String>,
    /// Bytes.
    pub size: Option<u64>,
}

/// A family of resources.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ResourceTemplate {
    /// Their addresses as a URI template (RFC 6570).
    pub uri_template: String,
    /// Its name.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// What they are.
    pub description: Option<String>,
    /// MIME type of all of them.
    pub mime: Option<String>,
}

/// A piece of a resource that was read.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ResourceContent {
    /// Its address; a folder's pieces have their own.
    pub uri: String,
    /// MIME type.
    pub mime: Option<String>,
    /// Its text, unless it is binary.
    pub text: Option<String>,
    /// Its bytes in standard base64, when it is binary.
    pub base64: Option<String>,
}

impl ResourceContent {
    /// As a part of a message.
    pub fn part(self) -> Part {
        match (self.mime, self.base64) {
            (Some(mime), Some(base64)) if mime.starts_with("image/") => Part::Image(Blob { mime, base64 }),
            (mime, Some(base64)) => {
                let kind = mime.clone().unwrap_or_else(|| "binary data".into());
                let text = Some(format!("[{kind}, {} bytes, not shown]", base64.len() / 4 * 3));
                Part::Resource(ResourceRef { uri: self.uri, name: None, mime, text })
            }
            (mime, None) => Part::Resource(ResourceRef { uri: self.uri, name: None, mime, text: self.text }),
        }
    }
}

/// Why a server gave no resource, prompt or completion.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AccessError {
    /// There is no such server.
    #[error(transparent)]
    Unknown(#[from] crate::host::UnknownServer),
    /// The server has no such thing, or does not give it; a sentence that names the server.
    #[error("{0}")]
    Failed(String),
}

/// What a server says of its resources and prompts without being asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerNews {
    /// It has other resources now.
    ResourcesChanged(ServerId),
    /// It has other prompts now.
    PromptsChanged(ServerId),
    /// A resource has another content now.
    ResourceUpdated(ServerId, String),
}

/// Where servers' news go. Clones are the same place.
#[derive(Clone, Debug)]
pub struct NewsDesk(broadcast::Sender<ServerNews>);

impl Default for NewsDesk {
    fn default() -> Self {
        Self(broadcast::channel(NEWS_BACKLOG).0)
    }
}

impl NewsDesk {
    pub(crate) fn tell(&self, news: ServerNews) {
        // Nobody may be listening.
        let _ = self.0.send(news);
    }

    pub(crate) fn subscribe(&self) -> broadcast::Receiver<ServerNews> {
        self.0.subscribe()
    }
}

/// What a server is asked for outside of a tool's call.
pub(crate) struct Access {
    server: Arc<Server>,
    live: Live,
}

impl Access {
    /// Waits for the server.
    pub(crate) async fn open(server: Arc<Server>) -> Result<Self, AccessError> {
        let live = server.ready().await.map_err(AccessError::Failed)?;
        Ok(Self { server, live })
    }

    pub(crate) async fn resources(&self) -> Result<Vec<Resource>, AccessError> {
        Ok(self.list(LIST, "resources", "/resources").await?.iter().filter_map(resource).collect())
    }

    pub(crate) async fn templates(&self) -> Result<Vec<ResourceTemplate>, AccessError> {
        let listed = self.list(TEMPLATES, "resourceTemplates", "/resources").await?;
        Ok(listed.iter().filter_map(template).collect())
    }

    /// Reads a resource; its pieces are one for a file, several for a folder.
    pub(crate) async fn read(
        &self,
        uri: &str,
        ask: Arc<dyn Asker>,
    ) -> Result<Vec<ResourceContent>, AccessError> {
        let key = Key { method: READ, about: uri.to_owned() };
        let cache = &self.live.peer.desk().cache;
        let result = match cache.get(&key) {
            Some(kept) => kept,
            None => {
                let result = self.exchange(READ, json!({"uri": uri}), ask).await?;
                cache.keep(key, &result);
                Arc::new(result)
            }
        };
        let pieces = result.get("contents").and_then(Value::as_array);
        let none =
            || AccessError::Failed(format!("the server `{}` gave nothing for {uri}", self.server.id()));
        let pieces: Vec<ResourceContent> = pieces.ok_or_else(none)?.iter().filter_map(content).collect();
        if pieces.is_empty() { Err(none()) } else { Ok(pieces) }
    }

    /// One request with all that a server may want in the meantime.
    pub(crate) async fn exchange(
        &self,
        method: &str,
        params: Value,
        ask: Arc<dyn Asker>,
    ) -> Result<Value, AccessError> {
        let (news, _) = tokio::sync::mpsc::unbounded_channel();
        let cancel = CancellationToken::new();
        let waiter = Waiter { ask, cancel, news, limits: self.server.limits(None) };
        match Exchange::new(&self.server, &self.live, waiter).run(method, params).await {
            Ok(result) => Ok(result),
            Err(stopped) => {
                let why = sentence(&self.server, stopped).await.unwrap_or_else(|| "stopped".into());
                let why = self.server.mask().text(&why);
                Err(AccessError::Failed(format!("`{}`, {method}: {why}", self.server.id())))
            }
        }
    }

    /// A whole list, page by page. A server that declared no such thing has none.
    pub(crate) async fn list(
        &self,
        method: &'static str,
        field: &str,
        capability: &str,
    ) -> Result<Vec<Value>, AccessError> {
        if !self.live.session.can(capability) {
            return Ok(Vec::new());
        }
        let limit = self.server.limits(None).silence;
        match tokio::time::timeout(limit, whole_list(&self.live, method, field)).await {
            Ok(Ok(all)) => Ok(all),
            Ok(Err(ListFault::Peer(error))) => Err(self.failed(method, &error)),
            Ok(Err(fault @ ListFault::Endless)) => {
                Err(AccessError::Failed(format!("`{}`, {method}: {fault}", self.server.id())))
            }
            Err(_) => {
                let seconds = limit.as_secs_f32();
                let id = self.server.id();
                Err(AccessError::Failed(format!("`{id}`, {method}: no answer within {seconds} seconds")))
            }
        }
    }

    /// Asks for news of one resource.
    pub(crate) async fn subscribe(&self, uri: &str) -> Result<Subscription, AccessError> {
        if !self.live.session.can("/resources/subscribe") {
            return Err(AccessError::Failed(format!(
                "the server `{}` tells no news of its resources",
                self.server.id()
            )));
        }
        let begun = Subscription::begin(Arc::clone(&self.server), self.live.clone(), uri.to_owned()).await;
        begun.map_err(|error| self.failed("resources/subscribe", &error))
    }

    /// Whether the server makes suggestions; before 2025-03-26 nobody declared it.
    pub(crate) fn can_complete(&self) -> bool {
        self.live.session.can("/completions") || self.live.session.protocol == "2024-11-05"
    }

    fn failed(&self, method: &str, error: &PeerError) -> AccessError {
        let error = self.server.mask().text(&error.to_string());
        AccessError::Failed(format!("`{}`, {method}: {error}", self.server.id()))
    }
}

/// Why there is no list.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ListFault {
    #[error(transparent)]
    Peer(#[from] PeerError),
    #[error("the list has no end")]
    Endless,
}

/// A whole list, page by page, or as the server let it be kept. It has no limit of time of its own.
pub(crate) async fn whole_list(
    live: &Live,
    method: &'static str,
    field: &str,
) -> Result<Vec<Value>, ListFault> {
    let key = Key { method, about: String::new() };
    let cache = &live.peer.desk().cache;
    if let Some(Value::Array(kept)) = cache.get(&key).as_deref().map(|kept| kept["all"].clone()) {
        return Ok(kept);
    }
    let (all, time) = pages(live, method, field).await?;
    if let Some(time) = time {
        cache.keep(key, &json!({"all": all, "ttlMs": time}));
    }
    Ok(all)
}

/// All pages, and for how many milliseconds they hold.
async fn pages(live: &Live, method: &str, field: &str) -> Result<(Vec<Value>, Option<u64>), ListFault> {
    let mut all = Vec::new();
    let mut time: Option<u64> = None;
    let mut params = json!({});
    for page in 0..MOST_PAGES {
        let mut answer = match live.peer.ask(method, live.session.params(params)).await {
            Ok(answer) => answer,
            // Not every server that has resources knows of templates.
            Err(PeerError::Rpc { code: NO_METHOD, .. }) => return Ok((all, None)),
            Err(error) => return Err(error.into()),
        };
        let here = crate::cache::time_to_live(&answer).and_then(|time| u64::try_from(time.as_millis()).ok());
        time = if page == 0 { here } else { time.zip(here).map(|(a, b)| a.min(b)) };
        if let Some(Value::Array(items)) = answer.get_mut(field).map(Value::take) {
            all.extend(items);
        }
        match answer.get_mut("nextCursor").map(Value::take) {
            Some(cursor @ Value::String(_)) if all.len() < MOST_ENTRIES => params = json!({"cursor": cursor}),
            _ => {
                all.truncate(MOST_ENTRIES);
                return Ok((all, time));
            }
        }
    }
    Err(ListFault::Endless)
}

pub(crate) fn text(value: &Value, field: &str) -> Option<String> {
    value.get(field).and_then(Value::as_str).map(str::to_owned)
}

fn resource(value: &Value) -> Option<Resource> {
    let uri = text(value, "uri")?;
    Some(Resource {
        name: text(value, "name").unwrap_or_else(|| uri.clone()),
        title: text(value, "title"),
        description: text(value, "description"),
        mime: text(value, "mimeType"),
        size: value.get("size").and_then(Value::as_u64),
        uri,
    })
}

fn template(value: &Value) -> Option<ResourceTemplate> {
    let uri_template = text(value, "uriTemplate")?;
    Some(ResourceTemplate {
        name: text(value, "name").unwrap_or_else(|| uri_template.clone()),
        title: text(value, "title"),
        description: text(value, "description"),
        mime: text(value, "mimeType"),
        uri_template,
    })
}

fn content(value: &Value) -> Option<ResourceContent> {
    let (said, base64) = (text(value, "text"), text(value, "blob"));
    if said.is_none() && base64.is_none() {
        return None;
    }
    Some(ResourceContent { uri: text(value, "uri")?, mime: text(value, "mimeType"), text: said, base64 })
}
