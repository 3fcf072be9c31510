//! A real window of the built app, with the real starter model and real servers, driven by what a person sees.
//!
//! Invariant: nothing in here reaches into the app; tests type, click, look, and read the files of the home.

#![expect(clippy::unwrap_used, reason = "a test stops where it is surprised")]

mod answers;
mod api;
mod composer;
mod endings;
mod failures;
mod looks;
mod models;
mod permissions;
mod remote;
mod safety;
mod servers;
mod trouble;
mod vertex;

use lectern_tests::window::{Setting, Window};
use lectern_tests::{program, root};
use serde_json::{Value, json};

/// The note that answers it says "Error E7 means that the filter in the return is blocked".
const QUESTION: &str = "What does error E7 on the heat pump mean?";
const QUOTE: &str = "Error E7 means that the filter in the return is blocked";
const SOURCE: &str = "Heat pump";

/// Types a message and sends it.
async fn say(window: &Window, text: &str) {
    window.see("[data-testid=composer]").await;
    // What an app that was killed had kept of a message may still stand there.
    let clear = "
        const field = document.querySelector('[data-testid=composer]');
        field.value = '';
        field.dispatchEvent(new Event('input', { bubbles: true }));";
    window.run(clear, vec![]).await;
    window.type_into("[data-testid=composer]", text).await;
    window.click("[data-testid=send]").await;
}

/// Waits until the last turn is over: every message has its answer, none is still written, nothing can be stopped.
async fn finished(window: &Window) {
    let script = "
        const all = (name) => document.querySelectorAll(`[data-testid=${name}]`);
        const answers = [...all('message-assistant')];
        return all('message-user').length === answers.length && answers.length > 0
            && answers.every((a) => a.dataset.running === 'false') && all('stop').length === 0;";
    window
        .until("the turn is over", || async { (window.run(script, vec![]).await == true).then_some(()) })
        .await;
}

/// Asks and waits for the end of the answer.
async fn ask(window: &Window, text: &str) {
    let before = window.count("[data-testid=message-user]").await;
    say(window, text).await;
    let more = || async { (window.count("[data-testid=message-user]").await > before).then_some(()) };
    window.until("the message is there", more).await;
    finished(window).await;
}

/// Whether the last answer, which is complete, holds the text.
async fn answered(window: &Window, text: &str) {
    let answers = window.texts("[data-testid=message-assistant]").await;
    let last = answers.last().map(String::as_str).unwrap_or_default();
    assert!(last.contains(text), "{text:?} is not in the answer: {last}");
}

/// The state of each tool card, in order.
async fn card_states(window: &Window) -> Vec<String> {
    let script =
        "return [...document.querySelectorAll('[data-testid=tool-card]')].map((c) => c.dataset.state)";
    let states = window.run(script, vec![]).await;
    states.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The last part of each called tool's name, in order.
async fn tools(window: &Window) -> Vec<String> {
    let script =
        "return [...document.querySelectorAll('[data-testid=tool-card]')].map((c) => c.dataset.tool)";
    let tools = window.run(script, vec![]).await;
    let names = tools.as_array().into_iter().flatten().filter_map(Value::as_str);
    names.map(|name| name.rsplit("__").next().unwrap_or(name).to_owned()).collect()
}

/// The sample notes behind a server whose tools take this long.
fn slow_notes(setting: &Setting, millis: u32) {
    let home = setting.home();
    let vault = home.join("notes");
    copy(&root().join("samples/vault"), &vault);
    let slow = root().join("tests/servers/slow.mjs");
    let args = json!([slow, millis.to_string(), program("lectern"), "vault", vault]);
    let server = json!({ "command": "node", "args": args, "trusted": true });
    write_settings(
        setting,
        &json!({ "version": 1, "sample_vault": false, "mcpServers": { "notes": server } }),
    );
}

/// Settings, with the servers in them approved.
fn write_settings(setting: &Setting, settings: &Value) {
    std::fs::write(setting.home().join("settings.json"), settings.to_string()).unwrap();
    let Some(servers) = settings["mcpServers"].as_object() else { return };
    // What somebody wrote into the file starts only when the user has said so.
    let mut approve = std::process::Command::new(program("lectern"));
    approve.args(["mcp", "approve", "--yes", "--home"]).arg(setting.home()).args(servers.keys());
    let approved = approve.output().unwrap();
    assert!(approved.status.success(), "{approved:?}");
}

fn copy(from: &std::path::Path, to: &std::path::Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}
