//! How models answer: settings of models and conversations, presets.

use lectern_app::view::{GenerationView, Problem, SettingChanges};
use lectern_core::{ConversationId, ModelId};

use super::Desk;

#[tauri::command]
pub async fn generation(
    desk: Desk<'_>,
    model: Option<ModelId>,
    conversation: Option<ConversationId>,
) -> Result<GenerationView, Problem> {
    desk.engine().await?.generation(model.as_ref(), conversation.as_ref())
}

#[tauri::command]
pub async fn set_model_generation(
    desk: Desk<'_>,
    model: ModelId,
    changes: SettingChanges,
) -> Result<GenerationView, Problem> {
    desk.engine().await?.set_model_generation(&model, &changes).await
}

#[tauri::command]
pub async fn set_conversation_generation(
    desk: Desk<'_>,
    conversation: Option<ConversationId>,
    changes: SettingChanges,
) -> Result<GenerationView, Problem> {
    desk.engine().await?.set_conversation_generation(conversation.as_ref(), &changes)
}

#[tauri::command]
pub async fn reset_model_generation(desk: Desk<'_>, model: ModelId) -> Result<GenerationView, Problem> {
    desk.engine().await?.reset_model_generation(&model)
}

#[tauri::command]
pub async fn reset_conversation_generation(
    desk: Desk<'_>,
    conversation: ConversationId,
) -> Result<GenerationView, Problem> {
    desk.engine().await?.reset_conversation_generation(&conversation)
}

#[tauri::command]
pub async fn save_preset(
    desk: Desk<'_>,
    name: String,
    settings: SettingChanges,
) -> Result<GenerationView, Problem> {
    desk.engine().await?.save_preset(&name, &settings)
}

#[tauri::command]
pub async fn delete_preset(desk: Desk<'_>, name: String) -> Result<GenerationView, Problem> {
    desk.engine().await?.delete_preset(&name)
}
