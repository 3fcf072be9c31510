//! What the host gives beside tools: resources, prompts, completions.
//!
//! Invariant: every method waits for one server only, and ends with that server's limits.

use std::collections::BTreeMap;
use std::sync::Arc;

use lectern_core::{Asker, ServerId};
use tokio::sync::broadcast;

use crate::host::Host;
use crate::prompts::{Completion, CompletionOf, FilledPrompt, Prompt};
use crate::resources::{Access, AccessError, Resource, ResourceContent, ResourceTemplate, ServerNews};
use crate::subscription::Subscription;

impl Host {
    /// The resources of a server.
    pub async fn resources(&self, id: &ServerId) -> Result<Vec<Resource>, AccessError> {
        self.access(id).await?.resources().await
    }

    /// The resource templates of a server.
    pub async fn resource_templates(&self, id: &ServerId) -> Result<Vec<ResourceTemplate>, AccessError> {
        self.access(id).await?.templates().await
    }

    /// Reads a resource. What the server asks in the meantime goes to `ask`.
    pub async fn read_resource(
        &self,
        id: &ServerId,
        uri: &str,
        ask: Arc<dyn Asker>,
    ) -> Result<Vec<ResourceContent>, AccessError> {
        self.access(id).await?.read(uri, ask).await
    }

    /// Asks for news of a resource; they come with [`Host::server_news`] until the subscription is dropped.
    pub async fn subscribe_resource(&self, id: &ServerId, uri: &str) -> Result<Subscription, AccessError> {
        self.access(id).await?.subscribe(uri).await
    }

    /// What servers say of their resources and prompts from now on.
    pub fn server_news(&self) -> broadcast::Receiver<ServerNews> {
        self.options.news.subscribe()
    }

    /// The prompts of a server.
    pub async fn prompts(&self, id: &ServerId) -> Result<Vec<Prompt>, AccessError> {
        self.access(id).await?.prompts().await
    }

    /// Fills a prompt in. What the server asks in the meantime goes to `ask`.
    pub async fn get_prompt(
        &self,
        id: &ServerId,
        name: &str,
        arguments: &BTreeMap<String, String>,
        ask: Arc<dyn Asker>,
    ) -> Result<FilledPrompt, AccessError> {
        self.access(id).await?.prompt(name, arguments, ask).await
    }

    /// Suggestions for an argument while it is being typed; `known` are the other arguments so far.
    pub async fn complete(
        &self,
        id: &ServerId,
        of: &CompletionOf,
        argument: &str,
        typed: &str,
        known: &BTreeMap<String, String>,
    ) -> Result<Completion, AccessError> {
        self.access(id).await?.complete(of, argument, typed, known).await
    }

    async fn access(&self, id: &ServerId) -> Result<Access, AccessError> {
        Access::open(self.server(id)?).await
    }
}
