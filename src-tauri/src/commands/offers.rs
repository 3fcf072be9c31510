//! What servers have beside tools, for the menus of the composer. A message takes it along by name.

use lectern_app::view::{CompletionRequest, CompletionView, Problem, PromptsView, ResourcesView};
use lectern_core::ServerId;

use super::Desk;

#[tauri::command]
pub async fn resources(desk: Desk<'_>, id: ServerId) -> Result<ResourcesView, Problem> {
    desk.engine().await?.resources(&id).await
}

#[tauri::command]
pub async fn prompts(desk: Desk<'_>, id: ServerId) -> Result<PromptsView, Problem> {
    desk.engine().await?.prompts(&id).await
}

#[tauri::command]
pub async fn complete(desk: Desk<'_>, request: CompletionRequest) -> Result<CompletionView, Problem> {
    desk.engine().await?.complete(&request).await
}
