//! The MCP server: requests of both protocol eras to calls on the notes.
//! Invariant: thin. Nothing here touches a file or the index but through `Notes`, and nothing writes to stdout but
//! the transport.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CustomRequest, CustomResult, DiscoverResult,
    ErrorCode, Implementation, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, ProgressNotificationParam, ProtocolVersion, ReadResourceRequestParams,
    ReadResourceResponse, ResourceUpdatedNotificationParam, ServerCapabilities, ServerConfig,
    SubscribeRequestParams, SubscriptionFilter, Tool, UnsubscribeRequestParams,
};
use rmcp::service::{Peer, RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use tokio::sync::broadcast::error::RecvError;

use crate::calls::{Call, failed};
use crate::indexer::Changes;
use crate::notes::Notes;
use crate::path::NotePath;
use crate::resources;
use crate::tools::ToolKind;

/// A search waits so long for the first indexing, then takes what is there.
const PATIENCE: Duration = Duration::from_secs(3);
/// Who asked for progress sees that something happens, and may wait longer.
const PATIENCE_WITH_PROGRESS: Duration = Duration::from_secs(10);
/// The tools never change while the server runs.
const TOOLS_FRESH_MS: u64 = 3_600_000;

const INSTRUCTIONS: &str = "A folder of Markdown notes. To answer a question, call search_notes with the question or its \
    main words, and read_note when the passage is not enough. Quote the note and name its path. Write only when asked: \
    create_note for a new note, append_note to add to one.";

/// The server over one vault.
#[derive(Debug, Clone)]
pub struct NotesServer {
    notes: Arc<Notes>,
    // Addresses that a client of the older era subscribed to. A std mutex: nothing awaits while it is held.
    subscribed: Arc<Mutex<HashSet<String>>>,
}

impl NotesServer {
    /// A server over notes that are being indexed.
    pub fn new(notes: Notes) -> Self {
        Self { notes: Arc::new(notes), subscribed: Arc::default() }
    }

    /// Tells a client of the older era what changes, until it is gone. In the newer era it asks with
    /// `subscriptions/listen`.
    pub async fn forward_changes(self, peer: Peer<RoleServer>) {
        let mut changes = self.notes.changes();
        loop {
            let changes = match changes.recv().await {
                Ok(changes) => changes,
                Err(RecvError::Lagged(_)) => Changes { updated: Vec::new(), listing: true },
                Err(RecvError::Closed) => return,
            };
            if peer.peer_info().is_none() {
                continue;
            }
            let wanted =
                |uri: &String| self.subscribed.lock().unwrap_or_else(PoisonError::into_inner).contains(uri);
            for uri in changes.updated.iter().map(NotePath::uri).filter(wanted) {
                let _ = peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri)).await;
            }
            if changes.listing && peer.notify_resource_list_changed().await.is_err() {
                return;
            }
        }
    }

    /// Waits until all notes are indexed, telling how far it is; not for ever.
    async fn wait_for_index(&self, context: &RequestContext<RoleServer>) {
        let mut progress = self.notes.progress();
        let token = context.meta.get_progress_token();
        let patience = if token.is_some() { PATIENCE_WITH_PROGRESS } else { PATIENCE };
        let waiting = async {
            let mut told = None;
            loop {
                let now = *progress.borrow_and_update();
                if now.complete {
                    return;
                }
                if let Some(token) =
                    token.clone().filter(|_| now.total > 0 && told.is_none_or(|told| told < now.done))
                {
                    told = Some(now.done);
                    let report = ProgressNotificationParam::new(token, now.done as f64)
                        .with_total(now.total as f64)
                        .with_message(format!("Indexing: {} of {} notes", now.done, now.total));
                    let _ = context.peer.notify_progress(report).await;
                }
                if progress.changed().await.is_err() {
                    return;
                }
            }
        };
        tokio::select! {
            () = waiting => {}
            () = tokio::time::sleep(patience) => {}
            () = context.ct.cancelled() => {}
        }
    }

    /// Runs something that reads files, away from the protocol's thread, until it is done or cancelled.
    async fn away<T: Send + 'static>(
        &self,
        context: &RequestContext<RoleServer>,
        work: impl FnOnce(&Notes) -> T + Send + 'static,
    ) -> Result<T, ErrorData> {
        let notes = self.notes.clone();
        let working = tokio::task::spawn_blocking(move || work(&notes));
        tokio::select! {
            done = working => done.map_err(|error| ErrorData::internal_error(error.to_string(), None)),
            () = context.ct.cancelled() => Err(ErrorData::internal_error("cancelled", None)),
        }
    }
}

impl ServerHandler for NotesServer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .enable_resources_list_changed()
            .enable_resources_subscribe()
            .build();
        let about =
            Implementation::new("lectern-vault", env!("CARGO_PKG_VERSION")).with_title("Lectern notes");
        ServerConfig::new(capabilities).with_server_info(about).with_instructions(INSTRUCTIONS)
    }

    async fn discover(&self, _: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        let versions = self.supported_protocol_versions().into_owned();
        Ok(DiscoverResult::from_server_info(versions, self.get_info()).with_ttl_ms(TOOLS_FRESH_MS))
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = ToolKind::ALL.into_iter().map(ToolKind::describe).collect();
        let result = ListToolsResult::with_all_items(tools);
        // The older revisions know no hints for caches; rmcp adds the missing ones for the newer.
        let modern =
            context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28);
        Ok(if modern {
            result.with_ttl_ms(TOOLS_FRESH_MS).with_cache_scope(CacheScope::Private)
        } else {
            result
        })
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        ToolKind::named(name).map(ToolKind::describe)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let unknown = || ErrorData::invalid_params(format!("unknown tool: {}", request.name), None);
        let tool = ToolKind::named(&request.name).ok_or_else(unknown)?;
        let call = match Call::parse(tool, request.arguments.unwrap_or_default()) {
            Ok(call) => call,
            Err(result) => return Ok(result.into()),
        };
        if call.needs_index() {
            self.wait_for_index(&context).await;
        }
        let result = self.away(&context, move |notes| call.run(notes)).await;
        Ok(result.unwrap_or_else(|error| failed(&error.message)).into())
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let cursor = request.and_then(|request| request.cursor);
        self.away(&context, move |notes| resources::list(notes, cursor.as_deref())).await?
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(resources::templates())
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        self.away(&context, move |notes| resources::read(notes, &request.uri)).await?.map(Into::into)
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let path = resources::path(&request.uri)?;
        self.subscribed.lock().unwrap_or_else(PoisonError::into_inner).insert(path.uri());
        Ok(())
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let path = resources::path(&request.uri)?;
        self.subscribed.lock().unwrap_or_else(PoisonError::into_inner).remove(&path.uri());
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = self.notes.changes();
        loop {
            let changes = tokio::select! {
                () = context.cancelled() => return Ok(()),
                changes = changes.recv() => match changes {
                    Ok(changes) => changes,
                    Err(RecvError::Lagged(_)) => Changes { updated: Vec::new(), listing: true },
                    Err(RecvError::Closed) => return Ok(()),
                },
            };
            // The sink refuses what was not subscribed to; that is no failure.
            for path in &changes.updated {
                let _ = context.sink().notify_resource_updated(path.uri()).await;
            }
            if changes.listing {
                let _ = context.sink().notify_resource_list_changed().await;
            }
        }
    }

    /// A request that rmcp could not read as the method it names has wrong parameters; the others are unknown.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        const KNOWN: [&str; 6] = [
            "tools/call",
            "tools/list",
            "resources/list",
            "resources/read",
            "resources/subscribe",
            "initialize",
        ];
        if KNOWN.contains(&request.method.as_str()) {
            return Err(ErrorData::invalid_params(
                format!("the parameters of {} are wrong", request.method),
                None,
            ));
        }
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, request.method, None))
    }
}
