//! The model list.

use lectern_app::view::{DropNews, ModelView, Problem};
use lectern_core::{ConversationId, ModelId};
use tauri::ipc::Channel;
use tauri::{AppHandle, State};
use tauri_plugin_dialog::DialogExt;

use super::{Desk, chosen};
use crate::drops::Drops;

#[tauri::command]
pub async fn select_model(desk: Desk<'_>, id: ModelId) -> Result<(), Problem> {
    desk.engine().await?.select_model(&id)
}

#[tauri::command]
pub async fn model_wanted(
    desk: Desk<'_>,
    conversation: Option<ConversationId>,
    draft: String,
    model: Option<ModelId>,
) -> Result<(), Problem> {
    desk.engine().await?.model_wanted(conversation, &draft, model);
    Ok(())
}

#[tauri::command]
pub async fn add_model(app: AppHandle, desk: Desk<'_>) -> Result<Option<ModelView>, Problem> {
    let engine = desk.engine().await?;
    let dialog = app.dialog().file().set_title("Choose a model file").add_filter("GGUF models", &["gguf"]);
    let Some(path) = chosen(|answer| dialog.pick_file(answer)).await? else { return Ok(None) };
    engine.add_model(&path).map(Some)
}

#[tauri::command]
pub async fn choose_model_file(app: AppHandle) -> Result<Option<String>, Problem> {
    let dialog = app.dialog().file().set_title("Choose a model file").add_filter("GGUF models", &["gguf"]);
    let path = chosen(|answer| dialog.pick_file(answer)).await?;
    Ok(path.map(|path| path.display().to_string()))
}

#[tauri::command]
pub async fn watch_drops(drops: State<'_, Drops>, on_drop: Channel<DropNews>) -> Result<(), Problem> {
    drops.watch(on_drop);
    Ok(())
}

#[tauri::command]
pub async fn add_dropped(drops: State<'_, Drops>, desk: Desk<'_>) -> Result<Vec<ModelView>, Problem> {
    let engine = desk.engine().await?;
    // One that can't be used does not keep back the others.
    let added: Vec<_> = drops.take().iter().map(|path| engine.add_model(path)).collect();
    added.into_iter().collect()
}
