use std::time::{Duration, Instant};

use futures::StreamExt;
use lectern_core::{ChatModel, Delta, FinishReason, ModelErrorCode, Sampling};
use lectern_local::{LocalOptions, Misbehaviour};
use lectern_test_gguf::Recipe;
use tokio_util::sync::CancellationToken;

use crate::support::{Fixture, Reply, ask, random_model, random_model_with, request, worker};

async fn fixture() -> Fixture {
    random_model_with(Recipe::default(), LocalOptions::default(), worker().allow_misbehaviour()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_costs_one_reply() {
    let fixture = fixture().await;
    assert_eq!(ask(&fixture.model, request("Hello")).await.error, None);
    let first = fixture.model.worker_id().await;
    fixture.model.misbehave(Misbehaviour::AbortInReply).await;
    let mut hot = request("Hello again");
    hot.sampling = Sampling { temperature: Some(1.5), ..hot.sampling };
    let error = ask(&fixture.model, hot).await.error.expect("the worker aborts in this reply");
    assert_eq!(error.code, ModelErrorCode::ModelCrashed);
    assert!(error.message.contains("SIGABRT"), "{error}");
    assert_eq!(fixture.model.worker_id().await, None);
    let reply = ask(&fixture.model, request("Hello once more")).await;
    assert_eq!(reply.error, None);
    assert!(reply.deltas.contains(&Delta::Loading(1.0)), "the model is loaded anew");
    assert_ne!(fixture.model.worker_id().await, first);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_between_replies_costs_none() {
    let fixture = fixture().await;
    assert_eq!(ask(&fixture.model, request("Hello")).await.error, None);
    fixture.model.misbehave(Misbehaviour::Abort).await;
    let reply = ask(&fixture.model, request("Hello")).await;
    assert_eq!(reply.error, None);
    assert!(reply.deltas.contains(&Delta::Loading(1.0)), "the model is loaded anew");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_in_a_load_is_tried_once_more() {
    let fixture = fixture().await;
    fixture.model.misbehave(Misbehaviour::AbortInLoad).await;
    let first = fixture.model.worker_id().await;
    let reply = ask(&fixture.model, request("Hello")).await;
    assert_eq!(reply.error, None);
    let begun = reply.deltas.iter().filter(|delta| **delta == Delta::Loading(0.0)).count();
    assert!(begun >= 2, "{:?}", reply.deltas);
    let told = |delta: &Delta| matches!(delta, Delta::Notice { code, .. } if code == "model_reloaded");
    assert_eq!(reply.deltas.iter().filter(|delta| told(delta)).count(), 1, "{:?}", reply.deltas);
    assert_ne!(fixture.model.worker_id().await, first);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_hangs_is_killed_after_a_cancel() {
    let fixture = fixture().await;
    assert_eq!(ask(&fixture.model, request("Hello")).await.error, None);
    fixture.model.misbehave(Misbehaviour::HangInReply).await;
    let first = fixture.model.worker_id().await;
    let cancel = CancellationToken::new();
    let mut hot = request("Hello again");
    hot.sampling = Sampling { temperature: Some(1.5), ..hot.sampling };
    let mut stream = fixture.model.stream(hot, cancel.clone());
    let mut reply = Reply::default();
    tokio::spawn({
        let cancel = cancel.clone();
        async move {
            tokio::time::sleep(Duration::from_millis(700)).await;
            cancel.cancel();
        }
    });
    while let Some(delta) = stream.next().await {
        reply.take(delta);
    }
    assert_eq!(reply.finish, Some(FinishReason::Cancelled));
    let next = ask(&fixture.model, request("Hello")).await;
    assert_eq!(next.error, None);
    assert_ne!(fixture.model.worker_id().await, first, "the hanging worker was replaced");
}

#[tokio::test(flavor = "multi_thread")]
async fn prints_of_libraries_do_not_reach_the_protocol() {
    let fixture = fixture().await;
    fixture.model.misbehave(Misbehaviour::Print).await;
    assert_eq!(ask(&fixture.model, request("Hello")).await.error, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn misbehaviour_needs_permission() {
    let fixture = random_model(Recipe::default()).await;
    fixture.model.misbehave(Misbehaviour::Abort).await;
    assert_eq!(ask(&fixture.model, request("Hello")).await.error, None);
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn the_worker_goes_with_the_model() {
    let fixture = fixture().await;
    assert_eq!(ask(&fixture.model, request("Hello")).await.error, None);
    let id = fixture.model.worker_id().await.unwrap();
    let process = std::path::PathBuf::from(format!("/proc/{id}"));
    assert!(process.exists());
    drop(fixture);
    let patience = Instant::now() + Duration::from_secs(20);
    while std::fs::read_to_string(process.join("stat")).is_ok_and(|stat| !stat.contains(") Z ")) {
        assert!(Instant::now() < patience, "the worker outlives its model");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
