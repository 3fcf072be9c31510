//! Workers that die of instructions which the processor reports and does not have.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use lectern_core::{Delta, ModelErrorCode};
use lectern_local::{LocalOptions, WorkerCommand, measure, try_template};
use lectern_test_gguf::Recipe;

use crate::support::{Fixture, Reply, ask, random_model, random_model_with, request};

const WORKER: &str = env!("CARGO_BIN_EXE_lectern-local-worker");

/// A worker for a processor that cannot run some kinds of code: it says that it runs the first that it is not to
/// avoid, else the first, and with one of the bad kinds it dies of an illegal instruction at a request for `job`.
/// Everything else a real worker does.
fn faulty(folder: &Path, kinds: &str, bad: &str, job: &str) -> WorkerCommand {
    let script = format!(
        r#"#!/bin/sh
set -- {kinds}
kind=$1
for one; do
    case ",$LECTERN_WORKER_AVOID," in
    *",$one,"*) ;;
    *) kind=$one; break ;;
    esac
done
echo "$kind" >>'{log}'
[ -z "$kind" ] || echo '{{"event":"code","kind":"'"$kind"'"}}'
case " {bad} " in
*" $kind "*)
    while read -r line; do
        case $line in
        *'"do":"{job}"'*) kill -ILL $$; exit ;;
        esac
        printf '%s\n' "$line"
    done | {WORKER}
    ;;
*) exec {WORKER} ;;
esac
"#,
        log = log(folder).display(),
    );
    let path = folder.join("worker.sh");
    std::fs::write(&path, script).unwrap();
    std::fs::set_permissions(&path, Permissions::from_mode(0o700)).unwrap();
    WorkerCommand::new("/bin/sh", [path])
}

fn log(folder: &Path) -> PathBuf {
    folder.join("started")
}

/// The kinds that workers ran, in order.
fn started(folder: &Path) -> Vec<String> {
    std::fs::read_to_string(log(folder)).unwrap().lines().map(str::to_owned).collect()
}

async fn model(worker: WorkerCommand) -> Fixture {
    random_model_with(Recipe::default(), LocalOptions::default(), worker).await
}

/// Why processes were started anew, as the user is told.
fn told(reply: &Reply) -> Vec<String> {
    let each = reply.deltas.iter().filter_map(|delta| match delta {
        Delta::Notice { code, message } if code == "model_reloaded" => Some(message),
        _ => None,
    });
    let reason =
        |message: &String| message.strip_prefix("the model's process was started anew: ").unwrap().to_owned();
    each.map(reason).collect()
}

fn cannot_run(kind: &str) -> String {
    format!("this processor cannot run the code for {kind}; the next best is used")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_load_goes_on_with_the_next_kinds_and_they_are_remembered() {
    let folder = tempfile::tempdir().unwrap();
    let kept = folder.path().join("unfit.json");
    let command =
        || faulty(folder.path(), "best second third", "best second", "load").remembering(kept.clone());
    let reply = ask(&model(command()).await.model, request("Hello")).await;
    assert_eq!(reply.error, None);
    assert_eq!(told(&reply), [cannot_run("best"), cannot_run("second")]);
    assert_eq!(started(folder.path()), ["best", "second", "third"]);
    // The application is started again.
    let reply = ask(&model(command()).await.model, request("Hello")).await;
    assert_eq!((reply.error.clone(), told(&reply)), (None, vec![]));
    assert_eq!(started(folder.path()).last().unwrap(), "third");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_goes_on_with_the_next_kinds() {
    let folder = tempfile::tempdir().unwrap();
    let fixture = model(faulty(folder.path(), "best second third", "best second", "generate")).await;
    let reply = ask(&fixture.model, request("Hello")).await;
    assert_eq!(reply.error, None);
    assert_eq!(told(&reply), [cannot_run("best"), cannot_run("second")]);
    let next = ask(&fixture.model, request("Hello")).await;
    assert_eq!((next.error.clone(), told(&next)), (None, vec![]));
    assert_eq!(started(folder.path()), ["best", "second", "third"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_processor_that_can_run_nothing_is_told_so_in_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let fixture = model(faulty(folder.path(), "best second", "best second", "load")).await;
    let reply = ask(&fixture.model, request("Hello")).await;
    let error = reply.error.clone().unwrap();
    assert_eq!(error.code, ModelErrorCode::BadModelFile);
    assert!(error.message.contains("tried twice") && error.message.contains("SIGILL"), "{error}");
    let once_more = "it died while it loaded the model".to_owned();
    assert_eq!(told(&reply), [cannot_run("best"), cannot_run("second"), once_more]);
    assert_eq!(started(folder.path()), ["best", "second", "best", "best"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_kinds_it_is_a_death_like_others() {
    let folder = tempfile::tempdir().unwrap();
    let fixture = model(faulty(folder.path(), "''", "", "load")).await;
    let reply = ask(&fixture.model, request("Hello")).await;
    assert!(reply.error.clone().unwrap().message.contains("SIGILL"), "{reply:?}");
    assert_eq!(told(&reply), ["it died while it loaded the model"]);
    assert_eq!(started(folder.path()), ["", ""]);
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_beside_replies_go_on_with_the_next_kind() {
    let folder = tempfile::tempdir().unwrap();
    let bad = |job| faulty(folder.path(), "best second", "best", job);
    let devices = measure::devices(&bad("devices")).await.unwrap();
    assert!(!devices.is_empty());
    try_template("{{ messages[0].content }}", &bad("describe")).await.unwrap();
    let fixture = model(bad("describe")).await;
    assert_eq!(fixture.model.file().template_error, None);
    let (path, time) = (&fixture.model.file().info.path, std::time::Duration::from_millis(50));
    for job in ["load", "bench"] {
        measure::bench(path, &LocalOptions::default(), &bad(job), time).await.unwrap();
    }
    assert_eq!(started(folder.path()), ["best", "second"].repeat(5));
}

/// A build for one kind of processor has no other code; a portable one does.
#[tokio::test(flavor = "multi_thread")]
async fn a_real_worker_that_is_killed_so_is_replaced() {
    let fixture = random_model(Recipe::default()).await;
    assert_eq!(ask(&fixture.model, request("Hello")).await.error, None);
    let process = fixture.model.worker_id().await.unwrap().to_string();
    assert!(std::process::Command::new("kill").args(["-ILL", &process]).status().unwrap().success());
    // It has ended when nobody but this process knows of it.
    while std::fs::read_to_string(format!("/proc/{process}/stat")).is_ok_and(|stat| !stat.contains(") Z ")) {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    let reply = ask(&fixture.model, request("Hello")).await;
    assert_eq!(reply.error, None);
    let told = told(&reply);
    if cfg!(feature = "portable-cpu") {
        let kind = told[0].strip_prefix("this processor cannot run the code for ").unwrap();
        assert!(kind.ends_with("; the next best is used") && !kind.starts_with(';'), "{told:?}");
    } else {
        // Whether its end was seen before the question or over it, no kind of code is blamed.
        assert!(!told.iter().any(|said| said.contains("code for")), "{told:?}");
    }
}
