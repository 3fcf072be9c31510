//! Other people's servers beside our own: started, listed, ended.

use lectern_tests::root;
use lectern_tests::window::{Setting, Window};
use serde_json::json;

use crate::{QUESTION, QUOTE, answered, ask, write_settings};

#[tokio::test]
async fn other_peoples_servers_are_started_and_their_tools_listed() {
    let setting = Setting::fresh();
    let installed = root().join("tests/clients/node_modules/.bin");
    assert!(installed.exists(), "run `make test`, or `npm ci` in tests/clients");
    let files = setting.home().join("files");
    std::fs::create_dir(&files).unwrap();
    let servers = json!({
        "everything": { "command": installed.join("mcp-server-everything"), "args": ["stdio"] },
        "files": { "command": installed.join("mcp-server-filesystem"), "args": [files] },
    });
    write_settings(&setting, &json!({ "version": 1, "mcpServers": servers }));
    let window = Window::open(setting).await;
    window.see_text("button", QUESTION).await;
    window.click("[data-testid=servers-button]").await;
    for id in ["everything", "files", "notes"] {
        window.see(&format!("[data-server={id}][data-state=ready]")).await;
    }
    window.picture("16-servers").await;
    window.run("document.activeElement?.blur(); document.body.click()", vec![]).await;
    // The starter knows tools of notes only; the many others must not lead it astray.
    ask(&window, QUESTION).await;
    answered(&window, QUOTE).await;
}
