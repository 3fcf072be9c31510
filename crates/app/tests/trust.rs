//! Approvals, permissions and the log of them, as a shell meets them: a real server, a home on disk.

#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

use std::path::Path;
use std::time::Duration;

use lectern_app::audit::AuditFilter;
use lectern_app::view::{ApprovalView, AuditAbout, ServerState, ServerView, ToolView};
use lectern_app::{Engine, EngineOptions, Home};
use lectern_core::{RuleEffect, ServerId, ToolName};
use serde_json::{Value, json};

struct House {
    folder: tempfile::TempDir,
}

impl House {
    /// A home whose settings somebody has written by hand.
    fn with_args(args: &[&str]) -> Self {
        let house = Self { folder: tempfile::tempdir().unwrap() };
        house.write(args, json!({}));
        house
    }

    fn write(&self, args: &[&str], more: Value) {
        let binary = lectern_fixture_server::binary();
        let mut settings = json!({"version": 1, "sample_vault": false,
            "mcpServers": {"fx": {"command": binary, "args": args}}});
        settings.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        std::fs::write(self.path("settings.json"), settings.to_string()).unwrap();
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    async fn open(&self) -> Engine {
        let home = Home::open(Some(self.folder.path())).unwrap();
        let engine = Engine::open(home, EngineOptions::default()).unwrap();
        engine.servers_ready().await;
        engine
    }
}

fn fx() -> ServerId {
    "fx".into()
}

fn server(engine: &Engine) -> ServerView {
    engine.servers().into_iter().find(|server| server.id == fx()).unwrap()
}

fn tool(engine: &Engine, name: &str) -> ToolView {
    server(engine).tools.into_iter().find(|tool| tool.spec.name.as_str() == name).unwrap()
}

/// Waits until the server is as wanted.
async fn until(engine: &Engine, wanted: impl Fn(&ServerView) -> bool) -> ServerView {
    let mut news = engine.subscribe();
    let waiting = async {
        loop {
            let server = server(engine);
            if wanted(&server) {
                return server;
            }
            news.next().await.unwrap();
        }
    };
    tokio::time::timeout(Duration::from_secs(120), waiting).await.expect("the server never gets there")
}

/// As a person does who looks at what would run.
fn approve(engine: &Engine) {
    match server(engine).approval {
        ApprovalView::New { digest, .. } | ApprovalView::Changed { digest, .. } => {
            engine.approve_server(&fx(), &digest).unwrap();
        }
        ApprovalView::Approved => panic!("there is nothing to approve"),
    }
}

fn is_ready(server: &ServerView) -> bool {
    matches!(server.state, ServerState::Ready | ServerState::Degraded { .. })
}

fn settings(house: &House) -> Value {
    serde_json::from_str(&std::fs::read_to_string(house.path("settings.json")).unwrap()).unwrap()
}

fn echo_file(house: &House, text: &str) -> String {
    std::fs::write(house.path("echo"), text).unwrap();
    house.path("echo").display().to_string()
}

fn noted(engine: &Engine) -> Vec<(AuditAbout, String)> {
    let entries = engine.audit(&AuditFilter::default()).unwrap();
    entries.into_iter().map(|entry| (entry.about, entry.rule.unwrap_or_default())).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_in_hand_written_settings_starts_when_it_is_approved_and_again_after_a_restart() {
    let house = House::with_args(&["--mode", "ok"]);
    let engine = house.open().await;
    assert_eq!(server(&engine).state, ServerState::NeedsApproval);
    assert!(matches!(server(&engine).approval, ApprovalView::New { .. }));
    approve(&engine);
    until(&engine, is_ready).await;
    engine.shutdown().await;

    let engine = house.open().await;
    assert!(is_ready(&server(&engine)));
    engine.shutdown().await;

    // The same name, another program line.
    house.write(&["--mode", "modern"], json!({}));
    let engine = house.open().await;
    assert_eq!(server(&engine).state, ServerState::NeedsApproval);
    let ApprovalView::Changed { before, after, .. } = server(&engine).approval else { panic!() };
    assert!(before.ends_with("--mode ok") && after.ends_with("--mode modern"), "{before} / {after}");
    engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trust_that_was_written_by_hand_is_asked_about() {
    let house = House::with_args(&["--mode", "ok"]);
    let engine = house.open().await;
    approve(&engine);
    until(&engine, is_ready).await;
    let view = engine.set_server_trusted(&fx(), true).await.unwrap();
    assert!(view.trusted && view.approval == ApprovalView::Approved, "the user said it here");
    let view = engine.set_server_trusted(&fx(), false).await.unwrap();
    assert_eq!(view.approval, ApprovalView::Approved);
    engine.shutdown().await;

    let mut by_hand = settings(&house);
    by_hand["mcpServers"]["fx"]["trusted"] = json!(true);
    by_hand["mcpServers"]["fx"]["lectern"]["trusted"] = json!(true);
    std::fs::write(house.path("settings.json"), by_hand.to_string()).unwrap();
    let engine = house.open().await;
    assert_eq!(server(&engine).state, ServerState::NeedsApproval, "{by_hand}");
    // Switching it off and on is no approval.
    engine.set_server_enabled(&fx(), false).await.unwrap();
    engine.set_server_enabled(&fx(), true).await.unwrap();
    engine.servers_ready().await;
    assert!(server(&engine).enabled && server(&engine).state == ServerState::NeedsApproval);
    engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_tool_is_shown_with_its_change_and_comes_back_when_it_is_accepted() {
    let house = House::with_args(&[]);
    let file = echo_file(&house, "Says it.");
    house.write(&["--echo-file", &file], json!({}));
    let engine = house.open().await;
    approve(&engine);
    until(&engine, is_ready).await;
    engine.shutdown().await;

    echo_file(&house, "Says it.\u{200b} And sends it.");
    let engine = house.open().await;
    let echo = tool(&engine, "fx__echo");
    assert!(!echo.enabled);
    assert_eq!(echo.visible_description, "Says it.⟦U+200B⟧ And sends it.");
    let change = echo.changed.unwrap();
    assert_eq!(change.before["description"], "Says it.");
    assert_eq!(change.after["description"], "Says it.⟦U+200B⟧ And sends it.");
    assert!(tool(&engine, "fx__add").enabled && tool(&engine, "fx__add").changed.is_none());
    engine.accept_tool(&"fx__echo".into(), &change.digest).unwrap();
    let after = until(&engine, |server| server.tools.iter().all(|tool| tool.changed.is_none())).await;
    assert_eq!((after.state, after.starts), (ServerState::Ready, 1));
    let again = engine.accept_tool(&"fx__echo".into(), &change.digest).unwrap_err();
    assert_eq!(again.code, "nothing_to_accept");
    engine.shutdown().await;

    let engine = house.open().await;
    assert!(tool(&engine, "fx__echo").enabled, "accepted once and for all");
    engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn permissions_are_kept_logged_and_restart_nothing() {
    let house = House::with_args(&[]);
    let engine = house.open().await;
    approve(&engine);
    until(&engine, is_ready).await;
    let echo = ToolName::from("fx__echo");
    engine.set_tool_permission(&echo, Some(RuleEffect::Allow)).unwrap();
    engine.set_tool_permission(&echo, Some(RuleEffect::Deny)).unwrap();
    engine.set_server_permission(&fx(), Some(RuleEffect::Ask)).unwrap();
    assert_eq!(tool(&engine, "fx__echo").permission, Some(RuleEffect::Deny));
    assert_eq!(tool(&engine, "fx__add").permission, None);
    assert_eq!((server(&engine).permission, server(&engine).starts), (Some(RuleEffect::Ask), 1));
    let unknown = engine.set_tool_permission(&"fx__nothing".into(), None).unwrap_err();
    assert_eq!(unknown.code, "unknown_tool");
    let expected = ["set to allow", "set to deny", "set to ask"];
    let of_permissions = noted(&engine).into_iter().filter(|(about, _)| *about == AuditAbout::Permission);
    assert!(of_permissions.map(|(_, what)| what).eq(expected));
    engine.shutdown().await;

    let engine = house.open().await;
    assert_eq!(tool(&engine, "fx__echo").permission, Some(RuleEffect::Deny));
    engine.set_tool_permission(&echo, None).unwrap();
    assert_eq!(settings(&house)["rules"].as_array().unwrap().len(), 1);
    engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_server_of_a_removed_ones_name_inherits_nothing() {
    let house = House::with_args(&["--mode", "ok"]);
    let engine = house.open().await;
    approve(&engine);
    until(&engine, is_ready).await;
    engine.set_tool_permission(&"fx__echo".into(), Some(RuleEffect::Allow)).unwrap();
    engine.set_tool_permission(&"fx__die".into(), Some(RuleEffect::Deny)).unwrap();
    let token = engine.remove_server(&fx()).await.unwrap();
    let back = engine.restore_server(&token).await.unwrap();
    assert_eq!(back.approval, ApprovalView::Approved, "what was approved comes back so");
    assert_eq!(until(&engine, is_ready).await.id, fx());
    assert_eq!(tool(&engine, "fx__echo").permission, Some(RuleEffect::Allow));
    engine.remove_server(&fx()).await.unwrap();
    engine.shutdown().await;

    // Somebody writes a server of that name, and the user approves it.
    let mut by_hand = settings(&house);
    by_hand["mcpServers"] =
        json!({"fx": {"command": lectern_fixture_server::binary(), "args": ["--mode", "modern"]}});
    std::fs::write(house.path("settings.json"), by_hand.to_string()).unwrap();
    let engine = house.open().await;
    assert!(matches!(server(&engine).approval, ApprovalView::New { .. }));
    approve(&engine);
    until(&engine, is_ready).await;
    assert_eq!(tool(&engine, "fx__echo").permission, None);
    assert_eq!(tool(&engine, "fx__die").permission, Some(RuleEffect::Deny), "prohibitions stay");
    let about = noted(&engine);
    assert!(about.contains(&(AuditAbout::Server, "removed".to_owned())), "{about:?}");
    assert!(about.contains(&(AuditAbout::Permission, "permissions dropped".to_owned())), "{about:?}");
    engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_of_a_file_that_was_named_run_and_leave_no_approval() {
    let house = House::with_args(&[]);
    let file = house.path("servers.json");
    let servers = json!({"mcpServers": {"fx": {"command": lectern_fixture_server::binary()}}});
    std::fs::write(&file, servers.to_string()).unwrap();
    let open = |home: &Path| {
        let options = EngineOptions { mcp_config: Some(file.clone()), ..EngineOptions::default() };
        Engine::open(Home::open(Some(home)).unwrap(), options).unwrap()
    };
    let engine = open(house.folder.path());
    engine.servers_ready().await;
    assert!(is_ready(&server(&engine)));
    engine.shutdown().await;
    let engine = house.open().await;
    assert_eq!(server(&engine).state, ServerState::NeedsApproval);
    engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_approved_is_what_was_shown() {
    let house = House::with_args(&[]);
    let file = echo_file(&house, "Says it.");
    house.write(&["--echo-file", &file], json!({}));
    let engine = house.open().await;
    let refused = engine.approve_server(&fx(), "what somebody else saw").unwrap_err();
    assert_eq!(refused.code, "changed_since_shown");
    assert_eq!(server(&engine).state, ServerState::NeedsApproval);
    approve(&engine);
    until(&engine, is_ready).await;
    engine.shutdown().await;

    // A tool changes, is looked at, and changes again before the click.
    echo_file(&house, "Says it twice.");
    let engine = house.open().await;
    let looked_at = tool(&engine, "fx__echo").changed.unwrap();
    echo_file(&house, "Says it, and sends it.");
    engine.restart_server(&fx()).unwrap();
    let says = |server: &ServerView, text: &str| {
        server.tools.iter().any(|tool| tool.changed.is_some() && tool.visible_description == text)
    };
    until(&engine, |server| is_ready(server) && says(server, "Says it, and sends it.")).await;
    let refused = engine.accept_tool(&"fx__echo".into(), &looked_at.digest).unwrap_err();
    assert_eq!(refused.code, "changed_since_shown");
    assert!(!tool(&engine, "fx__echo").enabled);
    let now = tool(&engine, "fx__echo").changed.unwrap();
    assert_eq!(now.after["description"], "Says it, and sends it.");
    engine.accept_tool(&"fx__echo".into(), &now.digest).unwrap();
    until(&engine, |server| server.tools.iter().all(|tool| tool.changed.is_none())).await;
    engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_running_server_whose_entry_is_edited_stops_and_waits() {
    let house = House::with_args(&["--mode", "ok"]);
    let engine = house.open().await;
    approve(&engine);
    until(&engine, is_ready).await;
    let mut edited = settings(&house);
    edited["mcpServers"]["fx"]["args"] = json!(["--mode", "modern"]);
    std::fs::write(house.path("settings.json"), edited.to_string()).unwrap();
    let waits = until(&engine, |server| server.state == ServerState::NeedsApproval).await;
    let ApprovalView::Changed { before, after, .. } = waits.approval else { panic!("{waits:?}") };
    assert!(before.ends_with("--mode ok") && after.ends_with("--mode modern"), "{before} / {after}");
    assert!(waits.tools.is_empty(), "nothing of it is offered");

    // As it was, it runs again without a word; what does not change what would run asks nothing.
    edited["mcpServers"]["fx"]["args"] = json!(["--mode", "ok"]);
    edited["mcpServers"]["fx"]["timeout"] = json!(90);
    std::fs::write(house.path("settings.json"), edited.to_string()).unwrap();
    let back = until(&engine, |server| is_ready(server) && server.timeout_s == Some(90)).await;
    assert_eq!(back.approval, ApprovalView::Approved);
    // Half a file, as an editor may leave it for a moment, changes nothing.
    std::fs::write(house.path("settings.json"), "{\"mcpServers\": {").unwrap();
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert!(is_ready(&server(&engine)));
    engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rule_that_was_written_by_hand_holds_is_shown_and_logged_once() {
    let house = House::with_args(&[]);
    let echo = ToolName::from("fx__echo");
    let rules = json!([{"matches": {"on": "tool", "tool": "fx__echo"}, "effect": "allow"}]);
    house.write(&[], json!({ "rules": rules }));
    let found = |engine: &Engine| {
        let entries = engine.audit(&AuditFilter::default()).unwrap();
        let found =
            entries.into_iter().filter(|entry| entry.rule.as_deref() == Some("found in the settings: allow"));
        found.map(|entry| (entry.server.unwrap(), entry.tool)).collect::<Vec<_>>()
    };
    for _ in 0..2 {
        let engine = house.open().await;
        assert_eq!(found(&engine), [(fx(), Some(echo.clone()))]);
        assert_eq!(engine.rules().len(), 1);
        engine.shutdown().await;
    }
    // While it runs: another rule, and then none.
    let engine = house.open().await;
    let mut edited = settings(&house);
    edited["rules"] = json!([{"matches": {"on": "server", "server": "fx"}, "effect": "allow"}]);
    std::fs::write(house.path("settings.json"), edited.to_string()).unwrap();
    until(&engine, |server| server.permission == Some(RuleEffect::Allow)).await;
    assert_eq!(found(&engine)[1..], [(fx(), None)]);
    edited["rules"] = json!([]);
    std::fs::write(house.path("settings.json"), edited.to_string()).unwrap();
    until(&engine, |server| server.permission.is_none()).await;
    // What is set here was not found.
    engine.set_server_permission(&fx(), Some(RuleEffect::Allow)).unwrap();
    engine.shutdown().await;
    let engine = house.open().await;
    assert_eq!(found(&engine).len(), 2);
    engine.shutdown().await;
}
