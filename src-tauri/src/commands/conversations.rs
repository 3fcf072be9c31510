//! The conversation list, and what is done with one of its lines.

use lectern_app::view::{ConversationSummary, ConversationView, Problem};
use lectern_core::{ConversationId, MessageId};
use tauri::AppHandle;
use tauri_plugin_dialog::DialogExt;

use super::{Desk, chosen};

#[tauri::command]
pub async fn conversations(desk: Desk<'_>) -> Result<Vec<ConversationSummary>, Problem> {
    desk.engine().await?.conversations()
}

#[tauri::command]
pub async fn conversation(
    desk: Desk<'_>,
    id: ConversationId,
    before: Option<MessageId>,
) -> Result<ConversationView, Problem> {
    desk.engine().await?.conversation_page(&id, before.as_ref())
}

#[tauri::command]
pub async fn rename_conversation(desk: Desk<'_>, id: ConversationId, title: String) -> Result<(), Problem> {
    desk.engine().await?.rename_conversation(&id, &title)
}

#[tauri::command]
pub async fn delete_conversation(desk: Desk<'_>, id: ConversationId) -> Result<(), Problem> {
    desk.engine().await?.delete_conversation(&id)
}

#[tauri::command]
pub async fn restore_conversation(desk: Desk<'_>, id: ConversationId) -> Result<(), Problem> {
    desk.engine().await?.restore_conversation(&id)
}

#[tauri::command]
pub async fn export_trace(
    app: AppHandle,
    desk: Desk<'_>,
    conversation: ConversationId,
) -> Result<Option<String>, Problem> {
    let engine = desk.engine().await?;
    let dialog = app.dialog().file().add_filter("JSON", &["json"]).set_file_name("trace.json");
    let Some(path) = chosen(|answer| dialog.save_file(answer)).await? else { return Ok(None) };
    engine.export_trace(&conversation, &path)?;
    Ok(Some(path.display().to_string()))
}
