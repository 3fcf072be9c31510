//! Servers that break come back by themselves, or are given up where everybody can see it.

mod support;

use std::path::Path;
use std::time::Duration;

use lectern_core::{ServerId, ToolOutcome, ToolProvider, WireDirection};
use lectern_mcp::{Exit, FailureCode, Host, RestartPolicy, ServerConfig, ServerState};
use serde_json::json;
use support::*;

/// A server `s` whose starts from `bad.0` to `bad.1` fail.
fn with_bad_starts(dir: &Path, bad: (u32, u32)) -> ServerConfig {
    let mut config = fixture("s", "ok");
    let file = dir.join("starts");
    let args = &mut config.program_mut().expect("a program").args;
    args.extend(["--starts-file".into(), file.to_str().expect("a path of text").into()]);
    args.extend(["--bad-starts".into(), format!("{}-{}", bad.0, bad.1)]);
    config
}

fn failed(state: &ServerState) -> bool {
    matches!(state, ServerState::Failed(_))
}

async fn die(host: &Host) {
    assert_eq!(call(host, "s__die", json!({"code": 7})).await.result.outcome, ToolOutcome::Failed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_dies_comes_back_by_itself() {
    let host = host_with(fixture("s", "ok")).await;
    let mut story = Story::of(&host);
    die(&host).await;
    let restarting = story.until(|state| matches!(state, ServerState::Restarting { .. })).await.clone();
    let ServerState::Restarting { attempt: 1, of: 5, failure, .. } = restarting else {
        panic!("{restarting:?}")
    };
    assert_eq!((failure.code, failure.exit), (FailureCode::Died, Some(Exit::Code(7))));
    assert_eq!(failure.stderr.last().map(String::as_str), Some("fatal: told to die"));
    story.until(|state| *state == ServerState::Ready).await;
    assert_eq!(call(&host, "s__echo", json!({"text": "back"})).await.text(), "Echo: back");
    assert_eq!(host.status(&ServerId::from("s")).unwrap().starts, 2);
    host.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_stays_broken_is_given_up_and_a_call_still_tries() {
    let dir = tempfile::tempdir().unwrap();
    let host = host_with(with_bad_starts(dir.path(), (2, 7))).await;
    let mut story = Story::of(&host);
    die(&host).await;
    story.until(failed).await;
    let state = reaches(&host, "s", failed).await;
    assert_eq!(story.attempts(), [(1, 5), (2, 5), (3, 5), (4, 5), (5, 5)]);
    let ServerState::Failed(failure) = state else { panic!("{state:?}") };
    assert_eq!((failure.code, failure.exit), (FailureCode::ExitedAtStart, Some(Exit::Code(4))));
    assert!(failure.message.contains("exit code 4; it was started again 5 times, in vain"), "{failure}");
    assert_eq!(failure.stderr, ["start 6 is a bad one"]);
    assert!(!host.tools().is_empty(), "the tools stay, so that a call can start it again");

    let seventh = call(&host, "s__echo", json!({"text": "7"})).await;
    assert_eq!(seventh.result.outcome, ToolOutcome::Failed);
    assert!(seventh.text().contains("start 7 is a bad one"), "{}", seventh.text());
    assert_eq!(call(&host, "s__echo", json!({"text": "8"})).await.text(), "Echo: 8");
    host.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_that_fails_by_chance_is_tried_again() {
    let dir = tempfile::tempdir().unwrap();
    let host = host_with(with_bad_starts(dir.path(), (1, 4))).await;
    // `settled` has waited for the third start. A server that ends when it is probed is greeted in the old way first,
    // so that each of the others took two processes.
    assert_eq!(state(&host, "s"), ServerState::Ready);
    assert_eq!(host.status(&ServerId::from("s")).unwrap().starts, 3);
    host.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mistake_in_the_settings_is_not_tried_again() {
    let host = host_with(ServerConfig::new("s", "no-such-command-anywhere", ["x"])).await;
    assert_eq!(failure(&host, "s").code, FailureCode::CommandNotFound);
    assert_eq!(host.status(&ServerId::from("s")).unwrap().starts, 1);
    host.close().await;
}

/// A host with a server that has died and waits long for its next start, and another one.
async fn paused(dir: &Path) -> Host {
    let mut options = quick();
    options.restart = RestartPolicy {
        first_pause: Duration::from_secs(600),
        longest_pause: Duration::from_secs(600),
        ..RestartPolicy::default()
    };
    let host = started([with_bad_starts(dir, (99, 99)), fixture("other", "ok")], options).await;
    die(&host).await;
    reaches(&host, "s", |state| matches!(state, ServerState::Restarting { .. })).await;
    host
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn orders_are_obeyed_during_the_pause() {
    let dir = tempfile::tempdir().unwrap();
    let host = paused(dir.path()).await;
    let id = ServerId::from("s");
    // Nobody waits for a server that died, and the other one does not notice.
    host.settled().await;
    assert_eq!(call(&host, "other__echo", json!({"text": "fine"})).await.text(), "Echo: fine");

    host.stop(&id).await.unwrap();
    assert_eq!(state(&host, "s"), ServerState::Stopped);
    host.start_server(&id).unwrap();
    reaches(&host, "s", |state| *state == ServerState::Ready).await;
    host.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_and_a_restart_do_not_wait_for_the_pause() {
    let dir = tempfile::tempdir().unwrap();
    let host = paused(dir.path()).await;
    assert_eq!(call(&host, "s__echo", json!({"text": "now"})).await.text(), "Echo: now");
    die(&host).await;
    reaches(&host, "s", |state| matches!(state, ServerState::Restarting { attempt: 2, .. })).await;
    host.restart(&ServerId::from("s")).unwrap();
    reaches(&host, "s", |state| *state == ServerState::Ready).await;
    // A restart by the user begins a new count.
    die(&host).await;
    reaches(&host, "s", |state| matches!(state, ServerState::Restarting { attempt: 1, .. })).await;

    let mut disabled = fixture("s", "ok");
    disabled.disabled = true;
    host.set(disabled).await;
    assert_eq!(state(&host, "s"), ServerState::Stopped);
    host.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_message_can_be_read_afterwards() {
    let host = host_with(fixture("s", "legacy")).await;
    let id = ServerId::from("s");
    // Five messages are sent and four of them answered, the last one perhaps after the server is ready.
    let start = loop {
        let page = host.traffic(&id, 0).unwrap();
        if page.messages.len() >= 9 {
            break page;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    let sent = start.messages.iter().filter(|message| message.direction == WireDirection::Sent);
    // The level of the log is sent beside the rest, so its place among them is open.
    let (levels, methods): (Vec<&str>, Vec<&str>) = sent
        .filter_map(|message| message.method.as_deref())
        .partition(|method| *method == "logging/setLevel");
    assert_eq!(methods, ["server/discover", "initialize", "notifications/initialized", "tools/list"]);
    assert_eq!(levels.len(), 1);

    let called = call(&host, "s__slow", json!({"steps": 2, "delay_ms": 1})).await;
    assert_eq!(called.text(), "2 steps done");
    let page = host.traffic(&id, start.next).unwrap();
    let numbers: Vec<u64> = page.messages.iter().map(|message| message.number).collect();
    assert_eq!(numbers, (start.next + 1..=page.next).collect::<Vec<_>>());
    let wire: Vec<_> =
        called.wire().into_iter().map(|(direction, message)| (direction, message.clone())).collect();
    let traffic: Vec<_> =
        page.messages.iter().map(|message| (message.direction, message.message.clone())).collect();
    assert_eq!(traffic, wire);
    assert_eq!(page.messages[0].id, Some(called.wire()[0].1["id"].clone()));
    assert!(host.traffic(&id, page.next).unwrap().messages.is_empty());

    call(&host, "s__huge", json!({})).await;
    let last = host.traffic(&id, page.next).unwrap();
    // A reply that is too long to be read is named by what the log says of it.
    assert!(last.messages.iter().any(|message| message.method.as_deref() == Some("tools/call")));
    host.close().await;
}
