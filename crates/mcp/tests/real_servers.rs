//! Servers that others wrote: the npm and PyPI packages of `tests/clients`.

mod support;

use std::path::PathBuf;

use lectern_core::{Content, ServerId, ToolOutcome, ToolProvider};
use lectern_mcp::{Host, ServerConfig, ServerState};
use serde_json::json;
use support::*;

/// The command of an installed package, or none, said loudly.
fn package(command: &str) -> Option<String> {
    let clients = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/clients");
    let path = clients.join("node_modules/.bin").join(command);
    if !path.exists() {
        eprintln!("\n!!! SKIPPED: {} is not installed; run `npm ci` in {}\n", command, clients.display());
        return None;
    }
    Some(path.to_str()?.to_owned())
}

/// The command of a Python server, or none, said loudly.
fn python(command: &str) -> Option<String> {
    let test = std::env::current_exe().ok()?;
    // `<target>/<profile>/deps/<test>`
    let path = test.ancestors().nth(3)?.join("tools/servers/bin").join(command);
    if !path.exists() {
        eprintln!("\n!!! SKIPPED: {} is not installed; `make test` installs it\n", path.display());
        return None;
    }
    Some(path.to_str()?.to_owned())
}

/// Starts a server, lists its tools, and gives back the text of the answer to one call.
async fn answer(config: ServerConfig, tools: usize, call: (&str, serde_json::Value)) -> String {
    let id = config.id.clone();
    let host = host_with(config).await;
    assert_eq!(state(&host, id.as_str()), ServerState::Ready);
    assert_eq!(host.tools().len(), tools, "{id}");
    let called = support::call(&host, &format!("{id}__{}", call.0), call.1).await;
    assert_eq!(called.result.outcome, ToolOutcome::Succeeded, "{id}: {}", called.text());
    host.close().await;
    called.text()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_memory_remembers() {
    let Some(command) = package("mcp-server-memory") else { return };
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("memory.jsonl").display().to_string();
    let mut config = ServerConfig::new("memory", command, [""; 0]);
    config.program_mut().expect("a program").env.insert("MEMORY_FILE_PATH".into(), file);
    let entity = json!({"name": "Kettle", "entityType": "thing", "observations": ["boils"]});
    let text = answer(config.clone(), 9, ("create_entities", json!({"entities": [entity]}))).await;
    assert!(text.contains("Kettle"), "{text}");
    let text = answer(config, 9, ("read_graph", json!({}))).await;
    assert!(text.contains("boils"), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_for_notes_that_others_wrote_read_a_note() {
    let vault = tempfile::tempdir().unwrap();
    std::fs::write(vault.path().join("Kettle.md"), "# Kettle\nboils at sea level\n").unwrap();
    let folder = vault.path().to_str().unwrap();
    if let Some(command) = package("mcpvault") {
        let config = ServerConfig::new("mcpvault", command, [folder]);
        let text = answer(config, 18, ("read_note", json!({"path": "Kettle.md"}))).await;
        assert!(text.contains("boils at sea level"), "{text}");
    }
    if let Some(command) = python("markdown-vault-mcp") {
        let mut config = ServerConfig::new("mv", command, ["serve"]);
        let env = &mut config.program_mut().expect("a program").env;
        env.insert("MARKDOWN_VAULT_MCP_SOURCE_DIR".into(), folder.to_owned());
        let text = answer(config, 44, ("read", json!({"path": "Kettle.md"}))).await;
        assert!(text.contains("boils at sea level"), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_time_knows_utc() {
    let Some(command) = python("mcp-server-time") else { return };
    let call = ("get_current_time", json!({"timezone": "UTC"}));
    let text = answer(ServerConfig::new("time", command, [""; 0]), 2, call).await;
    assert!(text.contains("UTC") && text.contains("datetime"), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_git_knows_the_state_of_a_repository() {
    let Some(command) = python("mcp-server-git") else { return };
    let dir = tempfile::tempdir().unwrap();
    let init = std::process::Command::new("git").args(["init", "--quiet"]).arg(dir.path()).status().unwrap();
    assert!(init.success());
    std::fs::write(dir.path().join("Kettle.md"), "boils").unwrap();
    let call = ("git_status", json!({"repo_path": dir.path()}));
    let text = answer(ServerConfig::new("git", command, [""; 0]), 12, call).await;
    assert!(text.contains("Kettle.md"), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_fetch_fetches_from_this_machine() {
    let Some(command) = python("mcp-server-fetch") else { return };
    let page = lectern_fixture_server::Remote::start(&["--mode", "ok"]);
    let url = page.url().replace("/mcp", "/seen");
    let config = ServerConfig::new("fetch", command, ["--ignore-robots-txt", "--allow-private-ips"]);
    let text = answer(config, 1, ("fetch", json!({"url": url, "raw": true}))).await;
    assert!(text.contains(&url) && text.contains("[]"), "{text}");
}

async fn everything() -> Option<Host> {
    let host = host_with(ServerConfig::new("all", package("mcp-server-everything")?, ["stdio"])).await;
    assert_eq!(state(&host, "all"), ServerState::Ready);
    Some(host)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_everything_answers_in_full() {
    let Some(host) = everything().await else { return };
    let status = host.status(&ServerId::from("all")).unwrap();
    assert_eq!(status.reported.unwrap().name, "mcp-servers/everything");
    assert_eq!(status.protocol.as_deref(), Some("2025-11-25"));

    let echo = call(&host, "all__echo", json!({"message": "grüße, 世界"})).await;
    assert_eq!((echo.result.outcome, echo.text().as_str()), (ToolOutcome::Succeeded, "Echo: grüße, 世界"));
    let sum = call(&host, "all__get-sum", json!({"a": 19, "b": 23})).await;
    assert!(sum.text().contains("42"), "{}", sum.text());
    let wrong = call(&host, "all__get-sum", json!({"a": "many"})).await;
    assert_eq!(wrong.result.outcome, ToolOutcome::Failed);
    let image = call_plain(&host, "all__get-tiny-image").await;
    assert!(
        image.result.content.iter().any(|c| matches!(c, Content::Image(blob) if blob.mime == "image/png"))
    );
    let weather = call(&host, "all__get-structured-content", json!({"location": "Chicago"})).await;
    assert!(weather.result.structured.as_ref().is_some_and(|value| value["temperature"].is_number()));
    assert!(weather.logs().is_empty(), "{:?}", weather.logs());
    let links = call(&host, "all__get-resource-links", json!({"count": 2})).await;
    let resources = links.result.content.iter().filter(|c| matches!(c, Content::Resource(_)));
    assert_eq!(resources.count(), 2);
    assert!(links.text().contains("demo://"), "the model sees where a link leads: {}", links.text());
    host.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn progress_is_on_the_right_call_while_another_runs() {
    let Some(host) = everything().await else { return };
    let mut long =
        start_call(&host, "all__trigger-long-running-operation", json!({"duration": 2, "steps": 4}));
    assert_eq!(long.progressed().await.total, Some(4.0));
    let echo = call(&host, "all__echo", json!({"message": "meanwhile"})).await;
    assert_eq!((echo.text().as_str(), echo.progress().len()), ("Echo: meanwhile", 0));
    let long = long.finish().await;
    assert_eq!(long.progress(), [2.0, 3.0, 4.0]);
    assert!(long.text().contains("completed"), "{}", long.text());
    host.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_operation_can_be_stopped() {
    let Some(host) = everything().await else { return };
    let mut long =
        start_call(&host, "all__trigger-long-running-operation", json!({"duration": 600, "steps": 1200}));
    long.progressed().await;
    long.cancel.cancel();
    assert_eq!(long.finish().await.result.outcome, ToolOutcome::Cancelled);
    host.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_filesystem_reads_its_folder_and_nothing_else() {
    let Some(command) = package("mcp-server-filesystem") else { return };
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().canonicalize().unwrap();
    std::fs::write(dir.join("note.md"), "# Kettle\nboils").unwrap();
    let host = host_with(ServerConfig::new("fs", command, [dir.to_str().unwrap()])).await;
    assert_eq!(state(&host, "fs"), ServerState::Ready);
    assert_eq!(host.tools().len(), 14);

    let path = dir.join("note.md");
    let read = call(&host, "fs__read_text_file", json!({"path": path})).await;
    assert_eq!((read.result.outcome, read.text().as_str()), (ToolOutcome::Succeeded, "# Kettle\nboils"));
    assert_eq!(read.result.structured, Some(json!({"content": "# Kettle\nboils"})));
    let outside = call(&host, "fs__read_text_file", json!({"path": "/etc/hostname"})).await;
    assert_eq!(outside.result.outcome, ToolOutcome::Failed);
    let write = call(&host, "fs__write_file", json!({"path": dir.join("new.md"), "content": "new"})).await;
    assert_eq!(write.result.outcome, ToolOutcome::Succeeded);
    assert_eq!(std::fs::read_to_string(dir.join("new.md")).unwrap(), "new");
    host.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_through_npx_leaves_no_node_behind() {
    let Some(_) = package("mcp-server-everything") else { return };
    let mut config = ServerConfig::new("npx", "npx", ["--no-install", "mcp-server-everything", "stdio"]);
    config.program_mut().expect("a program").cwd =
        Some(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/clients"));
    let host = host_with(config).await;
    assert_eq!(state(&host, "npx"), ServerState::Ready);
    let group = host.status(&ServerId::from("npx")).unwrap().pid.unwrap();
    assert!(members(group) >= 2, "npx and its node");
    host.close().await;
    assert_eq!(members(group), 0);
}

/// Processes of a group that still run.
fn members(group: u32) -> usize {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let stats = entries.filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok());
    stats
        .filter(|stat| {
            // `pid (name) state parent group …`
            let rest = stat.rsplit(')').next().unwrap_or_default();
            let mut fields = rest.split_whitespace();
            let (state, own) = (fields.next(), fields.nth(1));
            state != Some("Z") && own == Some(group.to_string().as_str())
        })
        .count()
}
