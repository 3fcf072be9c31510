//! The MCP servers: run, change, look at.

use lectern_app::view::{DoctorCheck, DoctorReport, LogPage, Problem, ServerDraft, TrafficPage, UndoToken};
use lectern_core::{RuleEffect, ServerId, ToolName};
use tauri::ipc::Channel;

use super::Desk;

#[tauri::command]
pub async fn server_log(desk: Desk<'_>, id: ServerId, after: u64) -> Result<LogPage, Problem> {
    desk.engine().await?.server_log(&id, after)
}

#[tauri::command]
pub async fn server_traffic(desk: Desk<'_>, id: ServerId, after: u64) -> Result<TrafficPage, Problem> {
    desk.engine().await?.server_traffic(&id, after)
}

#[tauri::command]
pub async fn start_server(desk: Desk<'_>, id: ServerId) -> Result<(), Problem> {
    desk.engine().await?.start_server(&id)
}

#[tauri::command]
pub async fn stop_server(desk: Desk<'_>, id: ServerId) -> Result<(), Problem> {
    desk.engine().await?.stop_server(&id).await
}

#[tauri::command]
pub async fn restart_server(desk: Desk<'_>, id: ServerId) -> Result<(), Problem> {
    desk.engine().await?.restart_server(&id)
}

#[tauri::command]
pub async fn set_server_enabled(desk: Desk<'_>, id: ServerId, enabled: bool) -> Result<(), Problem> {
    desk.engine().await?.set_server_enabled(&id, enabled).await.map(drop)
}

#[tauri::command]
pub async fn set_server_trusted(desk: Desk<'_>, id: ServerId, trusted: bool) -> Result<(), Problem> {
    desk.engine().await?.set_server_trusted(&id, trusted).await.map(drop)
}

#[tauri::command]
pub async fn approve_server(desk: Desk<'_>, id: ServerId, digest: String) -> Result<(), Problem> {
    desk.engine().await?.approve_server(&id, &digest)
}

#[tauri::command]
pub async fn sign_in(desk: Desk<'_>, id: ServerId) -> Result<(), Problem> {
    desk.engine().await?.sign_in(&id).await
}

#[tauri::command]
pub async fn sign_out(desk: Desk<'_>, id: ServerId) -> Result<(), Problem> {
    desk.engine().await?.sign_out(&id).await
}

#[tauri::command]
pub async fn save_server(desk: Desk<'_>, draft: ServerDraft) -> Result<ServerId, Problem> {
    desk.engine().await?.save_server(draft).await.map(|server| server.id)
}

#[tauri::command]
pub async fn remove_server(desk: Desk<'_>, id: ServerId) -> Result<UndoToken, Problem> {
    desk.engine().await?.remove_server(&id).await
}

#[tauri::command]
pub async fn restore_server(desk: Desk<'_>, token: UndoToken) -> Result<(), Problem> {
    desk.engine().await?.restore_server(&token).await.map(drop)
}

#[tauri::command]
pub async fn set_tool_permission(
    desk: Desk<'_>,
    tool: ToolName,
    permission: Option<RuleEffect>,
) -> Result<(), Problem> {
    desk.engine().await?.set_tool_permission(&tool, permission)
}

#[tauri::command]
pub async fn set_server_permission(
    desk: Desk<'_>,
    id: ServerId,
    permission: Option<RuleEffect>,
) -> Result<(), Problem> {
    desk.engine().await?.set_server_permission(&id, permission)
}

#[tauri::command]
pub async fn accept_tool(desk: Desk<'_>, tool: ToolName, digest: String) -> Result<(), Problem> {
    desk.engine().await?.accept_tool(&tool, &digest)
}

#[tauri::command]
pub async fn doctor(
    desk: Desk<'_>,
    id: ServerId,
    on_check: Channel<DoctorCheck>,
) -> Result<DoctorReport, Problem> {
    let tell = |check: &DoctorCheck| {
        // A page that was loaded anew hears no more; the examination ends all the same.
        let _ = on_check.send(check.clone());
    };
    desk.engine().await?.doctor(&id, tell).await
}
