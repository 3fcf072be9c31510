//! The frame of the window: its view, its news, its links.

use lectern_app::view::{AppNews, AppView, Problem};
use tauri::ipc::Channel;

use super::Desk;
use crate::links;

#[tauri::command]
pub async fn app_view(desk: Desk<'_>) -> Result<AppView, Problem> {
    Ok(desk.engine().await?.app_view())
}

#[tauri::command]
pub async fn subscribe(desk: Desk<'_>, on_news: Channel<AppNews>) -> Result<(), Problem> {
    let mut news = desk.engine().await?.subscribe();
    desk.listen(tauri::async_runtime::spawn(async move {
        while let Some(item) = news.next().await {
            if on_news.send(item).is_err() {
                return;
            }
        }
    }));
    Ok(())
}

#[tauri::command]
pub async fn open_link(url: String) -> Result<(), Problem> {
    let url = links::openable(&url)?;
    // The function alone; the plugin would add commands and a script of its own to the page.
    tauri_plugin_opener::open_url(url.as_str(), None::<&str>).map_err(|error| {
        Problem::new("link_not_opened", format!("{url} could not be opened: {error}"))
            .hint("Check which program opens web pages on this computer, or copy the link.")
    })
}
