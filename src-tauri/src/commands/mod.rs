//! One command for each method of the page's `Host`, under the same name.
//!
//! Invariant: parse, one call of the engine, convert. What the window can do stands in `build.rs`, too.

mod api;
mod app;
mod conversations;
mod enclosed;
mod generation;
mod imports;
mod library;
mod models;
mod offers;
mod providers;
mod servers;
mod turns;
mod vaults;

use std::path::PathBuf;
use std::sync::Arc;

use lectern_app::view::Problem;
use tauri::{State, Wry};
use tauri_plugin_dialog::FilePath;

use crate::shell::Shell;

/// The shell, as commands get it.
type Desk<'a> = State<'a, Arc<Shell>>;

/// Every command.
pub fn all() -> impl Fn(tauri::ipc::Invoke<Wry>) -> bool + Send + Sync + 'static {
    tauri::generate_handler![
        app::app_view,
        app::subscribe,
        app::open_link,
        conversations::conversations,
        conversations::conversation,
        conversations::rename_conversation,
        conversations::delete_conversation,
        conversations::restore_conversation,
        conversations::export_trace,
        turns::send,
        turns::attach_turn,
        turns::cancel_turn,
        turns::answer_permission,
        turns::answer_question,
        turns::long_message,
        enclosed::enclose,
        enclosed::choose_enclosures,
        enclosed::enclose_dropped,
        enclosed::discard_enclosure,
        models::select_model,
        models::model_wanted,
        models::add_model,
        models::choose_model_file,
        models::watch_drops,
        models::add_dropped,
        library::remove_model,
        library::restore_model,
        library::model_details,
        library::bench_model,
        library::hardware,
        library::model_folders,
        library::choose_model_folder,
        library::add_model_folder,
        library::remove_model_folder,
        library::curated_models,
        library::list_repository,
        library::hub,
        library::saved_states,
        library::forget_states,
        library::keep_hub_token,
        library::set_hub_mirror,
        library::start_download,
        library::pause_download,
        library::resume_download,
        library::cancel_download,
        providers::add_provider,
        providers::change_provider,
        providers::remove_provider,
        providers::restore_provider,
        providers::sign_in_provider,
        providers::choose_key_file,
        providers::sign_in_dropped,
        providers::sign_out_provider,
        providers::found_login,
        providers::provider_models,
        providers::stop_provider_models,
        providers::add_remote_model,
        providers::change_remote_model,
        providers::test_model,
        providers::stop_model_test,
        providers::set_conversation_model,
        generation::generation,
        generation::set_model_generation,
        generation::set_conversation_generation,
        generation::reset_model_generation,
        generation::reset_conversation_generation,
        generation::save_preset,
        generation::delete_preset,
        api::watch_api,
        api::set_api_on,
        api::set_api_address,
        api::set_api_callers,
        api::api_keys,
        api::add_api_key,
        api::revoke_api_key,
        api::answer_approval,
        api::api_metrics,
        vaults::add_vault,
        vaults::remove_vault,
        vaults::read_note,
        servers::server_log,
        servers::server_traffic,
        servers::start_server,
        servers::stop_server,
        servers::restart_server,
        servers::set_server_enabled,
        servers::set_server_trusted,
        servers::approve_server,
        servers::sign_in,
        servers::sign_out,
        servers::save_server,
        servers::remove_server,
        servers::restore_server,
        servers::set_tool_permission,
        servers::set_server_permission,
        servers::accept_tool,
        servers::doctor,
        offers::resources,
        offers::prompts,
        offers::complete,
        imports::known_hosts,
        imports::choose_import_file,
        imports::preview_import,
        imports::import_servers,
        imports::export_servers,
        imports::save_export,
    ]
}

/// Waits for a system dialog without holding a thread; none when the user closed it.
async fn chosen(
    show: impl FnOnce(Box<dyn FnOnce(Option<FilePath>) + Send>),
) -> Result<Option<PathBuf>, Problem> {
    let (answer, chosen) = tokio::sync::oneshot::channel();
    show(Box::new(move |path| {
        let _ = answer.send(path);
    }));
    let Ok(Some(path)) = chosen.await else { return Ok(None) };
    path.into_path().map(Some).map_err(|_| not_a_file())
}

/// The same for a dialog in which several can be chosen; none when it was closed.
async fn several(
    show: impl FnOnce(Box<dyn FnOnce(Option<Vec<FilePath>>) + Send>),
) -> Result<Vec<PathBuf>, Problem> {
    let (answer, chosen) = tokio::sync::oneshot::channel();
    show(Box::new(move |paths| {
        let _ = answer.send(paths);
    }));
    let paths = chosen.await.ok().flatten().unwrap_or_default();
    paths.into_iter().map(|path| path.into_path().map_err(|_| not_a_file())).collect()
}

fn not_a_file() -> Problem {
    Problem::new("not_a_file", "what was chosen is no file on this computer")
}
