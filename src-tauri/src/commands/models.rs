//! The model list.

use lectern_app::view::{ModelView, Problem, RemovedModel};
use lectern_core::ModelId;
use tauri::AppHandle;
use tauri_plugin_dialog::DialogExt;

use super::{Desk, chosen};

#[tauri::command]
pub async fn select_model(desk: Desk<'_>, id: ModelId) -> Result<(), Problem> {
    desk.engine().await?.select_model(&id)
}

#[tauri::command]
pub async fn add_model(app: AppHandle, desk: Desk<'_>) -> Result<Option<ModelView>, Problem> {
    let engine = desk.engine().await?;
    let dialog = app.dialog().file().set_title("Choose a model file").add_filter("GGUF models", &["gguf"]);
    let Some(path) = chosen(|answer| dialog.pick_file(answer)).await? else { return Ok(None) };
    engine.add_model(&path).map(Some)
}

#[tauri::command]
pub async fn remove_model(desk: Desk<'_>, id: ModelId) -> Result<RemovedModel, Problem> {
    desk.engine().await?.remove_model(&id).await
}
