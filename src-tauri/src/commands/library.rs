//! The model library: more models, what is on its way, what this machine can carry.

use std::path::Path;

use lectern_app::view::{
    BenchView, CuratedView, DownloadRequest, DownloadView, HardwareView, HubView, ModelDetails,
    ModelFolderView, ModelView, Problem, RemovedModel, RepositoryView, StatesView,
};
use lectern_core::ModelId;
use tauri::AppHandle;
use tauri_plugin_dialog::DialogExt;

use super::{Desk, chosen};

#[tauri::command]
pub async fn remove_model(desk: Desk<'_>, id: ModelId) -> Result<RemovedModel, Problem> {
    desk.engine().await?.remove_model(&id).await
}

#[tauri::command]
pub async fn restore_model(desk: Desk<'_>, token: String) -> Result<ModelView, Problem> {
    desk.engine().await?.restore_model(&token).await
}

#[tauri::command]
pub async fn model_details(
    desk: Desk<'_>,
    id: ModelId,
    context: Option<u32>,
) -> Result<ModelDetails, Problem> {
    desk.engine().await?.listed_model_details(&id, context).await
}

#[tauri::command]
pub async fn bench_model(desk: Desk<'_>, id: ModelId) -> Result<BenchView, Problem> {
    desk.engine().await?.bench_model(&id).await
}

#[tauri::command]
pub async fn hardware(desk: Desk<'_>) -> Result<HardwareView, Problem> {
    desk.engine().await?.hardware().await
}

#[tauri::command]
pub async fn model_folders(desk: Desk<'_>) -> Result<Vec<ModelFolderView>, Problem> {
    Ok(desk.engine().await?.model_folders())
}

#[tauri::command]
pub async fn choose_model_folder(app: AppHandle, desk: Desk<'_>) -> Result<Option<ModelFolderView>, Problem> {
    let engine = desk.engine().await?;
    let dialog = app.dialog().file().set_title("Choose a folder with models");
    let Some(path) = chosen(|answer| dialog.pick_folder(answer)).await? else { return Ok(None) };
    engine.add_model_folder(&path).await.map(Some)
}

#[tauri::command]
pub async fn add_model_folder(desk: Desk<'_>, path: String) -> Result<ModelFolderView, Problem> {
    desk.engine().await?.add_model_folder(Path::new(&path)).await
}

#[tauri::command]
pub async fn remove_model_folder(desk: Desk<'_>, path: String) -> Result<(), Problem> {
    desk.engine().await?.remove_model_folder(Path::new(&path)).await
}

#[tauri::command]
pub async fn curated_models(desk: Desk<'_>) -> Result<Vec<CuratedView>, Problem> {
    desk.engine().await?.curated().await
}

#[tauri::command]
pub async fn list_repository(desk: Desk<'_>, target: String) -> Result<RepositoryView, Problem> {
    desk.engine().await?.list_repository(&target).await
}

#[tauri::command]
pub async fn start_download(desk: Desk<'_>, request: DownloadRequest) -> Result<DownloadView, Problem> {
    desk.engine().await?.start_download(request).await
}

#[tauri::command]
pub async fn pause_download(desk: Desk<'_>, id: String) -> Result<DownloadView, Problem> {
    desk.engine().await?.pause_download(&id).await
}

#[tauri::command]
pub async fn resume_download(desk: Desk<'_>, id: String) -> Result<DownloadView, Problem> {
    desk.engine().await?.resume_download(&id).await
}

#[tauri::command]
pub async fn cancel_download(desk: Desk<'_>, id: String) -> Result<(), Problem> {
    desk.engine().await?.cancel_download(&id).await
}

#[tauri::command]
pub async fn saved_states(desk: Desk<'_>) -> Result<StatesView, Problem> {
    desk.engine().await?.saved_states()
}

#[tauri::command]
pub async fn forget_states(desk: Desk<'_>) -> Result<StatesView, Problem> {
    desk.engine().await?.forget_states().await
}

#[tauri::command]
pub async fn hub(desk: Desk<'_>) -> Result<HubView, Problem> {
    desk.engine().await?.hub().await
}

#[tauri::command]
pub async fn keep_hub_token(desk: Desk<'_>, token: Option<String>) -> Result<HubView, Problem> {
    desk.engine().await?.keep_hub_token(token.as_deref()).await
}

#[tauri::command]
pub async fn set_hub_mirror(desk: Desk<'_>, mirror: Option<String>) -> Result<HubView, Problem> {
    desk.engine().await?.set_hub_mirror(mirror.as_deref()).await
}
