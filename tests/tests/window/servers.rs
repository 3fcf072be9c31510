//! Other people's servers beside our own: added, imported, looked at, mended, removed.

use lectern_tests::root;
use lectern_tests::window::{Setting, Window};
use serde_json::{Value, json};

use crate::{QUESTION, QUOTE, answered, ask, write_settings};

#[tokio::test]
async fn other_peoples_servers_are_started_and_their_tools_listed() {
    let setting = Setting::fresh();
    let files = setting.home().join("files");
    std::fs::create_dir(&files).unwrap();
    let servers = json!({
        "everything": { "command": installed("mcp-server-everything"), "args": ["stdio"] },
        "files": { "command": installed("mcp-server-filesystem"), "args": [files] },
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

#[tokio::test]
async fn a_server_is_added_by_the_form_seen_to_fail_and_mended() {
    let window = Window::open(Setting::fresh()).await;
    go(&window, "new").await;
    window.type_into("[data-testid=server-name]", "everything").await;
    window.type_into("[data-testid=server-command]", "no-such-program-anywhere").await;
    window.type_into("[data-testid=server-args]", "stdio").await;
    window.see_text("[data-testid=form-preview]", "no-such-program-anywhere stdio").await;
    window.click("[data-testid=server-save]").await;
    window.see("section[data-server=everything][data-state=failed]").await;
    window.see_text("[data-testid=error]", "no-such-program-anywhere").await;
    window.picture("17-server-failed").await;

    go(&window, "id/everything/edit").await;
    let command = installed("mcp-server-everything").display().to_string();
    refill(&window, "[data-testid=server-command]", &command).await;
    window.click("[data-testid=server-save]").await;
    window.see("section[data-server=everything][data-state=ready]").await;

    go(&window, "id/everything/tools").await;
    window.see("[data-tool=everything__echo]").await;
    window.picture("18-server-tools").await;
    go(&window, "id/everything/messages").await;
    window.see_text("[data-testid=server-traffic]", "tools/list").await;
    go(&window, "id/everything/log").await;
    window.see_text("[data-testid=server-log]", "stdio").await;
    let kept = std::fs::read_to_string(window.home().join("settings.json")).unwrap();
    assert!(kept.contains("mcp-server-everything"), "{kept}");
}

#[tokio::test]
async fn what_was_written_into_the_settings_behind_the_window_waits_for_a_yes() {
    let setting = Setting::fresh();
    let started = setting.home().join("started");
    let toucher = json!({ "command": "touch", "args": [started] });
    let settings = json!({ "version": 1, "mcpServers": { "toucher": toucher } }).to_string();
    std::fs::write(setting.home().join("settings.json"), settings).unwrap();
    let window = Window::open(setting).await;
    window.see_text("[data-testid=servers-waiting]", "toucher").await;
    window.picture("23-server-waits").await;
    window.click("[data-testid=servers-waiting] button").await;
    window.see_text("[data-testid=approval]", "touch").await;
    window.see_text("[data-testid=approval]", "started").await;
    assert!(!started.exists(), "it ran before anybody said yes");
    window.click("[data-testid=approve]").await;
    window.until("it ran", || async { started.exists().then_some(()) }).await;
}

#[tokio::test]
async fn the_doctor_names_the_step_that_breaks() {
    let setting = Setting::fresh();
    let servers = json!({
        "everything": { "command": installed("mcp-server-everything"), "args": ["stdio"] },
        "missing": { "command": "no-such-program-anywhere" },
    });
    write_settings(&setting, &json!({ "version": 1, "mcpServers": servers }));
    let window = Window::open(setting).await;
    go(&window, "id/missing/doctor").await;
    window.click("[data-testid=doctor-run]").await;
    window.see("[data-step=executable][data-outcome=failed]").await;
    window.see("[data-testid=doctor-verdict].danger").await;
    window.picture("19-doctor").await;

    go(&window, "id/everything/doctor").await;
    window.click("[data-testid=doctor-run]").await;
    window.see("[data-step=list][data-outcome=passed]").await;
    window.see("[data-testid=doctor-verdict]:not(.danger)").await;
}

#[tokio::test]
async fn an_import_runs_nothing_before_it_was_seen_and_can_be_undone() {
    let window = Window::open(Setting::fresh()).await;
    let started = window.home().join("started");
    let snippet = json!({ "mcpServers": {
        "everything": { "command": installed("mcp-server-everything"), "args": ["stdio"],
                        "env": { "API_TOKEN": "s3cret-of-a-test" } },
        "toucher": { "command": "touch", "args": [started] },
    } });
    go(&window, "import").await;
    refill(&window, "[data-testid=import-text]", &snippet.to_string()).await;
    window.click("[data-testid=import-look]").await;
    window.see_text("[data-testid=import-preview] pre", "mcp-server-everything stdio").await;
    window.see_text("[data-testid=import-preview]", "API_TOKEN").await;
    let preview = window.texts("[data-testid=import-preview]").await.concat();
    assert!(!preview.contains("s3cret-of-a-test"), "a secret is shown: {preview}");
    window.picture("20-import").await;
    // Nobody has said yes to this one.
    window.click("li[data-name=toucher] input").await;
    // There is no keyring here: the secret stays in the settings, as the user chooses.
    window.click("[data-testid=import-preview] .check input").await;
    window.click("[data-testid=import-add]").await;
    window.see("section[data-server=everything][data-state=ready]").await;
    assert!(!started.exists(), "what was not chosen ran");

    window.click("[data-testid=remove]").await;
    window.see_no("[data-server=everything]").await;
    window.click("[data-testid=toast] .btn").await;
    window.see("[data-server=everything][data-state=ready]").await;

    window.click("[data-server=everything] .switch").await;
    window.see("[data-server=everything][data-state=stopped]").await;
    let kept: Value =
        serde_json::from_slice(&std::fs::read(window.home().join("settings.json")).unwrap()).unwrap();
    assert_eq!(kept["mcpServers"]["everything"]["disabled"], json!(true), "{kept}");
}

#[tokio::test]
async fn a_servers_form_is_filled_in_the_conversation() {
    let setting = Setting::fresh();
    asking_notes(&setting, "form");
    let window = Window::open(setting).await;
    crate::say(&window, QUESTION).await;
    window.see("[data-testid=question][data-question=form]").await;
    window.see_text("[data-testid=question]", "Before I look it up:").await;
    // What is missing is said, and nothing is sent.
    window.click("[data-testid=question-accept]").await;
    window.see("[data-field=reader] [aria-invalid=true]").await;
    window.type_into("[data-field=reader] input", "Ada").await;
    window.picture("21-question").await;
    // An open question is still there after the page was loaded anew.
    window.reload().await;
    window.see("[data-testid=question]").await;
    window.type_into("[data-field=reader] input", "Ada").await;
    window.click("[data-testid=question-accept]").await;
    answer_all(&window).await;
    answered(&window, QUOTE).await;
    go(&window, "id/notes/log").await;
    window.see_text("[data-testid=server-log]", r#""reader":"Ada""#).await;
    window.see_text("[data-testid=server-log]", r#""volume":"soft""#).await;
}

#[tokio::test]
async fn an_address_is_opened_only_after_a_yes() {
    let setting = Setting::fresh();
    asking_notes(&setting, "url");
    let opened = setting.home().join("opened");
    let script = format!("#!/bin/sh\necho \"$1\" >> '{}'\n", opened.display());
    lectern_tests::window::write_script(&setting.bin().join("xdg-open"), &script);
    let window = Window::open(setting).await;
    crate::say(&window, QUESTION).await;
    window.see_text("[data-testid=question-url] strong", "example.org").await;
    assert!(!opened.exists(), "opened before the user said yes");
    window.picture("22-address").await;
    window.click("[data-testid=question-accept]").await;
    let seen = || async {
        let text = std::fs::read_to_string(&opened).unwrap_or_default();
        text.contains("https://example.org/first?x=1").then_some(())
    };
    window.until("the address was opened", seen).await;
    window.click("[data-testid=stop]").await;
}

/// A real server of the tests' packages.
pub fn installed(name: &str) -> std::path::PathBuf {
    let path = root().join("tests/clients/node_modules/.bin").join(name);
    assert!(path.exists(), "run `make test`, or `npm ci` in tests/clients");
    path
}

/// The sample notes behind a server that asks before each call.
fn asking_notes(setting: &Setting, mode: &str) {
    let vault = setting.home().join("notes");
    crate::copy(&root().join("samples/vault"), &vault);
    let args = json!([
        root().join("tests/servers/asking.mjs"),
        mode,
        lectern_tests::program("lectern"),
        "vault",
        vault
    ]);
    let server = json!({ "command": "node", "args": args, "trusted": true });
    let settings = json!({ "version": 1, "sample_vault": false, "mcpServers": { "notes": server } });
    write_settings(setting, &settings);
}

/// Says yes to every further question until the turn is over.
async fn answer_all(window: &Window) {
    let script = "
        const card = document.querySelector('[data-testid=question]');
        if (!card) return document.querySelectorAll('[data-testid=stop]').length === 0;
        const field = card.querySelector('[data-field=reader] input');
        if (field && field.value === '') {
            field.value = 'Ada';
            field.dispatchEvent(new Event('input', { bubbles: true }));
        }
        card.querySelector('[data-testid=question-accept]:not(:disabled)')?.click();
        return false;";
    let over = || async { (window.run(script, vec![]).await == true).then_some(()) };
    window.until("the turn is over", over).await;
}

/// A page of the servers' settings.
async fn go(window: &Window, place: &str) {
    window.run("location.hash = `#/settings/servers/${arguments[0]}`", vec![json!(place)]).await;
    window.see("[data-testid=servers-page]").await;
}

/// Puts another text into a field, as a paste does.
async fn refill(window: &Window, css: &str, text: &str) {
    window.see(css).await;
    let script = "
        const field = document.querySelector(arguments[0]);
        field.value = arguments[1];
        field.dispatchEvent(new Event('input', { bubbles: true }));";
    window.run(script, vec![json!(css), json!(text)]).await;
}
