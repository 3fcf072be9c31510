//! What goes wrong is said where it happened, and the window stays.

use std::fs;

use lectern_tests::window::{Setting, Window};
use serde_json::json;

use crate::{QUESTION, QUOTE, answered, ask, say, write_settings};

#[tokio::test]
async fn a_broken_model_file_is_named_and_the_starter_still_answers() {
    let setting = Setting::fresh();
    let file = setting.home().join("broken-weights.gguf");
    fs::write(&file, b"GGUF\x03\0\0\0 this is no model").unwrap();
    let models = json!([{ "id": "broken", "path": file }]);
    write_settings(&setting, &json!({ "version": 1, "model": "broken", "models": models }));
    let window = Window::open(setting).await;
    say(&window, QUESTION).await;
    window.see_text("[data-testid=error], [role=alert]", "broken-weights.gguf").await;
    window.picture("10-broken-model").await;

    window.click("[data-testid=model-picker]").await;
    window.click("[data-model=starter]").await;
    ask(&window, QUESTION).await;
    answered(&window, QUOTE).await;
}

#[tokio::test]
async fn damaged_settings_are_explained_in_the_window_and_can_be_mended() {
    let setting = Setting::fresh();
    let file = setting.home().join("settings.json");
    fs::write(&file, "{ \"version\": 1, \"models\": [,] }").unwrap();
    let window = Window::open(setting).await;
    window.see_text("[data-testid=error]", "settings.json").await;
    window.picture("11-damaged-settings").await;
    assert_eq!(fs::read_to_string(&file).unwrap(), "{ \"version\": 1, \"models\": [,] }", "left as it was");

    fs::remove_file(&file).unwrap();
    window.click("[data-testid=error] button").await;
    window.see("[data-testid=composer]").await;
}

#[tokio::test]
async fn a_damaged_store_is_explained_and_left_alone() {
    let setting = Setting::fresh();
    let file = setting.home().join("conversations.sqlite");
    let damaged = b"this was a database once".repeat(500);
    fs::write(&file, &damaged).unwrap();
    let window = Window::open(setting).await;
    window.see_text("[data-testid=error]", "conversations.sqlite").await;
    window.picture("12-damaged-store").await;
    assert_eq!(fs::read(&file).unwrap(), damaged);
}

#[tokio::test]
async fn a_server_that_cannot_start_does_not_stop_the_others() {
    let setting = Setting::fresh();
    let servers = json!({ "missing": { "command": "no-such-program-anywhere" } });
    write_settings(&setting, &json!({ "version": 1, "mcpServers": servers }));
    let window = Window::open(setting).await;
    ask(&window, QUESTION).await;
    answered(&window, QUOTE).await;
    window.picture("13-server-missing").await;
}
