//! How servers start, and what is seen of those that don't.

mod support;

use std::time::Duration;

use lectern_core::{ServerId, ToolOutcome, ToolProvider};
use lectern_mcp::{Exit, FailureCode, Host, ServerConfig, ServerState, StartStep};
use support::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_eras_are_spoken() {
    let modes = [
        ("ok", "2026-07-28"),
        ("modern", "2026-07-28"),
        ("legacy", "2025-11-25"),
        ("legacy-old", "2024-11-05"),
        ("legacy-silent", "2025-11-25"),
        ("legacy-strict", "2025-11-25"),
        ("slow-modern", "2026-07-28"),
        ("slow-legacy", "2025-11-25"),
    ];
    let host = started(modes.map(|(mode, _)| fixture(mode, mode)), quick()).await;
    for (mode, protocol) in modes {
        let status = host.status(&ServerId::from(mode)).unwrap();
        assert_eq!(status.state, ServerState::Ready, "{mode}");
        assert_eq!(status.protocol.as_deref(), Some(protocol), "{mode}");
        assert_eq!(status.reported.unwrap().name, "fixture");
        assert_eq!(status.instructions.as_deref(), Some("Use with care."));
        let called = call(&host, &format!("{mode}__echo"), serde_json::json!({"text": mode})).await;
        assert_eq!(called.text(), format!("Echo: {mode}"));
    }
    host.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_ends_when_probed_is_greeted_the_old_way_from_then_on() {
    let host = host_with(fixture("s", "legacy-strict")).await;
    assert_eq!(state(&host, "s"), ServerState::Ready);
    // The log begins anew with every start: the second start of all is not preceded by a failed probe.
    host.restart(&ServerId::from("s")).unwrap();
    wait_for_start(&host, 2).await;
    assert_eq!(state(&host, "s"), ServerState::Ready);
    assert_eq!(host.log_tail(&ServerId::from("s"), 10).unwrap(), Vec::<String>::new());
    host.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn broken_servers_name_the_step_and_leave_the_others_alone() {
    let mut options = quick();
    options.start_timeout = Duration::from_secs(6);
    let modes = [
        "never-answers",
        "deaf",
        "list-hangs",
        "list-refused",
        "endless-pages",
        "future",
        "early-exit",
        "ok",
    ];
    let host = started(modes.map(|mode| fixture(mode, mode)), options).await;

    for (mode, code, step) in [
        ("never-answers", FailureCode::StartTimeout, StartStep::Handshake),
        ("deaf", FailureCode::StartTimeout, StartStep::Handshake),
        ("list-hangs", FailureCode::StartTimeout, StartStep::ListTools),
        ("list-refused", FailureCode::ListTools, StartStep::ListTools),
        ("endless-pages", FailureCode::ListTools, StartStep::ListTools),
        ("future", FailureCode::Handshake, StartStep::Handshake),
        ("early-exit", FailureCode::ExitedAtStart, StartStep::Handshake),
    ] {
        let failure = failure(&host, mode);
        assert_eq!((failure.code, failure.step), (code, Some(step)), "{mode}: {failure:?}");
        assert!(failure.message.contains(&format!("`{mode}`")), "{}", failure.message);
    }
    assert!(failure(&host, "list-refused").message.contains("the list is on strike"));
    assert!(failure(&host, "future").message.contains("2099-01-01"));
    assert!(failure(&host, "list-hangs").message.contains("step: list the tools"));
    assert_eq!(state(&host, "ok"), ServerState::Ready);
    assert!(host.tools().iter().all(|tool| tool.server.as_str() == "ok"));
    host.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_early_exit_has_its_code_and_last_lines() {
    let host = host_with(fixture("s", "early-exit")).await;
    let failure = failure(&host, "s");
    assert_eq!(failure.exit, Some(Exit::Code(3)));
    assert_eq!(failure.stderr, ["first line", "second line", "API key missing"]);
    assert!(failure.message.contains("exit code 3"), "{}", failure.message);
    assert!(failure.detail().unwrap().contains("API key missing"));
    host.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_run_is_said_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("readme.txt");
    std::fs::write(&file, "hello").unwrap();
    let missing = ServerConfig::new("missing", "no-such-command-anywhere", ["x"]);
    let data = ServerConfig::new("data", file.to_str().unwrap(), [""; 0]);
    let mut nowhere = fixture("nowhere", "ok");
    nowhere.program_mut().expect("a program").cwd = Some(dir.path().join("gone"));
    let host = started([missing, data, nowhere], quick()).await;

    let failed = failure(&host, "missing");
    assert_eq!(failed.code, FailureCode::CommandNotFound);
    assert!(failed.message.contains("command `no-such-command-anywhere` not found"), "{failed}");
    assert!(failed.hint.unwrap().contains("Install"));
    assert_eq!(failure(&host, "data").code, FailureCode::NotExecutable);
    assert_eq!(failure(&host, "nowhere").code, FailureCode::BadWorkingFolder);
    host.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_tools_are_left_out_and_the_rest_works() {
    let host = host_with(fixture("s", "bad-tool")).await;
    let ServerState::Degraded(reasons) = state(&host, "s") else { panic!("{:?}", state(&host, "s")) };
    assert_eq!(reasons.len(), 5, "{reasons:#?}");
    for name in ["boolean-schema", "text-schema", "invalid-schema"] {
        assert!(reasons.iter().any(|reason| reason.contains(name)), "{reasons:#?}");
    }
    let tools = host.tools();
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    assert!(names.contains(&"s__odd-icons") && names.contains(&"s__odd-hints"), "{names:?}");
    assert!(names.contains(&"s__odd_name_with_spaces_and__"), "{names:?}");
    assert!(names.iter().all(|name| name.len() <= 64), "{names:?}");
    let long = tools.iter().find(|tool| tool.original_name.starts_with("long-long")).unwrap();
    assert_eq!((long.name.as_str().len(), long.original_name.len()), (64, 150));
    assert_eq!(call(&host, "s__echo", serde_json::json!({"text": "hi"})).await.text(), "Echo: hi");
    host.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_may_have_many_pages() {
    let paged = fixture("a", "many-pages");
    let plain = fixture("b", "ok");
    let host = started([paged, plain], quick()).await;
    let tools = host.tools();
    let of = |server: &str| {
        let own = tools.iter().filter(|tool| tool.server.as_str() == server);
        own.map(|tool| tool.original_name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(of("a"), of("b"));
    assert!(tools.is_sorted_by_key(|tool| tool.name.as_str().to_owned()));
    host.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn banners_and_a_flood_of_stderr_do_no_harm() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = quick();
    options.log_dir = Some(dir.path().to_owned());
    let host = started([fixture("s", "chatter")], options).await;
    assert_eq!(state(&host, "s"), ServerState::Ready);
    assert_eq!(call(&host, "s__echo", serde_json::json!({"text": "hi"})).await.text(), "Echo: hi");
    host.close().await;
    let log = std::fs::read_to_string(dir.path().join("s.log")).unwrap();
    assert_eq!(log.lines().filter(|line| line.ends_with("xxx")).count(), 20_000);
    assert!(log.contains("[stdout] Starting server on stdio..."));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_step_of_a_start_can_be_seen() {
    let mut config = fixture("s", "ok");
    config.disabled = true;
    let host = Host::start([config], quick());
    let mut news = host.subscribe();
    assert_eq!(state(&host, "s"), ServerState::Stopped);
    let id = ServerId::from("s");
    host.start_server(&id).unwrap();
    let mut seen = Vec::new();
    while seen.last() != Some(&ServerState::Ready) {
        let state = news.recv().await.unwrap().state;
        if seen.last() != Some(&state) {
            seen.push(state);
        }
    }
    use ServerState::{Ready, Starting, Stopped};
    let steps = [StartStep::Spawn, StartStep::Handshake, StartStep::ListTools].map(Starting);
    let seen: Vec<ServerState> = seen.into_iter().skip_while(|state| *state == Stopped).collect();
    assert_eq!(seen, [&steps[..], &[Ready]].concat());

    host.stop(&id).await.unwrap();
    assert_eq!(state(&host, "s"), Stopped);
    assert!(host.tools().is_empty());
    host.start_server(&id).unwrap();
    wait_for_start(&host, 2).await;
    assert_eq!(call_plain(&host, "s__add").await.result.outcome, ToolOutcome::Succeeded);
    host.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_come_and_go_at_run_time() {
    let host = host_with(fixture("a", "ok")).await;
    host.set(fixture("b", "legacy")).await;
    host.settled().await;
    assert_eq!(call(&host, "b__echo", serde_json::json!({"text": "b"})).await.text(), "Echo: b");
    host.set(fixture("b", "modern")).await;
    host.settled().await;
    let b = ServerId::from("b");
    assert_eq!(host.status(&b).unwrap().protocol.as_deref(), Some("2026-07-28"));
    host.remove(&ServerId::from("a")).await.unwrap();
    assert!(host.tools().iter().all(|tool| tool.server == b));
    assert_eq!(call_plain(&host, "a__echo").await.result.outcome, ToolOutcome::Failed);
    assert!(host.restart(&ServerId::from("a")).is_err());
    host.close().await;
}

/// Not a test of its own: an app that was started from a desktop.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stand_in_for_an_app_with_a_bare_path() {
    if std::env::var_os("LECTERN_TEST_BARE_PATH").is_none() {
        return;
    }
    let host = host_with(ServerConfig::new("s", "only-in-the-login-shell", ["--mode", "ok"])).await;
    println!("state: {:?}", state(&host, "s"));
    host.close().await;
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_on_the_path_of_the_login_shell_is_found() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let dir = tempfile::tempdir().unwrap();
    let bin = dir.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    symlink(lectern_fixture_server::binary(), bin.join("only-in-the-login-shell")).unwrap();
    // A login shell that prints a greeting, as many do, and then does what it is told with `-l -i -c`.
    let shell = dir.path().join("shell");
    let script = format!(
        "#!/bin/sh\necho no job control >&2; echo Welcome\nPATH=\"$PATH:{}\"\neval \"$4\"\n",
        bin.display()
    );
    std::fs::write(&shell, script).unwrap();
    std::fs::set_permissions(&shell, PermissionsExt::from_mode(0o755)).unwrap();

    let app = |shell: &std::path::Path| {
        let mut app = tokio::process::Command::new(std::env::current_exe().unwrap());
        app.args(["--exact", "stand_in_for_an_app_with_a_bare_path", "--nocapture"]);
        app.env("LECTERN_TEST_BARE_PATH", "1").env("SHELL", shell).kill_on_drop(true);
        app.output()
    };
    let output = app(&shell).await.unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("state: Ready"), "{output:?}");
    let output = app(std::path::Path::new("/bin/false")).await.unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("CommandNotFound"), "{output:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_servers_with_one_id_the_later_one_is_kept() {
    let host = started([fixture("s", "legacy"), fixture("s", "modern")], quick()).await;
    let [status] = &host.statuses()[..] else { panic!("{:?}", host.statuses()) };
    assert_eq!(status.protocol.as_deref(), Some("2026-07-28"));
    host.close().await;
}

/// Waits until the server `s` has been started that often and has settled.
async fn wait_for_start(host: &Host, starts: u64) {
    let mut news = host.subscribe();
    while host.status(&ServerId::from("s")).expect("the server s").starts < starts {
        news.recv().await.expect("the host lives");
    }
    host.settled().await;
}
