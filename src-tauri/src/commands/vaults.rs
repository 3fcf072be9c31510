//! The user's folders of notes.

use std::path::Path;

use lectern_app::view::{NoteView, Problem, VaultView};
use lectern_core::ServerId;
use tauri::AppHandle;
use tauri_plugin_dialog::DialogExt;

use super::{Desk, chosen};

#[tauri::command]
pub async fn add_vault(app: AppHandle, desk: Desk<'_>) -> Result<Option<VaultView>, Problem> {
    let engine = desk.engine().await?;
    let dialog = app.dialog().file().set_title("Choose a folder of notes");
    let Some(path) = chosen(|answer| dialog.pick_folder(answer)).await? else { return Ok(None) };
    engine.add_vault(&path).await.map(Some)
}

#[tauri::command]
pub async fn remove_vault(desk: Desk<'_>, path: String) -> Result<(), Problem> {
    desk.engine().await?.remove_vault(Path::new(&path)).await
}

#[tauri::command]
pub async fn read_note(desk: Desk<'_>, server: ServerId, path: String) -> Result<NoteView, Problem> {
    desk.engine().await?.read_note(&server, &path).await
}
