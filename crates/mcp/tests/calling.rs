//! Calls of tools, well-behaved and other.

mod support;

use std::time::Duration;

use lectern_core::{Blob, Content, ResourceRef, ServerId, ToolOutcome, ToolProvider, WireDirection};
use lectern_mcp::{Host, RestartPolicy, Root, ServerConfig, ServerState};
use serde_json::{Value, json};
use support::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_has_its_result_and_its_raw_messages() {
    let host = host_with(fixture("s", "ok")).await;
    let called = call(&host, "s__add", json!({"a": 2, "b": 3})).await;
    assert_eq!((called.result.outcome, called.text().as_str()), (ToolOutcome::Succeeded, "5"));
    assert_eq!(called.result.structured, Some(json!({"sum": 5.0})));
    assert_eq!(called.logs(), Vec::<&str>::new());

    let wire = called.wire();
    let [(WireDirection::Sent, request), (WireDirection::Received, reply)] = wire[..] else {
        panic!("{wire:?}")
    };
    assert_eq!((&request["method"], &request["params"]["name"]), (&json!("tools/call"), &json!("add")));
    assert_eq!(request["params"]["arguments"], json!({"a": 2, "b": 3}));
    assert_eq!(request["id"], reply["id"]);
    assert_eq!(request["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
    host.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failures_of_tools_are_news_for_the_model() {
    let host = host_with(fixture("s", "legacy")).await;
    for (tool, part) in [
        ("s__fail", "no such file: /x"),
        ("s__rpc-error", "-32602: the argument is wrong"),
        ("s__input", "elicitation/create"),
        ("s__task", "task"),
        ("s__nothing", "there is no tool `s__nothing`"),
    ] {
        let called = call_plain(&host, tool).await;
        assert_eq!(called.result.outcome, ToolOutcome::Failed, "{tool}");
        assert!(called.text().contains(part), "{tool}: {}", called.text());
        assert_eq!(called.result.call.as_str(), format!("call of {tool}"));
    }
    host.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn progress_comes_in_order_on_the_right_call() {
    let host = host_with(fixture("s", "ok")).await;
    let slow = start_call(&host, "s__slow", json!({"steps": 5, "delay_ms": 20}));
    let other = call(&host, "s__slow", json!({"steps": 2, "delay_ms": 5})).await;
    let slow = slow.finish().await;
    assert_eq!(slow.progress(), [1.0, 2.0, 3.0, 4.0, 5.0]);
    assert_eq!(other.progress(), [1.0, 2.0]);
    assert_eq!((slow.text().as_str(), other.text().as_str()), ("5 steps done", "2 steps done"));
    host.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storm_of_progress_only_rises_and_ends_with_the_result() {
    let host = host_with(fixture("s", "ok")).await;
    for _ in 0..3 {
        let called = call_plain(&host, "s__storm").await;
        assert_eq!(called.text(), "stormed");
        let progress = called.progress();
        assert!(progress.is_sorted(), "{progress:?}");
        assert!(progress.len() > 10, "{progress:?}");
        assert_eq!(progress.last(), Some(&2_000.0));
        let wire = called.wire();
        assert!(wire.last().is_some_and(|(_, message)| message.get("result").is_some()), "{:?}", wire.last());
    }
    host.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopped_call_settles_and_the_server_is_told() {
    let host = host_with(fixture("s", "legacy")).await;
    let mut waiting = start_call(&host, "s__wait", json!({}));
    let sent = waiting.sent().await;
    waiting.cancel.cancel();
    let called = waiting.finish().await;
    assert_eq!(called.result.outcome, ToolOutcome::Cancelled);
    let (_, last) = *called.wire().last().unwrap();
    assert_eq!(
        (&last["method"], &last["params"]["requestId"]),
        (&json!("notifications/cancelled"), &sent["id"])
    );
    assert_eq!(call_plain(&host, "s__cancelled").await.text(), json!([sent["id"]]).to_string());
    host.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silence_is_given_up_and_progress_buys_time() {
    let mut config = fixture("s", "legacy");
    config.timeout_s = Some(2);
    let host = host_with(config).await;
    let waiting = call_plain(&host, "s__wait").await;
    assert_eq!(waiting.result.outcome, ToolOutcome::Failed);
    assert!(waiting.text().contains("gave no answer within 2"), "{}", waiting.text());
    assert_ne!(call_plain(&host, "s__cancelled").await.text(), "[]");
    // Five times 600 ms is more than the limit; each step is less.
    let slow = call(&host, "s__slow", json!({"steps": 5, "delay_ms": 600})).await;
    assert_eq!(slow.text(), "5 steps done");
    host.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_as_a_whole_has_a_limit_too() {
    let mut options = quick();
    options.call_timeout = Duration::from_millis(500);
    options.total_timeout = Duration::from_secs(1);
    let host = started([fixture("s", "ok")], options).await;
    let slow = call(&host, "s__slow", json!({"steps": 100_000, "delay_ms": 20})).await;
    assert_eq!(slow.result.outcome, ToolOutcome::Failed);
    assert!(!slow.progress().is_empty());
    host.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_dies_says_how_and_comes_back_with_the_next_call() {
    let mut options = quick();
    options.restart = RestartPolicy::never();
    let host = started([fixture("s", "ok")], options).await;
    let waiting = start_call(&host, "s__wait", json!({}));
    let dead = call(&host, "s__die", json!({"code": 7})).await;
    for called in [waiting.finish().await, dead] {
        assert_eq!(called.result.outcome, ToolOutcome::Failed);
        assert!(called.text().contains("exit code 7"), "{}", called.text());
        assert!(called.text().contains("fatal: told to die"), "{}", called.text());
    }
    assert!(matches!(state(&host, "s"), ServerState::Failed(_)), "{:?}", state(&host, "s"));
    assert!(!host.tools().is_empty(), "the tools stay, so that a call can start it again");
    assert_eq!(call(&host, "s__echo", json!({"text": "again"})).await.text(), "Echo: again");
    let status = host.status(&ServerId::from("s")).unwrap();
    assert_eq!((status.state, status.starts), (ServerState::Ready, 2));
    host.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unreadable_replies_fail_their_call_and_no_other() {
    let host = host_with(fixture("s", "ok")).await;
    let slow = start_call(&host, "s__slow", json!({"steps": 10, "delay_ms": 30}));
    for (tool, part) in [
        ("s__huge", "more than the 16777216 that are allowed"),
        ("s__bytes", "not valid UTF-8"),
        ("s__torn", "not valid JSON"),
        ("s__deep", "recursion limit"),
        ("s__hollow", "neither a result nor an error"),
    ] {
        let called = call_plain(&host, tool).await;
        assert_eq!(called.result.outcome, ToolOutcome::Failed);
        assert!(called.text().contains(part), "{tool}: {}", called.text());
    }
    assert_eq!(slow.finish().await.text(), "10 steps done");
    assert_eq!(host.status(&ServerId::from("s")).unwrap().starts, 1);
    host.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_results_are_cut_for_the_model_and_whole_in_the_trace() {
    let host = host_with(fixture("s", "ok")).await;
    let called = call(&host, "s__big", json!({"characters": 100_000})).await;
    let text = called.text();
    assert!(
        text.starts_with(&"y".repeat(16_000)) && text.ends_with("\n[… cut: 84000 more characters]"),
        "{}",
        text.len()
    );
    let (_, reply) = *called.wire().last().unwrap();
    assert_eq!(reply["result"]["content"][0]["text"].as_str().map(str::len), Some(100_000));
    host.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_kinds_of_content_arrive() {
    let host = host_with(fixture("s", "ok")).await;
    let media = call_plain(&host, "s__media").await.result;
    let resource = |uri: &str, name: Option<&str>, mime: &str, text: Option<&str>| {
        let owned = |text: &str| text.to_owned();
        Content::Resource(ResourceRef {
            uri: uri.into(),
            name: name.map(owned),
            mime: Some(mime.into()),
            text: text.map(owned),
        })
    };
    assert_eq!(
        media.content,
        [
            Content::Text { text: "all kinds".into() },
            Content::Image(Blob { mime: "image/png".into(), base64: "aW1hZ2U=".into() }),
            Content::Audio(Blob { mime: "audio/wav".into(), base64: "c291bmQ=".into() }),
            resource("note:///a.md", Some("a.md"), "text/markdown", None),
            resource("note:///b.md", None, "text/markdown", Some("# B")),
            resource("x:///c", None, "application/octet-stream", None),
        ]
    );
    assert_eq!(call_plain(&host, "s__structured-only").await.text(), r#"{"answer":42}"#);
    let cites = call_plain(&host, "s__cites").await.result.sources;
    let places: Vec<_> =
        cites.iter().map(|s| (s.path.as_str(), s.heading.as_deref(), s.start_line)).collect();
    assert_eq!(places, [("Travel/Lyon.md", Some("Food"), Some(10)), ("Home/Boiler.md", None, Some(1))]);
    host.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broken_promise_about_the_result_is_noted() {
    let host = host_with(fixture("s", "ok")).await;
    let called = call_plain(&host, "s__broken-promise").await;
    assert_eq!((called.result.outcome, called.text().as_str()), (ToolOutcome::Succeeded, "lots"));
    assert!(
        called.logs().iter().any(|line| line.contains("does not match the tool's output schema")),
        "{:?}",
        called.logs()
    );
    host.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_servers_questions_are_answered() {
    let mut options = quick();
    options.roots = vec![Root { uri: "file:///notes".into(), name: Some("Notes".into()) }].into();
    let host = started([fixture("s", "legacy")], options).await;
    let ask = async |method: &str| -> Value {
        let called = call(&host, "s__ask", json!({"method": method})).await;
        serde_json::from_str(&called.text()).unwrap()
    };
    assert_eq!(ask("ping").await["result"], json!({}));
    assert_eq!(
        ask("roots/list").await["result"],
        json!({"roots": [{"uri": "file:///notes", "name": "Notes"}]})
    );
    for method in ["sampling/createMessage", "elicitation/create", "no/such/method"] {
        assert_eq!(ask(method).await["error"]["code"], -32601, "{method}");
    }
    host.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_is_told_during_a_call() {
    let host = host_with(fixture("s", "ok")).await;
    let called = call(&host, "s__log", json!({"lines": 2})).await;
    let mut logs = called.logs();
    logs.sort_unstable();
    assert_eq!(logs, [r#"[warning] fixture: {"note":"logged"}"#, "stderr line 0", "stderr line 1"]);
    let flood = call(&host, "s__log", json!({"lines": 50_000})).await;
    assert!(flood.logs().len() <= 202, "{}", flood.logs().len());
    host.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_line_that_could_be_about_several_calls_stands_in_none_of_them() {
    let host = host_with(fixture("s", "ok")).await;
    let mut other = start_call(&host, "s__wait", json!({}));
    other.sent().await;
    let called = call(&host, "s__log", json!({"lines": 2})).await;
    assert_eq!(called.logs(), [""; 0]);
    other.cancel.cancel();
    assert_eq!(other.finish().await.logs(), [""; 0]);
    // Nothing is lost: the server's own log has it.
    let told = |line: &String| line.contains("logged") || line.starts_with("stderr line");
    while host.log_tail(&"s".into(), 100).unwrap().iter().filter(|line| told(line)).count() < 3 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(call(&host, "s__log", json!({"lines": 0})).await.logs().len(), 1);
    host.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn new_tools_are_offered_in_both_eras() {
    let host = started([fixture("old", "legacy"), fixture("new", "modern")], quick()).await;
    for server in ["old", "new"] {
        let mut news = host.subscribe();
        let grown = format!("{server}__grown");
        assert!(!host.tools().iter().any(|tool| tool.name.as_str() == grown));
        assert_eq!(call_plain(&host, &format!("{server}__grow")).await.text(), "grown");
        while !host.tools().iter().any(|tool| tool.name.as_str() == grown) {
            news.recv().await.unwrap();
        }
    }
    host.close().await;
}

/// A server that says how long its list holds, and says nothing when it changes.
fn silent(ttl: &str) -> ServerConfig {
    let mut config = fixture("s", "modern");
    let more = ["--ttl", ttl].map(str::to_owned);
    config.program_mut().expect("a program").args.extend(more);
    config
}

fn has_grown(host: &Host) -> bool {
    host.tools().iter().any(|tool| tool.original_name == "grown")
}

/// How often the list was asked for.
fn lists(host: &Host) -> usize {
    let messages = host.traffic(&"s".into(), 0).expect("a known server").messages;
    let asked = messages.iter().filter(|one| one.direction == WireDirection::Sent);
    asked.filter(|one| one.method.as_deref() == Some("tools/list")).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_that_is_older_than_it_holds_is_asked_for_again_when_it_is_wanted() {
    let host = host_with(silent("1")).await;
    assert_eq!(call_plain(&host, "s__grow").await.text(), "grown");
    tokio::time::sleep(Duration::from_millis(5)).await;
    assert!(!has_grown(&host), "nobody wanted it");
    host.settled().await;
    assert!(has_grown(&host));
    // What is the same is no news.
    let (before, mut news) = (lists(&host), host.subscribe());
    tokio::time::sleep(Duration::from_millis(5)).await;
    host.settled().await;
    assert_eq!(lists(&host), before + 1);
    assert!(news.try_recv().is_err());
    host.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_that_still_holds_or_has_no_time_is_not_asked_for_again() {
    for ttl in ["3600000", "0"] {
        let host = host_with(silent(ttl)).await;
        call_plain(&host, "s__grow").await;
        host.settled().await;
        assert_eq!((has_grown(&host), lists(&host)), (false, 1), "{ttl}");
        host.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_environment_is_an_allow_list_and_secrets_stay_hidden() {
    let mut config = fixture("s", "ok");
    let env = &mut config.program_mut().expect("a program").env;
    env.insert("MY_API_KEY".into(), "hunter2-hunter2".into());
    env.insert("NOTES_DIR".into(), "somewhere".into());
    let host = host_with(config).await;
    let called = call_plain(&host, "s__env").await;
    let env: Value = serde_json::from_str(&called.text()).unwrap();
    let env = env.as_object().unwrap();
    assert_eq!(env["NOTES_DIR"], "somewhere");
    assert_eq!(env["MY_API_KEY"], "••••••");
    assert!(env.contains_key("PATH"));
    // The test runner's own variables are the stand-in for a secret of the user's shell.
    assert!(std::env::vars().any(|(name, _)| name.starts_with("CARGO")));
    assert!(env.keys().all(|name| !name.starts_with("CARGO")), "{env:?}");
    let everything = format!("{:?} {:?}", called.news, called.result);
    assert!(!everything.contains("hunter2"), "{everything}");
    host.close().await;
}
