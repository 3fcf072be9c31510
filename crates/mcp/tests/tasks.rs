//! Calls that become tasks, against a server that others wrote.

mod support;

use std::path::PathBuf;
use std::time::Duration;

use lectern_core::{CallNews, ToolOutcome};
use lectern_mcp::{Host, ServerConfig};
use serde_json::{Value, json};
use support::*;

const RESEARCH: &str = "all__simulate-research-query";

/// A real server-everything, or none, said loudly.
async fn everything() -> Option<Host> {
    let clients = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/clients");
    let path = clients.join("node_modules/.bin/mcp-server-everything");
    if !path.exists() {
        eprintln!("\n!!! SKIPPED: run `npm ci` in {}\n", clients.display());
        return None;
    }
    let host = host_with(ServerConfig::new("all", path.to_str()?, ["stdio"])).await;
    // Its tools of this kind come once it knows what the client can do.
    let mut news = host.subscribe();
    while !lectern_core::ToolProvider::tools(&host).iter().any(|tool| tool.name.as_str() == RESEARCH) {
        tokio::time::timeout(Duration::from_secs(60), news.recv()).await.expect("its tools change").ok();
    }
    Some(host)
}

fn methods(called: &Called) -> Vec<&str> {
    called.wire().iter().filter_map(|(_, message)| message["method"].as_str()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_is_followed_to_its_result() {
    let Some(host) = everything().await else { return };
    let called = call(&host, RESEARCH, json!({"topic": "bread"})).await;
    assert_eq!(called.result.outcome, ToolOutcome::Succeeded, "{}", called.text());
    assert!(called.text().contains("bread"), "{}", called.text());
    assert!(called.logs().iter().any(|line| line.starts_with("[task] working")), "{:?}", called.logs());
    let sent = called.wire()[0].1;
    assert!(sent["params"]["task"]["ttl"].is_number(), "{sent}");
    host.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_cancels_the_task() {
    let Some(host) = everything().await else { return };
    let mut calling = start_call(&host, RESEARCH, json!({"topic": "bread"}));
    loop {
        match calling.news.recv().await.expect("the call still runs") {
            CallNews::Log(line) if line.starts_with("[task]") => break,
            CallNews::Wire(..) | CallNews::Progress(_) | CallNews::Log(_) => {}
        }
    }
    calling.cancel.cancel();
    let called = calling.finish().await;
    assert_eq!(called.result.outcome, ToolOutcome::Cancelled);
    assert_eq!(methods(&called), ["tasks/cancel"]);
    let cancel: &Value = called.wire()[0].1;
    assert!(cancel["params"]["taskId"].is_string());
    host.close().await;
}
