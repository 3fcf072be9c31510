//! What the page can't do, tried from inside the page.

use std::fs;

use lectern_tests::window::{Setting, Window, write_script};
use serde_json::{Value, json};

use crate::write_settings;

/// Calls a command of the shell the way the page's library does.
const INVOKE: &str = "
    const [command, parameters, done] = arguments;
    window.__TAURI_INTERNALS__.invoke(command, parameters).then(
        (value) => done({ value }), (error) => done({ error: error?.code ?? String(error) }));";

async fn invoke(window: &Window, command: &str, parameters: Value) -> Value {
    window.run_async(INVOKE, vec![json!(command), parameters]).await
}

#[tokio::test]
async fn only_the_listed_commands_can_be_called() {
    let window = Window::open(Setting::fresh()).await;
    window.see("[data-testid=composer]").await;
    assert!(invoke(&window, "conversations", json!({})).await["value"].is_array());
    for command in [
        "plugin:opener|open_url",
        "plugin:opener|open_path",
        "plugin:dialog|open",
        "plugin:fs|read_file",
        "plugin:fs|read_text_file",
        "plugin:window|close",
        "plugin:webview|create_webview_window",
        "plugin:event|emit",
        "plugin:window-state|save_window_state",
        "no_such_command",
    ] {
        let parameters =
            json!({ "url": "https://example.org", "path": "/etc/passwd", "options": {}, "label": "main" });
        let answer = invoke(&window, command, parameters).await;
        let error = answer["error"].as_str().unwrap_or_default();
        assert!(error.contains("not allowed") || error.contains("not found"), "{command}: {answer}");
    }
    assert_eq!(window.run("return typeof window.__TAURI__", vec![]).await, json!("undefined"));
}

#[tokio::test]
async fn foreign_content_is_not_loaded() {
    let window = Window::open(Setting::fresh()).await;
    window.see("[data-testid=composer]").await;
    let script = "
        const done = arguments[arguments.length - 1];
        const blocked = [];
        document.addEventListener('securitypolicyviolation', (e) => blocked.push(e.effectiveDirective));
        const add = (name, set) => document.body.append(Object.assign(document.createElement(name), set));
        add('img', { src: 'http://127.0.0.1:9/x.png' });
        add('script', { textContent: 'window.inlineRan = true' });
        add('script', { src: 'http://127.0.0.1:9/x.js' });
        document.body.insertAdjacentHTML('beforeend', '<b onclick=\"window.handlerRan = true\" id=\"h\">x</b>');
        document.getElementById('h').click();
        let evaluated = false;
        try { evaluated = new Function('return true')(); } catch { /* as it should be */ }
        const answer = (fetched) => setTimeout(() => done({
            blocked, fetched, evaluated, inline: !!window.inlineRan, handler: !!window.handlerRan,
        }), 300);
        fetch('http://127.0.0.1:9/').then(() => answer(true), () => answer(false));";
    let seen = window.run_async(script, vec![]).await;
    for what in ["fetched", "evaluated", "inline", "handler"] {
        assert_eq!(seen[what], json!(false), "{what}: {seen}");
    }
    for directive in ["img-src", "connect-src", "script-src-elem", "script-src-attr"] {
        let blocked = seen["blocked"].as_array().unwrap();
        assert!(blocked.iter().any(|b| b.as_str().unwrap().starts_with(directive)), "{directive}: {seen}");
    }
}

#[tokio::test]
async fn the_page_cannot_leave() {
    let window = Window::open(Setting::fresh()).await;
    window.see("[data-testid=composer]").await;
    let home = window.run("return location.origin", vec![]).await;
    for target in ["http://127.0.0.1:9/", "https://example.org/", "file:///etc/passwd", "about:blank"] {
        window.run("location.href = arguments[0]", vec![json!(target)]).await;
        window.run("window.open(arguments[0])", vec![json!(target)]).await;
        // A round trip through the shell: the refused navigation has been decided by then.
        assert!(invoke(&window, "conversations", json!({})).await["value"].is_array(), "{target}");
        assert_eq!(window.run("return location.origin", vec![]).await, home, "{target}");
    }
    window.see("[data-testid=composer]").await;
}

#[tokio::test]
async fn links_open_outside_and_only_those_of_the_web() {
    let setting = Setting::fresh();
    let opened = setting.home().join("opened.txt");
    write_script(
        &setting.bin().join("xdg-open"),
        &format!("#!/bin/sh\necho \"$1\" >> '{}'\n", opened.display()),
    );
    let window = Window::open(setting).await;
    window.see("[data-testid=composer]").await;
    for refused in ["file:///etc/passwd", "javascript:alert(1)", "/etc/passwd", "ssh://host"] {
        let answer = invoke(&window, "open_link", json!({ "url": refused })).await;
        assert_eq!(answer, json!({ "error": "link_refused" }), "{refused}");
    }
    let answer = invoke(&window, "open_link", json!({ "url": "https://example.org/a?b=c" })).await;
    assert_eq!(answer, json!({ "value": null }));
    let lines = window
        .until("the link is opened", || async { fs::read_to_string(&opened).ok().filter(|t| !t.is_empty()) });
    assert_eq!(lines.await.trim(), "https://example.org/a?b=c");
}

#[tokio::test]
async fn markup_in_messages_stays_text() {
    let window = Window::open(Setting::fresh()).await;
    let hostile =
        "<img src=x onerror=\"window.hacked=1\"><script>window.hacked=1</script> [x](javascript:alert(1))";
    crate::say(&window, hostile).await;
    // What the model makes of it is its own affair; the title, the list and the message show it by now.
    window.see_text("[data-testid=message-user]", "onerror").await;
    assert_eq!(window.run("return window.hacked ?? null", vec![]).await, Value::Null);
    assert_eq!(window.count("[data-testid=message-user] img, [data-testid=message-user] script").await, 0);
    assert_eq!(window.count("a[href^='javascript']").await, 0);
}

#[tokio::test]
async fn secrets_of_the_settings_never_reach_the_page() {
    let setting = Setting::fresh();
    let env = json!({ "API_KEY": "sk-very-secret-value" });
    let servers = json!({ "broken": { "command": "no-such-program-anywhere", "env": env } });
    write_settings(&setting, &json!({ "version": 1, "mcpServers": servers }));
    let window = Window::open(setting).await;
    window.see("[data-testid=composer]").await;
    let view = invoke(&window, "app_view", json!({})).await;
    assert!(view.to_string().contains("broken"), "{view}");
    assert!(!view.to_string().contains("sk-very-secret-value"));
}
