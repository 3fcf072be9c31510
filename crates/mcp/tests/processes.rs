//! What is left of servers when they should be gone: nothing.
#![cfg(target_os = "linux")]

mod support;

use std::path::Path;
use std::time::Duration;

use lectern_core::ServerId;
use lectern_mcp::{Host, ServerConfig, ServerState};
use support::*;

fn with_pid_file(mode: &str, file: &Path) -> ServerConfig {
    let mut config = fixture("s", mode);
    config
        .program_mut()
        .expect("a program")
        .args
        .extend(["--pid-file".into(), file.to_str().expect("a path of text").into()]);
    config
}

/// The ids in the file, once it is there.
async fn pids(file: &Path) -> Vec<u32> {
    lines_in(file).await.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

/// The text of a file, once it is there and whole.
async fn lines_in(file: &Path) -> String {
    loop {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        if text.ends_with('\n') {
            return text;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Whether a process is there and is more than an entry in a table.
fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().next());
    state.is_some_and(|state| state != "Z" && state != "X")
}

/// Waits for the end of processes; fails when they do not end within five seconds.
async fn all_gone(pids: &[u32]) {
    for _ in 0..250 {
        if !pids.iter().any(|pid| is_alive(*pid)) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("still there: {:?}", pids.iter().filter(|pid| is_alive(**pid)).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn closing_ends_the_whole_tree_however_stubborn() {
    for mode in ["ok", "npx", "ignores-eof"] {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("pids");
        let host = host_with(with_pid_file(mode, &file)).await;
        assert_eq!(state(&host, "s"), ServerState::Ready, "{mode}");
        let pids = pids(&file).await;
        assert!(pids.iter().all(|pid| is_alive(*pid)), "{mode}");
        host.close().await;
        assert!(!pids.iter().any(|pid| is_alive(*pid)), "{mode}: closed means gone");
        assert_eq!(state(&host, "s"), ServerState::Stopped);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_host_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("pids");
    let host = host_with(with_pid_file("ignores-eof", &file)).await;
    let pids = pids(&file).await;
    drop(host);
    all_gone(&pids).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stopping_during_the_start_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("pids");
    let host = Host::start([with_pid_file("never-answers", &file)], quick());
    let pids = pids(&file).await;
    host.stop(&ServerId::from("s")).await.unwrap();
    assert_eq!(state(&host, "s"), ServerState::Stopped);
    all_gone(&pids).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_dies_takes_its_children_along() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("pids");
    let host = host_with(with_pid_file("npx", &file)).await;
    let pids = pids(&file).await;
    call(&host, "s__die", serde_json::json!({})).await;
    all_gone(&pids).await;
    host.close().await;
}

/// Not a test of its own: the app that [`nothing_survives_the_app`] kills.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stand_in_for_the_app() {
    let Ok(file) = std::env::var("LECTERN_TEST_PID_FILE") else { return };
    let mode = std::env::var("LECTERN_TEST_MODE").expect("a mode");
    let host = host_with(with_pid_file(&mode, Path::new(&file))).await;
    assert_eq!(state(&host, "s"), ServerState::Ready);
    std::fs::write(Path::new(&file).with_extension("ready"), "\n").unwrap();
    std::future::pending::<()>().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_survives_the_app() {
    for mode in ["ok", "stubborn", "npx", "ignores-eof"] {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("pids");
        let mut app = tokio::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "stand_in_for_the_app", "--nocapture"])
            .env("LECTERN_TEST_PID_FILE", &file)
            .env("LECTERN_TEST_MODE", mode)
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        lines_in(&file.with_extension("ready")).await;
        let pids = pids(&file).await;
        assert!(pids.iter().all(|pid| is_alive(*pid)), "{mode}");
        app.kill().await.unwrap();
        all_gone(&pids).await;
    }
}
