//! The local API, as a person switches it on, gives a program a key, and answers for it.

use std::net::TcpListener;
use std::process::Stdio;

use lectern_tests::window::{Setting, Window};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::write_settings;

const CREATE: &str = "Create a note Lists/Shopping.md with the text: oats, lemons and candles";

/// What a program is answered: the status and the body.
struct Answer {
    status: u16,
    body: Value,
}

/// Asks as a script does, with curl.
async fn curl(url: &str, key: &str, path: &str, body: Option<&Value>) -> Option<Answer> {
    let mut command = Command::new("curl");
    command.args(["--silent", "--max-time", "300", "--write-out", "\n%{http_code}"]);
    command.args(["--header", &format!("Authorization: Bearer {key}")]);
    if let Some(body) = body {
        command.args(["--header", "Content-Type: application/json", "--data", &body.to_string()]);
    }
    command.arg(format!("{url}{path}")).stdin(Stdio::null()).kill_on_drop(true);
    let output = command.output().await.expect("curl is installed");
    if !output.status.success() {
        return None;
    }
    let text = String::from_utf8(output.stdout).unwrap();
    let (body, status) = text.rsplit_once('\n').unwrap();
    Some(Answer { status: status.parse().unwrap(), body: serde_json::from_str(body).unwrap_or_default() })
}

/// A port that nobody has; the tests of other programs on this machine may take the usual one.
fn free_port() -> u16 {
    TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port()
}

fn with_port(port: u16) -> Setting {
    let setting = Setting::fresh();
    write_settings(&setting, &json!({ "version": 1, "api": { "port": port } }));
    setting
}

async fn to_the_api(window: &Window) {
    window.see("[data-testid=composer]").await;
    window.run("location.hash = '#/settings/api'", vec![]).await;
    // What is known of it comes a moment later than the page.
    window.see("[data-testid=api-page]:has([data-testid=api-switch])").await;
}

/// Switches it on and tells where it is.
async fn switched_on(window: &Window) -> String {
    // The box itself is invisible: what is seen of it is drawn by its neighbour.
    window.run("document.querySelector('[data-testid=api-switch]').click()", vec![]).await;
    window.see("[data-testid=api-page][data-state=running]").await;
    let says = window.texts("[data-testid=api-status]").await.join(" ");
    let at = says.find("http://").unwrap_or_else(|| panic!("no address: {says}"));
    says[at..].split_whitespace().next().unwrap().to_owned()
}

/// Makes a key as a person does and reads it from the screen.
async fn made_key(window: &Window, name: &str, server_tools: bool) -> String {
    window.click("[data-testid=api-add-key]").await;
    window.type_into("[data-testid=key-name]", name).await;
    if server_tools {
        window.click("[data-testid=key-server-tools]").await;
    }
    window.click("[data-testid=key-make]").await;
    window.see("[data-testid=api-secret]").await;
    window.texts("[data-testid=api-secret]").await.concat()
}

fn question(text: &str) -> Value {
    json!({ "model": "starter", "messages": [{ "role": "user", "content": text }] })
}

#[tokio::test]
async fn it_is_switched_on_asked_with_a_key_of_its_own_and_switched_off() {
    let port = free_port();
    let window = Window::open(with_port(port)).await;
    to_the_api(&window).await;
    window.see("[data-testid=api-page][data-state=off]").await;
    window.see("[data-testid=api-no-keys]").await;
    window.picture("30-api-off").await;
    window.resize(640, 480).await;
    window.picture("30-api-off-640x480").await;
    let fits = "return document.documentElement.scrollWidth <= window.innerWidth";
    assert_eq!(window.run(fits, vec![]).await, true);
    window.resize(1240, 820).await;
    let url = switched_on(&window).await;
    assert_eq!(url, format!("http://127.0.0.1:{port}"));

    let refused = curl(&url, "sk-lectern-nobody", "/v1/models", None).await.unwrap();
    assert_eq!((refused.status, refused.body["error"]["code"].as_str()), (401, Some("invalid_api_key")));
    let key = made_key(&window, "script", false).await;
    // There is no keyring in here, and that is said.
    window.see_text("[data-testid=key-session]", "no keyring").await;
    window.see_text("[data-testid=api-example]", &key).await;
    window.picture("31-api-key").await;
    let models = curl(&url, &key, "/v1/models", None).await.unwrap();
    assert_eq!((models.status, models.body["data"][0]["id"].as_str()), (200, Some("starter")));
    let answer = curl(&url, &key, "/v1/chat/completions", Some(&question("Hello"))).await.unwrap();
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert!(answer.body["choices"][0]["message"]["content"].is_string(), "{}", answer.body);

    // The key is on the screen only until it was copied, and in no file.
    window.click("[data-testid=key-copied]").await;
    window.see_no("[data-testid=api-secret]").await;
    assert!(!holds(&window.home(), &key), "the key is in a file");
    let page =
        window.run("return document.documentElement.outerHTML + JSON.stringify({...localStorage})", vec![]);
    assert!(!page.await.as_str().unwrap_or_default().contains(&key));

    window.click("[data-testid=tab-numbers]").await;
    window.see("[data-testid=numbers]").await;
    window.see_text("[data-testid=numbers-addresses]", "/v1/chat/completions").await;
    window.see_text("[data-testid=numbers-errors]", "invalid_api_key").await;
    window.picture("32-api-numbers").await;
    window.click("[data-testid=tab-overview]").await;

    window.click("[data-testid=key-revoke]").await;
    window.click("[data-testid=key-revoke-yes]").await;
    window.see("[data-testid=api-no-keys]").await;
    assert_eq!(curl(&url, &key, "/v1/models", None).await.unwrap().status, 401);

    window.run("document.querySelector('[data-testid=api-switch]').click()", vec![]).await;
    window.see("[data-testid=api-page][data-state=off]").await;
    assert!(curl(&url, &key, "/v1/models", None).await.is_none(), "somebody still listens");
}

/// The status that a web page of this origin gets.
async fn from_page(url: &str, key: &str, origin: &str) -> Option<u16> {
    let mut command = Command::new("curl");
    command.args(["--silent", "--output", "/dev/null", "--write-out", "%{http_code}"]);
    command.args([
        "--header",
        &format!("Authorization: Bearer {key}"),
        "--header",
        &format!("Origin: {origin}"),
    ]);
    let output = command.arg(format!("{url}/v1/models")).output().await.expect("curl is installed");
    String::from_utf8_lossy(&output.stdout).parse().ok().filter(|status| *status > 0)
}

/// Waits until a web page gets this status: what is served begins anew when the list changes.
async fn until_page_gets(url: &str, key: &str, origin: &str, wanted: u16) {
    let mut last = None;
    for _ in 0..100 {
        last = from_page(url, key, origin).await;
        if last == Some(wanted) {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    panic!("{origin} gets {last:?}, not {wanted}");
}

#[tokio::test]
async fn a_web_page_may_ask_once_it_is_listed() {
    const PAGE: &str = "https://app.example.org";
    let window = Window::open(with_port(free_port())).await;
    to_the_api(&window).await;
    let url = switched_on(&window).await;
    let key = made_key(&window, "page", false).await;
    window.click("[data-testid=key-copied]").await;
    until_page_gets(&url, &key, PAGE, 403).await;

    window.type_into("[data-testid=api-origins] input", "app example").await;
    window.click("[data-testid=api-origins] form button").await;
    window.see_text("[data-testid=api-origins]", "app example").await;
    let empty = "const field = document.querySelector('[data-testid=api-origins] input'); field.value = ''; \
                 field.dispatchEvent(new Event('input'))";
    window.run(empty, vec![]).await;
    window.type_into("[data-testid=api-origins] input", PAGE).await;
    window.click("[data-testid=api-origins] form button").await;
    window.see(&format!("[data-testid=api-origins] [data-name=\"{PAGE}\"]")).await;
    window.picture("34-api-callers").await;
    until_page_gets(&url, &key, PAGE, 200).await;
    until_page_gets(&url, &key, "https://elsewhere.example.org", 403).await;

    window.click("[data-testid=api-origins] li button").await;
    window.see_no("[data-testid=api-origins] li").await;
    until_page_gets(&url, &key, PAGE, 403).await;
}

#[tokio::test]
async fn a_tool_that_writes_waits_for_the_window() {
    let window = Window::open(with_port(free_port()).with("GTK_THEME", "Adwaita:dark")).await;
    let note = window.home().join("sample-vault/Lists/Shopping.md");
    to_the_api(&window).await;
    let url = switched_on(&window).await;
    let key = made_key(&window, "Big-AGI", true).await;
    // Whatever page is shown, it is asked there.
    window.run("location.hash = '#/'", vec![]).await;
    for (button, runs) in [("approval-deny", false), ("approval-once", true)] {
        let (url, key) = (url.clone(), key.clone());
        let asked = tokio::spawn(async move {
            curl(&url, &key, "/v1/chat/completions", Some(&question(CREATE))).await.unwrap()
        });
        window.see_text("[data-testid=approval-waiting]", "Big-AGI").await;
        window.see_text("[data-testid=approval-waiting]", "oats, lemons and candles").await;
        assert!(!note.exists(), "written before it was allowed");
        window.picture(&format!("33-{button}")).await;
        window.click(&format!("[data-testid={button}]")).await;
        window.see_no("[data-testid=approvals]").await;
        let answer = asked.await.unwrap();
        assert_eq!(answer.status, 200, "{}", answer.body);
        assert_eq!(note.exists(), runs);
    }
}

#[tokio::test]
async fn a_port_that_is_taken_is_said_with_the_way_out_and_the_choice_is_remembered() {
    let taken = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = taken.local_addr().unwrap().port();
    let window = Window::open(with_port(port)).await;
    to_the_api(&window).await;
    window.run("document.querySelector('[data-testid=api-switch]').click()", vec![]).await;
    window.see("[data-testid=api-page][data-state=failed]").await;
    window.see_text("[data-testid=error]", "Another program").await;
    window.picture("34-api-port-taken").await;
    drop(taken);
    window.press("[data-testid=error] button", "Try again").await;
    window.see("[data-testid=api-page][data-state=running]").await;

    // Other computers are let in only after a word about it; here nobody agrees.
    let elsewhere = "
        const field = document.querySelector('[data-testid=api-bind]');
        field.value = '0.0.0.0';
        field.dispatchEvent(new Event('input', { bubbles: true }));";
    window.run(elsewhere, vec![]).await;
    window.click("[data-testid=api-apply]").await;
    window.see("[data-testid=api-beyond]").await;
    let settings = std::fs::read_to_string(window.home().join("settings.json")).unwrap();
    assert!(!settings.contains("0.0.0.0"), "{settings}");
    window.click("[data-testid=api-beyond] .deny").await;
    window.see_no("[data-testid=api-beyond]").await;

    // It is on again after a crash of the machine, without anybody who looks.
    let window = window.reopen().await;
    let url = format!("http://127.0.0.1:{port}");
    let answers = || async { curl(&url, "nobody", "/v1/models", None).await.map(|answer| answer.status) };
    assert_eq!(window.until("the API answers", answers).await, 401);
}

/// Whether any file below a folder holds this text.
fn holds(folder: &std::path::Path, text: &str) -> bool {
    let Ok(entries) = std::fs::read_dir(folder) else { return false };
    entries.flatten().any(|entry| {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => holds(&path, text),
            Ok(kind) if kind.is_file() => std::fs::read(&path)
                .is_ok_and(|bytes| bytes.windows(text.len()).any(|found| found == text.as_bytes())),
            Ok(_) | Err(_) => false,
        }
    })
}
