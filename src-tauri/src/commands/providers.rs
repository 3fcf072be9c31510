//! Where remote models are asked: providers, signing in, what they offer.
//!
//! Invariant: a secret passes through to the engine; it is in no answer, and no path of a key file comes from the page.

use lectern_app::view::{
    FoundLogin, ModelTest, ModelView, OfferedModel, Problem, ProviderDraft, ProviderId, ProviderView,
    RemoteDraft, RemovedProvider, SignIn, SignedIn,
};
use lectern_core::{ConversationId, ModelId};
use tauri::{AppHandle, State};
use tauri_plugin_dialog::DialogExt;

use super::{Desk, chosen};
use crate::asking::Asking;
use crate::drops::Drops;

#[tauri::command]
pub async fn add_provider(desk: Desk<'_>, draft: ProviderDraft) -> Result<ProviderView, Problem> {
    desk.engine().await?.add_provider(draft)
}

#[tauri::command]
pub async fn change_provider(
    desk: Desk<'_>,
    id: ProviderId,
    draft: ProviderDraft,
) -> Result<ProviderView, Problem> {
    desk.engine().await?.change_provider(&id, draft)
}

#[tauri::command]
pub async fn remove_provider(desk: Desk<'_>, id: ProviderId) -> Result<RemovedProvider, Problem> {
    desk.engine().await?.remove_provider(&id).await
}

#[tauri::command]
pub async fn restore_provider(desk: Desk<'_>, token: String) -> Result<ProviderView, Problem> {
    desk.engine().await?.restore_provider(&token)
}

#[tauri::command]
pub async fn sign_in_provider(desk: Desk<'_>, id: ProviderId, sign: SignIn) -> Result<SignedIn, Problem> {
    desk.engine().await?.sign_in_provider(&id, sign).await
}

#[tauri::command]
pub async fn choose_key_file(
    app: AppHandle,
    desk: Desk<'_>,
    id: ProviderId,
) -> Result<Option<SignedIn>, Problem> {
    let engine = desk.engine().await?;
    let dialog = app
        .dialog()
        .file()
        .set_title("Choose the key file of a service account")
        .add_filter("JSON", &["json"]);
    let Some(path) = chosen(|answer| dialog.pick_file(answer)).await? else { return Ok(None) };
    engine.sign_in_provider_with_file(&id, &path).await.map(Some)
}

#[tauri::command]
pub async fn sign_in_dropped(
    drops: State<'_, Drops>,
    desk: Desk<'_>,
    id: ProviderId,
) -> Result<SignedIn, Problem> {
    let engine = desk.engine().await?;
    let path = drops.take_key().ok_or_else(|| {
        Problem::new("bad_credentials", "nothing was dropped that is one file of credentials")
            .hint("Drop the JSON file that Google Cloud gave you, alone.")
    })?;
    engine.sign_in_provider_with_file(&id, &path).await
}

#[tauri::command]
pub async fn sign_out_provider(desk: Desk<'_>, id: ProviderId) -> Result<ProviderView, Problem> {
    desk.engine().await?.sign_out_provider(&id).await
}

#[tauri::command]
pub async fn found_login(desk: Desk<'_>) -> Result<Option<FoundLogin>, Problem> {
    Ok(desk.engine().await?.found_login())
}

#[tauri::command]
pub async fn provider_models(
    asking: State<'_, Asking>,
    desk: Desk<'_>,
    id: ProviderId,
) -> Result<Vec<OfferedModel>, Problem> {
    let asked = asking.begin(list_of(&id));
    let engine = desk.engine().await?;
    tokio::select! {
        () = asked.cancel().cancelled_owned() => Err(Problem::new("cancelled", "asking for the models was stopped")),
        models = engine.provider_models(&id) => models,
    }
}

#[tauri::command]
pub async fn stop_provider_models(asking: State<'_, Asking>, id: ProviderId) -> Result<(), Problem> {
    asking.stop(&list_of(&id));
    Ok(())
}

#[tauri::command]
pub async fn add_remote_model(desk: Desk<'_>, draft: RemoteDraft) -> Result<ModelView, Problem> {
    desk.engine().await?.add_remote_model(draft)
}

#[tauri::command]
pub async fn change_remote_model(
    desk: Desk<'_>,
    id: ModelId,
    draft: RemoteDraft,
) -> Result<ModelView, Problem> {
    desk.engine().await?.change_remote_model(&id, draft)
}

#[tauri::command]
pub async fn test_model(
    asking: State<'_, Asking>,
    desk: Desk<'_>,
    id: ModelId,
) -> Result<ModelTest, Problem> {
    let asked = asking.begin(test_of(&id));
    desk.engine().await?.test_model(&id, asked.cancel()).await
}

#[tauri::command]
pub async fn stop_model_test(asking: State<'_, Asking>, id: ModelId) -> Result<(), Problem> {
    asking.stop(&test_of(&id));
    Ok(())
}

#[tauri::command]
pub async fn set_conversation_model(
    desk: Desk<'_>,
    conversation: ConversationId,
    model: Option<ModelId>,
) -> Result<(), Problem> {
    desk.engine().await?.set_conversation_model(&conversation, model.as_ref())
}

fn list_of(provider: &ProviderId) -> String {
    format!("models of {provider}")
}

fn test_of(model: &ModelId) -> String {
    format!("test of {model}")
}
