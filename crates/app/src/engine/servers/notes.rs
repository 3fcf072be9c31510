//! The text of a note, from the server that serves its vault.

use std::sync::Arc;

use lectern_core::{
    CallContext, ConversationId, Nobody, ServerId, ToolCall, ToolCallId, ToolOutcome, ToolProvider,
    ToolResult, TurnId,
};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::engine::{Engine, unknown_server};
use crate::view::{NoteView, Problem};

/// The name of the notes server's tool that reads a note.
const READ_NOTE: &str = "read_note";

impl Engine {
    /// The text of a note, from the server that serves its vault.
    pub async fn read_note(&self, server: &ServerId, path: &str) -> Result<NoteView, Problem> {
        let vault = self.state().vaults.iter().find(|vault| vault.server == *server).cloned();
        let vault = vault.ok_or_else(|| unknown_server(server))?;
        let mut text = String::new();
        let mut offset = 0;
        loop {
            let result = self.call_read_note(server, path, offset).await?;
            let page = Page::of(&result);
            if !text.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
            text.push_str(&page.text);
            match page.next {
                Some(next) if next > offset => offset = next,
                Some(_) | None => break,
            }
        }
        Ok(NoteView { vault: vault.path.display().to_string(), path: path.to_owned(), text })
    }

    async fn call_read_note(
        &self,
        server: &ServerId,
        path: &str,
        offset: u64,
    ) -> Result<ToolResult, Problem> {
        let tools = self.0.host.tools();
        let spec = tools.iter().find(|spec| spec.server == *server && spec.original_name == READ_NOTE);
        let spec =
            spec.ok_or_else(|| Problem::new("no_note", format!("the server `{server}` reads no notes now")))?;
        let mut arguments = serde_json::Map::new();
        arguments.insert("path".to_owned(), Value::from(path));
        if offset > 0 {
            arguments.insert("offset".to_owned(), Value::from(offset));
        }
        let call = ToolCall {
            id: ToolCallId::fresh(),
            tool: spec.name.clone(),
            arguments,
            malformed: None,
            provider_data: None,
        };
        let context = CallContext {
            conversation: ConversationId::fresh(),
            turn: TurnId::fresh(),
            cancel: CancellationToken::new(),
            news: tokio::sync::mpsc::unbounded_channel().0,
            ask: Arc::new(Nobody),
        };
        let result = self.0.host.call(call, context).await;
        match result.outcome {
            ToolOutcome::Succeeded => Ok(result),
            ToolOutcome::Failed | ToolOutcome::Denied | ToolOutcome::Cancelled => {
                Err(Problem::new("no_note", result.text()))
            }
        }
    }
}

/// A piece of a note, and the line where the next one begins.
struct Page {
    text: String,
    next: Option<u64>,
}

impl Page {
    fn of(result: &ToolResult) -> Self {
        let field = |name: &str| result.structured.as_ref().and_then(|value| value.get(name));
        let text = field("text").and_then(Value::as_str);
        Self {
            text: text.map_or_else(|| result.text(), str::to_owned),
            next: field("nextOffset").and_then(Value::as_u64),
        }
    }
}
