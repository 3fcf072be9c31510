//! Images and documents that a message takes along.

use lectern_app::view::{Enclosure, Enclosures, Problem};
use lectern_core::Blob;
use tauri::{AppHandle, State};
use tauri_plugin_dialog::DialogExt;

use super::{Desk, several};
use crate::drops::Drops;

/// What was pasted.
#[tauri::command]
pub async fn enclose(desk: Desk<'_>, file: Blob, name: Option<String>) -> Result<Enclosure, Problem> {
    let bytes = file.bytes();
    let bytes =
        bytes.map_err(|error| Problem::new("damaged_image", format!("read what was pasted: {error}")))?;
    desk.engine().await?.enclose(bytes, name).await
}

#[tauri::command]
pub async fn choose_enclosures(app: AppHandle, desk: Desk<'_>) -> Result<Enclosures, Problem> {
    let engine = desk.engine().await?;
    let dialog = app.dialog().file().set_title("Choose images");
    let dialog = dialog.add_filter("Images, PDF", &["png", "jpg", "jpeg", "webp", "gif", "bmp", "pdf"]);
    let paths = several(|answer| dialog.pick_files(answer)).await?;
    Ok(engine.enclose_files(&paths).await)
}

#[tauri::command]
pub async fn enclose_dropped(drops: State<'_, Drops>, desk: Desk<'_>) -> Result<Enclosures, Problem> {
    Ok(desk.engine().await?.enclose_files(&drops.take_images()).await)
}

#[tauri::command]
pub async fn discard_enclosure(desk: Desk<'_>, id: String) -> Result<(), Problem> {
    desk.engine().await?.discard_enclosure(&id);
    Ok(())
}
