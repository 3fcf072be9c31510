//! The local HTTP API: on and off, its keys, the calls that wait for the user.

use lectern_app::view::{
    ApiAddress, ApiCallers, ApiKeyDraft, ApiKeysView, ApiView, MadeApiKey, MetricsView, Problem,
};
use tauri::ipc::Channel;

use super::Desk;

/// For as long as the page listens, calls wait for its answer.
#[tauri::command]
pub async fn watch_api(desk: Desk<'_>, on_api: Channel<ApiView>) -> Result<(), Problem> {
    let mut following = desk.api().await?.follow();
    desk.listen_to_api(tauri::async_runtime::spawn(async move {
        while on_api.send(following.next().await).is_ok() {}
    }));
    Ok(())
}

#[tauri::command]
pub async fn set_api_on(desk: Desk<'_>, on: bool) -> Result<ApiView, Problem> {
    desk.api().await?.set_on(on)
}

#[tauri::command]
pub async fn set_api_address(desk: Desk<'_>, address: ApiAddress) -> Result<ApiView, Problem> {
    desk.api().await?.set_address(&address)
}

#[tauri::command]
pub async fn set_api_callers(desk: Desk<'_>, callers: ApiCallers) -> Result<ApiView, Problem> {
    desk.api().await?.set_callers(&callers)
}

#[tauri::command]
pub async fn api_keys(desk: Desk<'_>) -> Result<ApiKeysView, Problem> {
    desk.api().await?.api_keys().await
}

#[tauri::command]
pub async fn add_api_key(desk: Desk<'_>, draft: ApiKeyDraft) -> Result<MadeApiKey, Problem> {
    desk.api().await?.add_key(draft).await
}

#[tauri::command]
pub async fn revoke_api_key(desk: Desk<'_>, name: String) -> Result<(), Problem> {
    desk.api().await?.revoke_key(&name).await
}

#[tauri::command]
pub async fn answer_approval(desk: Desk<'_>, id: String, allow: bool) -> Result<(), Problem> {
    desk.api().await?.answer(&id, allow)
}

#[tauri::command]
pub async fn api_metrics(desk: Desk<'_>) -> Result<Option<MetricsView>, Problem> {
    Ok(desk.api().await?.metrics())
}
