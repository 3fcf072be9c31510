//! Generates the window's command permissions and embeds the built page.
//!
//! Invariant: what the page may call is listed here and in `capabilities/main.json`, and nowhere else.

use std::path::Path;

/// One for each method of the page's `Host`.
const COMMANDS: &[&str] = &[
    "app_view",
    "subscribe",
    "conversations",
    "conversation",
    "rename_conversation",
    "delete_conversation",
    "restore_conversation",
    "send",
    "attach_turn",
    "cancel_turn",
    "answer_permission",
    "answer_question",
    "long_message",
    "select_model",
    "model_wanted",
    "add_model",
    "choose_model_file",
    "watch_drops",
    "add_dropped",
    "enclose",
    "choose_enclosures",
    "enclose_dropped",
    "discard_enclosure",
    "remove_model",
    "restore_model",
    "model_details",
    "bench_model",
    "hardware",
    "model_folders",
    "choose_model_folder",
    "add_model_folder",
    "remove_model_folder",
    "curated_models",
    "list_repository",
    "saved_states",
    "forget_states",
    "hub",
    "keep_hub_token",
    "set_hub_mirror",
    "start_download",
    "pause_download",
    "resume_download",
    "cancel_download",
    "add_provider",
    "change_provider",
    "remove_provider",
    "restore_provider",
    "sign_in_provider",
    "choose_key_file",
    "sign_in_dropped",
    "sign_out_provider",
    "found_login",
    "provider_models",
    "stop_provider_models",
    "add_remote_model",
    "change_remote_model",
    "test_model",
    "stop_model_test",
    "set_conversation_model",
    "generation",
    "set_model_generation",
    "set_conversation_generation",
    "reset_model_generation",
    "reset_conversation_generation",
    "save_preset",
    "delete_preset",
    "watch_api",
    "set_api_on",
    "set_api_address",
    "set_api_callers",
    "api_keys",
    "add_api_key",
    "revoke_api_key",
    "answer_approval",
    "api_metrics",
    "add_vault",
    "remove_vault",
    "read_note",
    "server_log",
    "server_traffic",
    "start_server",
    "stop_server",
    "restart_server",
    "set_server_enabled",
    "set_server_trusted",
    "approve_server",
    "sign_in",
    "sign_out",
    "save_server",
    "remove_server",
    "restore_server",
    "set_tool_permission",
    "set_server_permission",
    "accept_tool",
    "doctor",
    "resources",
    "prompts",
    "complete",
    "known_hosts",
    "choose_import_file",
    "preview_import",
    "import_servers",
    "export_servers",
    "save_export",
    "open_link",
    "export_trace",
];

fn main() {
    link_to_neighbours();
    println!("cargo:rerun-if-changed=../ui/dist");
    if !Path::new("../ui/dist/index.html").exists() {
        fail(
            "the window's page is not built: ui/dist/index.html is missing. Run `npm ci && npm run build` in ui/",
        );
    }
    let attributes =
        tauri_build::Attributes::new().app_manifest(tauri_build::AppManifest::new().commands(COMMANDS));
    if let Err(error) = tauri_build::try_build(attributes) {
        fail(&format!("{error:#}"));
    }
}

/// A build with llama.cpp's libraries finds them where they are installed, and beside the executable. An RPATH, for it
/// holds for the libraries that those libraries need, too; a RUNPATH does not.
fn link_to_neighbours() {
    let on_linux = std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux");
    if std::env::var_os("CARGO_FEATURE_PORTABLE_CPU").is_some() && on_linux {
        println!("cargo:rustc-link-arg-bins=-Wl,--disable-new-dtags,-rpath,$ORIGIN/../lib/lectern:$ORIGIN");
    }
}

fn fail(message: &str) -> ! {
    println!("cargo::error={message}");
    std::process::exit(1);
}
