//! The doctor names the step that fails, and how to mend it.

mod support;

use std::sync::Mutex;

use lectern_core::ServerId;
use lectern_fixture_server::Remote;
use lectern_mcp::doctor::{Check, Step, Verdict};
use lectern_mcp::{Host, ServerConfig};
use support::*;

/// What the doctor finds about a server that nobody has started.
async fn findings(config: ServerConfig) -> (bool, Vec<Check>) {
    let id = config.id.clone();
    let host = Host::start([ServerConfig { disabled: true, ..config }], quick());
    let checks = Mutex::new(Vec::new());
    let fine = host.examine(&id, |check| checks.lock().expect("no panic").push(check)).await;
    host.close().await;
    (fine.expect("a known server"), checks.into_inner().expect("no panic"))
}

fn of(checks: &[Check], step: Step) -> &Check {
    checks.iter().find(|check| check.step == step).unwrap_or_else(|| panic!("no {step:?} in {checks:#?}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_healthy_server_passes_every_step() {
    for mode in ["legacy", "modern", "bad-tool"] {
        let (fine, checks) = findings(fixture("s", mode)).await;
        assert!(fine, "{mode}: {checks:#?}");
        let steps: Vec<Step> = checks.iter().map(|check| check.step).collect();
        use Step::*;
        assert_eq!(steps, [Path, Executable, Version, Spawn, SignIn, Handshake, List, Call]);
        assert!(of(&checks, Handshake).says.contains("fixture 1.0"), "{checks:#?}");
        assert_eq!(of(&checks, Call).verdict, Verdict::Passed, "{mode}: {checks:#?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_step_that_breaks_is_the_only_one_that_fails() {
    let missing = ServerConfig::new("s", "no-such-command-anywhere", ["x"]);
    for (config, step, part) in [
        (missing, Step::Executable, "not found"),
        (fixture("s", "early-exit"), Step::Handshake, "API key missing"),
        (fixture("s", "future"), Step::Handshake, "2099-01-01"),
        (fixture("s", "list-refused"), Step::List, "the list is on strike"),
    ] {
        let (fine, checks) = findings(config).await;
        assert!(!fine);
        let failed: Vec<&Check> = checks.iter().filter(|check| check.verdict == Verdict::Failed).collect();
        let [check] = failed[..] else { panic!("{checks:#?}") };
        assert_eq!(check.step, step, "{check:?}");
        assert!(check.says.contains(part), "{check:?}");
        assert_eq!(of(&checks, Step::Call).verdict, Verdict::Skipped);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn well_known_programs_are_asked_for_their_version_and_others_are_not() {
    let config = ServerConfig::new("s", "python3", ["-c", "print('no server')"]);
    let (fine, checks) = findings(config).await;
    assert!(!fine);
    assert!(of(&checks, Step::Version).says.starts_with("Python 3"), "{checks:#?}");
    let (_, checks) = findings(fixture("s", "ok")).await;
    assert_eq!(of(&checks, Step::Version).verdict, Verdict::Skipped);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_remote_server_the_address_is_looked_at() {
    let mut remote = Remote::start(&["--mode", "ok"]);
    let (fine, checks) = findings(ServerConfig::remote("s", remote.url())).await;
    assert!(fine, "{checks:#?}");
    assert!(of(&checks, Step::Address).says.contains("HTTP 200"), "{checks:#?}");

    remote.kill();
    let (fine, checks) = findings(ServerConfig::remote("s", remote.url())).await;
    assert!(!fine);
    let address = of(&checks, Step::Address);
    assert!(address.verdict == Verdict::Failed && address.says.contains("127.0.0.1"), "{address:?}");
    assert!(address.hint.is_some());

    let (_, checks) = findings(ServerConfig::remote("s", "https://no-such-host.invalid/mcp")).await;
    assert!(of(&checks, Step::Address).says.contains("no-such-host.invalid"), "{checks:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_runs_is_left_alone() {
    let host = host_with(fixture("s", "ok")).await;
    let id = ServerId::from("s");
    let before = host.status(&id).unwrap();
    assert!(host.examine(&id, |_| ()).await.unwrap());
    assert_eq!(host.status(&id).unwrap(), before);
    host.close().await;
}
