//! Real servers that work in a folder of each session.

use std::path::Path;

use lectern_app::view::{ApprovalView, ServerState, ServerView};
use lectern_app::{Engine, EngineOptions, Home};
use lectern_core::testing::{calls, says};
use lectern_core::{Rule, RuleEffect, RuleMatch};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::house::{House, Plan, ask, until, with};

/// An engine whose servers stand in a file that was named for this run: `fx` works in folders, `one` does not.
async fn engine(home: &TempDir) -> Engine {
    let binary = lectern_fixture_server::binary();
    let env = json!({"PLACE": "${LECTERN_WORKSPACE}"});
    let servers = json!({"mcpServers": {
        "fx": {"command": binary, "env": env, "cwd": "${LECTERN_WORKSPACE}"},
        "one": {"command": binary},
    }});
    let file = home.path().join("servers.json");
    std::fs::write(&file, servers.to_string()).unwrap();
    let rule = Rule { matches: RuleMatch::Everything, effect: RuleEffect::Allow };
    let options = EngineOptions { mcp_config: Some(file), rules: vec![rule], ..EngineOptions::default() };
    let engine = Engine::open(Home::open(Some(home.path())).unwrap(), options).unwrap();
    engine.servers_ready().await;
    engine
}

/// The same servers in the settings, approved, and believed in what they say of their tools.
async fn trusting(home: &TempDir) -> Engine {
    let binary = lectern_fixture_server::binary();
    let settings = json!({"version": 1, "sample_vault": false, "mcpServers": {
        "fx": {"command": binary, "cwd": "${LECTERN_WORKSPACE}", "trusted": true},
        "one": {"command": binary, "trusted": true},
    }});
    std::fs::write(home.path().join("settings.json"), settings.to_string()).unwrap();
    let engine = Engine::open(Home::open(Some(home.path())).unwrap(), EngineOptions::default()).unwrap();
    engine.servers_ready().await;
    for server in engine.servers() {
        let ApprovalView::New { digest, .. } = server.approval else { panic!("{server:?}") };
        engine.approve_server(&server.id, &digest).unwrap();
    }
    let runs = |server: ServerView| matches!(server.state, ServerState::Ready | ServerState::Degraded { .. });
    until(|| engine.servers().into_iter().all(runs)).await;
    engine
}

async fn environment(house: &House, server: &str, session: &str) -> Value {
    let text = house.called(&format!("{server}__env"), &json!({"session_id": session})).await;
    serde_json::from_str(&text).unwrap()
}

#[tokio::test]
async fn a_server_that_works_in_folders_has_a_process_for_each_session() {
    let home = tempfile::tempdir().unwrap();
    let engine = engine(&home).await;
    let replies = [calls("fx__env", json!({})), says("seen")];
    let house = Plan { engine: Some(engine.clone()), ..Plan::of(replies) }.build().await;
    let values = house.stream(&with(ask("hi"), json!({"session_id": "s"}))).await;
    let workspace = values.last().unwrap()["tool_execution"]["workspace_path"].as_str().unwrap().to_owned();
    let result = values.iter().find(|value| value["type"] == "tool_result").unwrap();
    let env: Value = serde_json::from_str(result["result"]["content"].as_str().unwrap()).unwrap();
    assert_eq!(env["PLACE"], json!(workspace), "{result:#}");
    assert_eq!(environment(&house, "fx", "s").await["PLACE"], json!(workspace));
    let other = environment(&house, "fx", "t").await["PLACE"].clone();
    assert_ne!(other, json!(workspace));
    assert!(Path::new(other.as_str().unwrap()).is_dir());
    // Its folder is its only root.
    let ask = json!({"arguments": {"method": "roots/list"}, "session_id": "s"});
    let roots: Value = serde_json::from_str(&house.called("fx__ask", &ask).await).unwrap();
    let roots = roots["result"]["roots"].as_array().unwrap().clone();
    assert_eq!(roots.len(), 1);
    assert!(roots[0]["uri"].as_str().unwrap().ends_with(&workspace.replace('\\', "/")), "{roots:?}");
    // The other server is the same for everybody.
    assert!(environment(&house, "one", "s").await.get("PLACE").is_none());
    // A deleted session's folder is gone, its processes too.
    assert_eq!(house.delete("/api/sessions/s").send().await.unwrap().status(), 204);
    assert!(!Path::new(&workspace).exists());
    engine.shutdown().await;
}

#[tokio::test]
async fn what_a_folder_gave_is_not_given_again_to_another() {
    let home = tempfile::tempdir().unwrap();
    let engine = trusting(&home).await;
    let house = Plan { engine: Some(engine.clone()), ..Plan::of([]) }.build().await;
    let sum = async |server: &str, session: Value| {
        let body = with(json!({"arguments": {"a": 1, "b": 2}}), session);
        let said = house.call(&format!("{server}__add"), &body).await;
        said.json::<Value>().await.unwrap()["tool_call_id"].clone()
    };
    let unnamed = || json!({});
    assert_eq!(sum("one", unnamed()).await, sum("one", unnamed()).await, "its server knows no folder");
    assert_ne!(sum("fx", unnamed()).await, sum("fx", unnamed()).await);
    let named = || json!({"session_id": "s"});
    assert_eq!(sum("fx", named()).await, sum("fx", named()).await, "one folder");
    engine.shutdown().await;
}

#[tokio::test]
async fn a_result_that_is_long_comes_whole() {
    let home = tempfile::tempdir().unwrap();
    let engine = engine(&home).await;
    let house = Plan { engine: Some(engine.clone()), ..Plan::of([]) }.build().await;
    let text = house.called("one__big", &json!({"arguments": {"characters": 3_000_000}})).await;
    assert_eq!(text.len(), 3_000_000);
    engine.shutdown().await;
}

#[tokio::test]
async fn a_server_that_dies_under_a_call_is_an_error_of_that_call() {
    let home = tempfile::tempdir().unwrap();
    let engine = engine(&home).await;
    let house = Plan { engine: Some(engine.clone()), ..Plan::of([]) }.build().await;
    let response = house.call("fx__die", &json!({"session_id": "s"})).await;
    let (status, said) = crate::house::error(response).await;
    assert_eq!((status, &said["code"], &said["tool_name"]), (422, &json!("tool_failed"), &json!("fx__die")));
    // Another session has another process.
    assert!(environment(&house, "fx", "t").await["PLACE"].is_string());
    engine.shutdown().await;
}
