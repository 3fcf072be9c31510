//! Servers behind an address, well-behaved and other: nothing hangs, and what went wrong is said.

mod support;

use std::time::Duration;

use lectern_core::{ServerId, ToolOutcome, ToolProvider};
use lectern_fixture_server::Remote;
use lectern_mcp::{FailureCode, Host, HostOptions, ServerConfig, ServerState};
use serde_json::json;
use support::*;

/// A host with the server as `s`, calls with a short limit.
async fn host_of(remote: &Remote) -> Host {
    let options = HostOptions { call_timeout: Duration::from_secs(3), ..quick() };
    started([ServerConfig::remote("s", remote.url())], options).await
}

async fn works(host: &Host, text: &str) {
    let called = call(host, "s__echo", json!({"text": text})).await;
    assert_eq!(called.text(), format!("Echo: {text}"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_eras_and_both_shapes_of_answers_work() {
    for (args, protocol) in [
        (&["--mode", "ok"][..], "2026-07-28"),
        (&["--mode", "modern", "--json"][..], "2026-07-28"),
        (&["--mode", "legacy"][..], "2025-11-25"),
        (&["--mode", "legacy", "--json", "--no-sessions"][..], "2025-11-25"),
    ] {
        let remote = Remote::start(args);
        let host = host_of(&remote).await;
        assert_eq!(state(&host, "s"), ServerState::Ready, "{args:?}");
        let status = host.status(&ServerId::from("s")).unwrap();
        assert_eq!(status.protocol.as_deref(), Some(protocol), "{args:?}");
        works(&host, "hi").await;
        if !args.contains(&"--json") {
            let slow = call(&host, "s__slow", json!({"steps": 3, "delay_ms": 5})).await;
            assert_eq!((slow.text().as_str(), slow.progress()), ("3 steps done", vec![1.0, 2.0, 3.0]));
        }
        host.close().await;
        let goodbyes = remote.seen().iter().filter(|seen| seen["verb"] == "DELETE").count();
        assert_eq!(goodbyes, usize::from(args == ["--mode", "legacy"]), "{args:?}: a session is ended");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_wrong_answer_settles_its_call_and_the_next_one_works() {
    let mut remote_of_mode = Vec::new();
    for mode in ["modern", "legacy"] {
        let remote = Remote::start(&["--mode", mode]);
        let host = host_of(&remote).await;
        remote_of_mode.push((mode, remote, host));
    }
    for (mode, remote, host) in &remote_of_mode {
        for (fault, part) in [
            ("silence", "gave no answer within 3"),
            ("stall-stream", "gave no answer within 3"),
            ("stall-json", "gave no answer within 3"),
            ("drip", "gave no answer within 3"),
            ("endless", "gave no answer within 3"),
            ("status-then-stall", ""),
            ("cut-json", ""),
            ("cut-stream", ""),
            ("reset", ""),
            ("garbage", ""),
            ("html-502", "502"),
            ("html-200", "html"),
            ("empty-200", ""),
            ("accepted", "202"),
            ("wrong-id", ""),
            ("no-id-400", "bad request"),
        ] {
            remote.fault(fault, "tools/call", 1_000);
            let called = call(host, "s__echo", json!({"text": fault})).await;
            assert_eq!(called.result.outcome, ToolOutcome::Failed, "{mode} {fault}: {}", called.text());
            let text = called.text().to_lowercase();
            assert!(
                text.contains(part) && (text.contains("`s`") || fault == "no-id-400"),
                "{mode} {fault}: {text}"
            );
            remote.behave();
            works(host, fault).await;
        }
    }
    for (_, _, host) in remote_of_mode {
        host.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bad_start_fails_within_its_limit_and_names_the_step() {
    for (fault, part) in [
        ("silence", "not ready within"),
        ("stall-json", "not ready within"),
        ("endless", "not ready within"),
        ("html-502", "502"),
        ("html-200", "html"),
        ("garbage", ""),
    ] {
        let remote = Remote::start(&["--mode", "modern"]);
        remote.fault(fault, "", 1_000);
        let options = HostOptions { start_timeout: Duration::from_secs(3), ..quick() };
        let host = started([ServerConfig::remote("s", remote.url())], options).await;
        let failure = failure(&host, "s");
        assert!(failure.step.is_some(), "{fault}: {failure:?}");
        assert!(failure.message.to_lowercase().contains(part), "{fault}: {failure}");
        host.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_not_there_is_said_to_be_so() {
    let mut remote = Remote::start(&["--mode", "modern"]);
    remote.kill();
    let host = host_of(&remote).await;
    let failure = failure(&host, "s");
    assert!(failure.message.contains("127.0.0.1"), "{failure:?}");
    assert_ne!(failure.code, FailureCode::StartTimeout, "{failure:?}");
    host.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_killed_in_the_middle_of_a_call_fails_that_call_and_comes_back() {
    for mode in ["modern", "legacy"] {
        let mut remote = Remote::start(&["--mode", mode]);
        let host = host_of(&remote).await;
        let mut slow = start_call(&host, "s__slow", json!({"steps": 1_000, "delay_ms": 50}));
        slow.progressed().await;
        remote.kill();
        let slow = slow.finish().await;
        assert_eq!(slow.result.outcome, ToolOutcome::Failed, "{mode}: {}", slow.text());

        let down = call(&host, "s__echo", json!({"text": "anybody?"})).await;
        assert_eq!(down.result.outcome, ToolOutcome::Failed, "{mode}: {}", down.text());
        remote.restart();
        reaches_an_echo(&host).await;
        host.close().await;
    }
}

/// A call that meets the server just before it is back may fail; one soon after does not.
async fn reaches_an_echo(host: &Host) {
    for _ in 0..100 {
        if call(host, "s__echo", json!({"text": "back"})).await.text() == "Echo: back" {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the server is {:?}", state(host, "s"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restarted_server_that_has_forgotten_the_session_is_greeted_again() {
    let mut remote = Remote::start(&["--mode", "legacy"]);
    let host = host_of(&remote).await;
    works(&host, "before").await;
    remote.forget_sessions();
    works(&host, "after the session was forgotten").await;
    let traffic = host.traffic(&"s".into(), 0).unwrap().messages;
    let renewal =
        |method: &str| traffic.iter().filter(|message| message.method.as_deref() == Some(method)).count();
    // Asked and answered twice, told twice.
    assert_eq!((renewal("initialize"), renewal("notifications/initialized")), (4, 2), "{traffic:#?}");
    remote.restart();
    works(&host, "after a restart").await;
    // Some answer 400 without an id instead of 404.
    remote.fault("no-id-400", "tools/call", 1);
    let first = call(&host, "s__echo", json!({"text": "400"})).await;
    assert!(first.text().contains("400"), "{}", first.text());
    works(&host, "after 400").await;
    host.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_line_of_the_log_belongs_to_the_call_on_whose_stream_it_came() {
    let remote = Remote::start(&["--mode", "modern"]);
    let host = host_of(&remote).await;
    let mut other = start_call(&host, "s__wait", json!({}));
    other.sent().await;
    let called = call(&host, "s__log", json!({"lines": 0})).await;
    assert_eq!(called.logs(), [r#"[warning] fixture: {"note":"logged"}"#]);
    other.cancel.cancel();
    assert_eq!(other.finish().await.logs(), [""; 0]);
    host.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_bytes_and_long_replies_fail_their_call_only() {
    for mode in ["modern", "legacy"] {
        let remote = Remote::start(&["--mode", mode]);
        let host = host_of(&remote).await;
        let slow = start_call(&host, "s__slow", json!({"steps": 10, "delay_ms": 30}));
        for tool in ["s__huge", "s__bytes", "s__torn", "s__deep", "s__hollow"] {
            let called = call_plain(&host, tool).await;
            assert_eq!(called.result.outcome, ToolOutcome::Failed, "{mode} {tool}: {}", called.text());
            assert!(!called.text().contains("gave no answer"), "{mode} {tool}: {}", called.text());
        }
        assert_eq!(slow.finish().await.text(), "10 steps done", "{mode}");
        host.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storm_of_progress_and_bad_tools_do_no_harm() {
    let remote = Remote::start(&["--mode", "bad-tool"]);
    let host = host_of(&remote).await;
    let ServerState::Degraded(reasons) = state(&host, "s") else { panic!("{:?}", state(&host, "s")) };
    assert_eq!(reasons.len(), 5, "{reasons:#?}");
    let called = call_plain(&host, "s__storm").await;
    assert_eq!(called.text(), "stormed");
    let progress = called.progress();
    assert!(progress.is_sorted() && progress.last() == Some(&2_000.0), "{progress:?}");
    host.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopped_call_is_cancelled_at_the_server() {
    for mode in ["modern", "legacy"] {
        let remote = Remote::start(&["--mode", mode]);
        let host = host_of(&remote).await;
        let mut waiting = start_call(&host, "s__wait", json!({}));
        let sent = waiting.sent().await;
        // The server can only give up what has reached it.
        let called = |seen: &serde_json::Value| seen["message"]["params"]["name"] == "wait";
        while !remote.seen().iter().any(called) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        waiting.cancel.cancel();
        assert_eq!(waiting.finish().await.result.outcome, ToolOutcome::Cancelled);
        let wanted = json!([sent["id"]]).to_string();
        let mut told = String::new();
        for _ in 0..200 {
            told = call_plain(&host, "s__cancelled").await.text();
            if told.contains(wanted.trim_matches(['[', ']'])) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert!(told.contains(wanted.trim_matches(['[', ']'])), "{mode}: {told}");
        host.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_old_list_stays_when_there_is_no_new_one() {
    let remote = Remote::start(&["--mode", "modern", "--ttl", "1"]);
    let host = host_of(&remote).await;
    let lists = || remote.seen().iter().filter(|seen| seen["message"]["method"] == "tools/list").count();
    host.settled().await;
    remote.fault("html-200", "tools/list", 99);
    let (known, before) = (host.tools().len(), lists());
    tokio::time::sleep(Duration::from_millis(5)).await;
    host.settled().await;
    let asked = lists();
    assert!(asked > before);
    assert_eq!((state(&host, "s"), host.tools().len()), (ServerState::Ready, known));
    // It is left alone for a while.
    host.settled().await;
    assert_eq!(lists(), asked);
    host.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changed_tools_are_listed_again() {
    for mode in ["modern", "legacy"] {
        let remote = Remote::start(&["--mode", mode]);
        let host = host_of(&remote).await;
        // The stream on which changes are told is opened after the start; only then it is of use to change something.
        let listens = |seen: &serde_json::Value| {
            seen["verb"] == "GET" || seen["message"]["method"] == "subscriptions/listen"
        };
        while !remote.seen().iter().any(listens) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
        call_plain(&host, "s__grow").await;
        for _ in 0..500 {
            if host.tools().iter().any(|tool| tool.original_name == "grown") {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert!(host.tools().iter().any(|tool| tool.original_name == "grown"), "{mode}");
        host.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secret_headers_follow_no_redirect_to_another_server() {
    let other = Remote::start(&["--mode", "modern"]);
    let remote = Remote::start(&["--mode", "modern"]);
    remote.fault_to("redirect", "", 1_000, other.url());
    let mut config = ServerConfig::remote("s", remote.url());
    if let lectern_mcp::Transport::Http(endpoint) = &mut config.transport {
        endpoint.headers.insert("Authorization".into(), "Bearer swordfish-of-one".into());
    }
    let host = started([config], quick()).await;
    let seen = serde_json::Value::Array(other.seen()).to_string();
    assert!(!seen.contains("swordfish-of-one"), "{seen}");
    assert!(serde_json::Value::Array(remote.seen()).to_string().contains("swordfish-of-one"));
    host.close().await;
}
