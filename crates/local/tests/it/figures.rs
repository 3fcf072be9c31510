//! Figures to look at, not to assert: run with `--ignored --nocapture`.

use std::time::{Duration, Instant};

use lectern_core::{ChatModel, Delta, Sampling};
use lectern_test_gguf::Recipe;
use tokio_util::sync::CancellationToken;

use crate::support::{Fixture, Reply, ask, model_at, random_model, repository, request, worker};

/// How long the stream goes on after a cancel that comes `after` the prompt was begun.
async fn cancelled(fixture: &Fixture, prompt: &str, after: Duration) -> (Duration, Reply) {
    let cancel = CancellationToken::new();
    let mut long = request(prompt);
    long.sampling = Sampling { seed: Some(1), temperature: Some(2.0), ..Sampling::default() };
    let mut stream = fixture.model.stream(long, cancel.clone());
    let (mut reply, mut at) = (Reply::default(), None);
    while let Some(delta) = futures::StreamExt::next(&mut stream).await {
        if matches!(delta, Ok(Delta::PromptProgress { .. })) && at.is_none() {
            at = Some(Instant::now() + after);
            let cancel = cancel.clone();
            tokio::spawn(async move {
                tokio::time::sleep(after).await;
                cancel.cancel();
            });
        }
        reply.take(delta);
    }
    (at.unwrap().elapsed(), reply)
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "figures, not a test"]
async fn figures() {
    let path = repository().join("models/starter/starter.gguf");
    let began = Instant::now();
    let starter = model_at(&path).await;
    println!("starter: looked at and worker answered after {:?}", began.elapsed());
    let began = Instant::now();
    let first = ask(&starter.model, request("Hello")).await;
    println!("starter: loaded and {} tokens after {:?}", first.usage.generated_tokens, began.elapsed());
    let began = Instant::now();
    let _ = lectern_local::inspect(&path, &worker()).await.unwrap();
    println!("inspect with a worker of its own: {:?}", began.elapsed());

    let large = random_model(Recipe { width: 1024, blocks: 8, ..Recipe::default() }).await;
    let began = Instant::now();
    ask(&large.model, request("Hello")).await;
    println!("84 M parameters (F32): loaded and 24 tokens after {:?}", began.elapsed());
    let prompt = "many words ".repeat(300);
    let mut worst = Duration::ZERO;
    for round in 0..12 {
        let after = Duration::from_millis(40 + 333 * round);
        let (late, reply) = cancelled(&large, &format!("{round} {prompt}"), after).await;
        worst = worst.max(late);
        println!("cancelled after {after:?}: ended {late:?} later, {:?}", reply.usage);
    }
    println!("worst {worst:?}");
}
