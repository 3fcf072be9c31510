//! The MCP servers.

use lectern_app::view::Problem;
use lectern_core::ServerId;

use super::Desk;

#[tauri::command]
pub async fn server_log(desk: Desk<'_>, id: ServerId) -> Result<Vec<String>, Problem> {
    let page = desk.engine().await?.server_log(&id, 0)?;
    Ok(page.lines.into_iter().map(|line| line.text).collect())
}

#[tauri::command]
pub async fn restart_server(desk: Desk<'_>, id: ServerId) -> Result<(), Problem> {
    desk.engine().await?.restart_server(&id)
}
