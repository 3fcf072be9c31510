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

/// Ten servers, of all kinds that don't want to end.
const TEN: [&str; 10] =
    ["ok", "legacy", "modern", "ok", "npx", "npx", "ignores-eof", "stubborn", "two-forks", "bad-tool"];

/// Not a test of its own: the app that [`nothing_survives_the_app`] kills.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stand_in_for_the_app() {
    let Ok(dir) = std::env::var("LECTERN_TEST_DIR") else { return };
    let dir = Path::new(&dir);
    let configs = TEN.iter().enumerate().map(|(n, mode)| {
        let mut config = with_pid_file(mode, &dir.join(format!("pids-{n}")));
        config.id = format!("s{n}").into();
        config
    });
    let host = started(configs, quick()).await;
    for status in host.statuses() {
        let ready = matches!(status.state, ServerState::Ready | ServerState::Degraded(_));
        assert!(ready, "{}: {:?}", status.id, status.state);
    }
    std::fs::write(dir.join("ready"), "\n").unwrap();
    std::future::pending::<()>().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_survives_the_app() {
    let dir = tempfile::tempdir().unwrap();
    let mut app = tokio::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "stand_in_for_the_app", "--nocapture"])
        .env("LECTERN_TEST_DIR", dir.path())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    lines_in(&dir.path().join("ready")).await;
    let mut all = Vec::new();
    for (n, mode) in TEN.iter().enumerate() {
        let pids = pids(&dir.path().join(format!("pids-{n}"))).await;
        assert!(!pids.is_empty() && pids.iter().all(|pid| is_alive(*pid)), "{mode}: {pids:?}");
        all.extend(pids);
    }
    assert!(all.len() >= 14, "ten servers, and what four of them started: {all:?}");
    // SIGKILL; the app can do nothing any more.
    app.kill().await.unwrap();
    all_gone(&all).await;
}
