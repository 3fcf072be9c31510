//! Servers of other hosts in, our own out.

use lectern_app::view::{FoundHost, ImportPreview, ImportRequest, ImportSource, Problem};
use lectern_core::ServerId;
use tauri::AppHandle;
use tauri_plugin_dialog::DialogExt;

use super::{Desk, chosen, missing};

#[tauri::command]
pub async fn known_hosts(desk: Desk<'_>) -> Result<Vec<FoundHost>, Problem> {
    let _ = desk;
    Ok(Vec::new())
}

#[tauri::command]
pub async fn choose_import_file(app: AppHandle) -> Result<Option<String>, Problem> {
    let dialog = app.dialog().file().set_title("Choose a file with servers");
    let dialog = dialog.add_filter("Servers", &["json", "mcpb", "dxt"]);
    let path = chosen(|answer| dialog.pick_file(answer)).await?;
    Ok(path.map(|path| path.display().to_string()))
}

#[tauri::command]
pub async fn preview_import(desk: Desk<'_>, source: ImportSource) -> Result<ImportPreview, Problem> {
    let _ = (desk, source);
    missing()
}

#[tauri::command]
pub async fn import_servers(desk: Desk<'_>, request: ImportRequest) -> Result<Vec<ServerId>, Problem> {
    let _ = (desk, request);
    missing()
}

#[tauri::command]
pub async fn export_servers(desk: Desk<'_>, ids: Vec<ServerId>) -> Result<String, Problem> {
    let _ = (desk, ids);
    missing()
}

#[tauri::command]
pub async fn save_export(
    app: AppHandle,
    desk: Desk<'_>,
    ids: Vec<ServerId>,
) -> Result<Option<String>, Problem> {
    let _ = (app, desk, ids);
    missing()
}
