//! A model's own layer that predicts a further token changes when tokens are evaluated and nothing else.

use std::path::Path;

use lectern_core::{ChatRequest, ConversationId, Message, Sampling, UserMessage};
use lectern_local::{CacheOptions, LocalOptions, Lookup, SpeedOptions};
use lectern_test_gguf::{Architecture, Predicts, Proportions, Recipe};

use crate::speculation::{in_every_way, shown};
use crate::support::{Fixture, Reply, ask, model_with, random_model_with, request, worker};

fn options(mtp: bool, lookup: Lookup) -> LocalOptions {
    LocalOptions { speed: SpeedOptions { lookup, mtp, ..SpeedOptions::default() }, ..LocalOptions::default() }
}

async fn model(bytes: &[u8], folder: &Path, mtp: bool, lookup: Lookup) -> Fixture {
    let path = folder.join("predicting.gguf");
    std::fs::write(&path, bytes).unwrap();
    model_with(&path, options(mtp, lookup)).await
}

fn tiny() -> Proportions {
    Proportions::tiny(Architecture::Predicting)
}

fn greedy(text: &str) -> ChatRequest {
    let sampling = Sampling { temperature: Some(0.0), max_tokens: Some(200), ..Sampling::default() };
    ChatRequest { sampling, ..request(text) }
}

fn guesses(reply: &Reply) -> (u32, u32) {
    (reply.usage.guessed_tokens.unwrap_or(0), reply.usage.right_guesses.unwrap_or(0))
}

fn go_on(ask_for: &mut ChatRequest, reply: &Reply, text: &str) {
    ask_for.messages.push(Message::Assistant(reply.message()));
    ask_for.messages.push(Message::User(UserMessage::text(text)));
}

#[tokio::test]
async fn wrong_predictions_leave_no_trace() {
    let (mut guessed, mut right) = (0, 0);
    for lookup in [Lookup::Off, Lookup::On] {
        for seed in 1..4 {
            let folder = tempfile::tempdir().unwrap();
            let bytes = tiny().sure(seed, Predicts::Anything);
            let plain = model(&bytes, folder.path(), false, Lookup::Off).await;
            let guessing = model(&bytes, folder.path(), true, lookup).await;
            for (which, ask_for) in in_every_way(seed as u32).into_iter().enumerate() {
                let expected = ask(&plain.model, ask_for.clone()).await;
                let reply = ask(&guessing.model, ask_for.clone()).await;
                assert_eq!(shown(&reply), shown(&expected), "request {which} of seed {seed}, {lookup:?}");
                let count = guesses(&reply);
                (guessed, right) = (guessed + count.0, right + count.1);
                let mut next = ask_for;
                go_on(&mut next, &reply, "go on");
                let expected = ask(&plain.model, next.clone()).await;
                let reply = ask(&guessing.model, next).await;
                assert_eq!(
                    shown(&reply),
                    shown(&expected),
                    "after request {which} of seed {seed}, {lookup:?}"
                );
                assert_eq!(reply.usage.reused_tokens, expected.usage.reused_tokens, "{which} of seed {seed}");
            }
        }
    }
    println!("FIGURE predictions of a random layer: {guessed} guessed, {right} right");
    assert!(
        guessed > 500 && guessed - right > 200,
        "{guessed} guessed, {right} right: too few to show anything"
    );
}

#[tokio::test]
async fn what_is_predicted_rightly_comes_in_fewer_steps() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = tiny().sure(7, Predicts::Rightly);
    let guessing = model(&bytes, folder.path(), true, Lookup::Off).await;
    let reply = ask(&guessing.model, greedy("Hello there")).await;
    assert_eq!(reply.error, None);
    let (guessed, right) = guesses(&reply);
    assert!(guessed > 0 && right * 10 >= guessed * 9, "{:?}", reply.usage);
    let written = reply.usage.generated_tokens;
    assert!(right * 10 > written * 6, "three of four tokens can come of guesses: {:?}", reply.usage);
}

#[tokio::test]
async fn other_conversations_edits_and_restarts_change_no_text() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = tiny().sure(3, Predicts::Anything);
    let path = folder.path().join("predicting.gguf");
    std::fs::write(&path, bytes).unwrap();
    let with = |mtp| LocalOptions {
        cache: CacheOptions {
            folder: Some(folder.path().join(format!("kv-{mtp}"))),
            ..CacheOptions::default()
        },
        ..options(mtp, Lookup::Off)
    };
    let (plain, guessing) = (model_with(&path, with(false)).await, model_with(&path, with(true)).await);
    let of =
        |name: &str, text: &str| ChatRequest { conversation: ConversationId::from(name), ..greedy(text) };
    let (mut one, two) = (of("one", "The first question"), of("two", &"Another long one. ".repeat(20)));
    let mut reuse = Vec::new();
    for round in 0..3 {
        for ask_for in [&one, &two] {
            let (expected, reply) =
                (ask(&plain.model, ask_for.clone()).await, ask(&guessing.model, ask_for.clone()).await);
            assert_eq!(shown(&reply), shown(&expected), "round {round}");
            assert_eq!(reply.usage.reused_tokens, expected.usage.reused_tokens, "round {round}");
            reuse.push(reply.reuse());
        }
        let reply = ask(&plain.model, one.clone()).await;
        go_on(&mut one, &reply, "go on");
        if round == 1 {
            guessing.model.unload().await;
            plain.model.unload().await;
        }
    }
    assert!(reuse[4] > 0.5 && reuse[5] > 0.5, "nothing was kept over the restart: {reuse:?}");
}

#[tokio::test]
async fn a_file_without_the_layer_is_refused_with_a_reason() {
    let recipe = Recipe::default();
    let fixture = random_model_with(recipe, options(true, Lookup::Auto), worker()).await;
    let error = ask(&fixture.model, request("Hello")).await.error.unwrap();
    assert!(error.message.contains("has 0") && error.message.contains("`mtp`"), "{}", error.message);
}
