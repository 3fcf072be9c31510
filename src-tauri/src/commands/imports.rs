//! Servers of other hosts in, our own out.

use lectern_app::Shape;
use lectern_app::view::{FoundHost, ImportPreview, ImportRequest, ImportSource, Problem};
use lectern_core::ServerId;
use tauri::AppHandle;
use tauri_plugin_dialog::DialogExt;

use super::{Desk, chosen};

#[tauri::command]
pub async fn known_hosts(desk: Desk<'_>) -> Result<Vec<FoundHost>, Problem> {
    let engine = desk.engine().await?.clone();
    elsewhere(move || Ok(engine.known_hosts())).await
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
    let engine = desk.engine().await?.clone();
    elsewhere(move || engine.preview_import(&source)).await
}

#[tauri::command]
pub async fn import_servers(desk: Desk<'_>, request: ImportRequest) -> Result<Vec<ServerId>, Problem> {
    let added = desk.engine().await?.import_servers(request).await?;
    Ok(added.into_iter().map(|server| server.id).collect())
}

#[tauri::command]
pub async fn export_servers(desk: Desk<'_>, ids: Vec<ServerId>) -> Result<String, Problem> {
    desk.engine().await?.export_servers(&ids, Shape::McpServers)
}

#[tauri::command]
pub async fn save_export(
    app: AppHandle,
    desk: Desk<'_>,
    ids: Vec<ServerId>,
) -> Result<Option<String>, Problem> {
    let text = desk.engine().await?.export_servers(&ids, Shape::McpServers)?;
    let dialog = app.dialog().file().set_title("Save the servers").set_file_name("servers.json");
    let Some(path) = chosen(|answer| dialog.save_file(answer)).await? else { return Ok(None) };
    let shown = path.display().to_string();
    elsewhere(move || {
        std::fs::write(&path, text).map_err(|error| {
            Problem::new("servers_not_written", format!("write the servers to {}: {error}", path.display()))
        })
    })
    .await?;
    Ok(Some(shown))
}

/// Reads or writes files on a thread that nobody waits for.
async fn elsewhere<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let done = tauri::async_runtime::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(Problem::new("defect", error.to_string())))
}
