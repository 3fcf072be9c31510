//! States of conversations over restarts of the worker.

use std::path::{Path, PathBuf};
use std::time::Duration;

use lectern_core::{ChatModel, ChatRequest, ConversationId, Message, Purpose, Sampling, UserMessage};
use lectern_local::saved::forget_conversation;
use lectern_local::{CacheOptions, LocalOptions};
use lectern_test_gguf::{Architecture, Proportions, Recipe};

use crate::support::{Fixture, Reply, ask, random_model_with, request, worker};

struct Place {
    fixture: Fixture,
    folder: PathBuf,
    _keep: tempfile::TempDir,
}

fn options(folder: &Path) -> LocalOptions {
    let cache = CacheOptions {
        folder: Some(folder.to_owned()),
        rest: Duration::from_millis(20),
        ..CacheOptions::default()
    };
    LocalOptions { cache, ..LocalOptions::default() }
}

async fn place() -> Place {
    let keep = tempfile::tempdir().unwrap();
    let folder = keep.path().join("kv");
    let recipe = Recipe { context: 8192, ..Recipe::default() };
    let fixture = random_model_with(recipe, options(&folder), worker()).await;
    Place { fixture, folder, _keep: keep }
}

fn states(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path()).collect()
}

fn hot(text: &str) -> ChatRequest {
    ChatRequest {
        system: Some("You look after notes. ".repeat(20)),
        sampling: Sampling {
            temperature: Some(1.0),
            seed: Some(3),
            max_tokens: Some(40),
            ..Sampling::default()
        },
        ..request(text)
    }
}

fn go_on(ask_for: &mut ChatRequest, reply: &Reply, text: &str) {
    ask_for.messages.push(Message::Assistant(reply.message()));
    ask_for.messages.push(Message::User(UserMessage::text(text)));
}

#[tokio::test]
async fn a_model_that_goes_saves_what_it_had_no_rest_for() {
    let keep = tempfile::tempdir().unwrap();
    let folder = keep.path().join("kv");
    let mut options = options(&folder);
    options.cache.rest = Duration::from_secs(3600);
    let recipe = Recipe { context: 8192, ..Recipe::default() };
    let fixture = random_model_with(recipe, options, worker()).await;
    assert_eq!(ask(&fixture.model, hot("A question")).await.error, None);
    assert!(states(&folder).is_empty());
    let Fixture { model, .. } = fixture;
    drop(model);
    // It ends by itself; only one that never saves is waited for in vain.
    tokio::time::timeout(Duration::from_secs(60), async {
        while !states(&folder).iter().any(|state| state.extension().is_some_and(|end| end == "kv")) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await
    .expect("the state of the conversation is saved");
}

#[tokio::test]
async fn a_conversation_goes_on_after_a_restart() {
    let place = place().await;
    let model = &place.fixture.model;
    let mut ask_for = hot("First question");
    for question in ["second", "third", "fourth"] {
        let reply = ask(model, ask_for.clone()).await;
        assert_eq!(reply.error, None);
        go_on(&mut ask_for, &reply, question);
    }
    let last = ask(model, ask_for.clone()).await;
    let before = last.usage.prompt_tokens + last.usage.generated_tokens;
    go_on(&mut ask_for, &last, "fifth");
    // Chances would make more of the last digits than they are worth: batches of other sizes round otherwise.
    ask_for.sampling.temperature = Some(0.0);
    model.unload().await;
    assert_eq!(states(&place.folder).len(), 1);
    let warm = ask(model, ask_for.clone()).await;
    assert!(warm.usage.reused_tokens + 1 >= before, "{:?}, {before} before", warm.usage);
    // What is said does not depend on where the state came from.
    let again = ask(model, ask_for.clone()).await;
    model.unload().await;
    let restarted = ask(model, ask_for).await;
    assert_eq!((&warm.text, &again.text), (&restarted.text, &restarted.text));
}

#[tokio::test]
async fn states_are_saved_at_rest_and_survive_a_kill() {
    let place = place().await;
    let model = &place.fixture.model;
    let mut ask_for = hot("First question");
    let reply = ask(model, ask_for.clone()).await;
    go_on(&mut ask_for, &reply, "second");
    let patience = std::time::Instant::now() + Duration::from_secs(60);
    while !states(&place.folder).iter().any(|path| path.extension().is_some_and(|end| end == "kv")) {
        assert!(std::time::Instant::now() < patience, "nothing is saved");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let process = model.worker_id().await.unwrap();
    kill(process);
    let warm = ask(model, ask_for).await;
    assert_eq!(warm.error, None);
    assert!(warm.reuse() > 0.9, "{:?}", warm.usage);
}

pub fn kill(process: u32) {
    let status = std::process::Command::new("kill").args(["-9", &process.to_string()]).status().unwrap();
    assert!(status.success());
}

#[tokio::test]
async fn a_damaged_or_cut_state_is_dropped() {
    let place = place().await;
    let model = &place.fixture.model;
    let mut ask_for = hot("First question");
    let reply = ask(model, ask_for.clone()).await;
    go_on(&mut ask_for, &reply, "second");
    model.unload().await;
    let path = states(&place.folder).remove(0);
    let whole = std::fs::read(&path).unwrap();
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 4;
    for damaged in [&flipped[..], &whole[..whole.len() / 2], &whole[..10], b"", b"LECTKV01"] {
        states(&place.folder).iter().for_each(|path| std::fs::remove_file(path).unwrap());
        std::fs::write(&path, damaged).unwrap();
        let reply = ask(model, ask_for.clone()).await;
        assert_eq!((reply.error, reply.usage.reused_tokens), (None, 0));
        model.unload().await;
    }
    // One whose digests are right but which is another model's: the file changed.
    let model_file = model.file().info.path.clone();
    let mut bytes = std::fs::read(&model_file).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    std::fs::write(&model_file, bytes).unwrap();
    let reply = ask(model, ask_for).await;
    assert_eq!((reply.error, reply.usage.reused_tokens), (None, 0));
}

#[tokio::test]
async fn a_deleted_conversation_leaves_no_state() {
    let place = place().await;
    let model = &place.fixture.model;
    let other = ChatRequest { conversation: ConversationId::from("other"), ..hot("Another") };
    for ask_for in [hot("A secret"), other] {
        assert_eq!(ask(model, ask_for).await.error, None);
    }
    model.forget(Some(&ConversationId::from("one"))).await;
    model.unload().await;
    assert_eq!(states(&place.folder).len(), 1, "the other one stays");
    forget_conversation(&place.folder, "other").unwrap();
    assert_eq!(states(&place.folder), [] as [PathBuf; 0]);
}

#[tokio::test]
async fn a_model_that_nobody_holds_any_more_saves_nothing_that_was_deleted() {
    let keep = tempfile::tempdir().unwrap();
    let folder = keep.path().join("kv");
    let mut options = options(&folder);
    options.cache.rest = Duration::from_secs(3600);
    let deleted = options.deleted.clone();
    let recipe = Recipe { context: 8192, ..Recipe::default() };
    let fixture = random_model_with(recipe, options, worker()).await;
    let other = ChatRequest { conversation: ConversationId::from("other"), ..hot("Another") };
    for ask_for in [hot("A secret"), other] {
        assert_eq!(ask(&fixture.model, ask_for).await.error, None);
    }
    let lingering = fixture.model.lingering();
    deleted.add("one");
    drop(fixture);
    // The worker ends by itself, and this waits for it.
    lingering.unload().await;
    assert_eq!(states(&folder).len(), 1, "the other one stays");
    forget_conversation(&folder, "other").unwrap();
    assert_eq!(states(&folder), [] as [PathBuf; 0]);
}

#[tokio::test]
async fn edits_back_and_forth_and_side_jobs_keep_the_state() {
    let place = place().await;
    let model = &place.fixture.model;
    let mut trunk = hot("First question");
    let reply = ask(model, trunk.clone()).await;
    go_on(&mut trunk, &reply, &"a long second question ".repeat(8));
    let mut edited = trunk.clone();
    edited.messages.pop();
    edited.messages.push(Message::User(UserMessage::text("quite another second question ".repeat(8))));
    for round in 0..3 {
        for branch in [&trunk, &edited] {
            let reply = ask(model, branch.clone()).await;
            if round > 0 {
                assert!(reply.reuse() > 0.98, "round {round}: {:?}", reply.usage);
            }
            for number in 0..3 {
                let side = ChatRequest {
                    system: None,
                    purpose: Purpose::Side,
                    ..hot(&format!("A title for {number} {}", "text ".repeat(100)))
                };
                assert_eq!(ask(model, side).await.error, None);
            }
        }
    }
}

#[tokio::test]
async fn what_leaves_a_full_cache_comes_back() {
    let keep = tempfile::tempdir().unwrap();
    for folder in [None, Some(keep.path().join("kv"))] {
        let cache = CacheOptions { folder, ..CacheOptions::default() };
        let options = LocalOptions { context: Some(2048), cache, ..LocalOptions::default() };
        let fixture = random_model_with(Recipe::default(), options, worker()).await;
        let of = |number: u32| ChatRequest {
            conversation: ConversationId(format!("conversation {number}")),
            ..hot(&format!("{number} {}", "words ".repeat(100)))
        };
        let first = |reply: Reply| (reply.error, reply.text);
        let mut said = Vec::new();
        for number in 0..6 {
            said.push(first(ask(&fixture.model, of(number)).await));
        }
        for number in 0..6 {
            let again = ask(&fixture.model, of(number)).await;
            assert!(again.reuse() > 0.98, "{number}: {:?}", again.usage);
            assert_eq!(first(again), said[number as usize]);
        }
    }
}

#[tokio::test]
async fn models_that_cannot_forget_go_back_to_copies() {
    for architecture in [Architecture::Hybrid, Architecture::Recurrent, Architecture::Predicting] {
        let keep = tempfile::tempdir().unwrap();
        let path = keep.path().join("random.gguf");
        std::fs::write(&path, Proportions::tiny(architecture).random(5)).unwrap();
        let model = crate::support::open(&path, options(&keep.path().join("kv")), worker()).await;
        let mut ask_for = hot("First question");
        let mut steps = Vec::new();
        for question in ["second", "third"] {
            let reply = ask(&model, ask_for.clone()).await;
            assert_eq!(reply.error, None, "{architecture:?}");
            go_on(&mut ask_for, &reply, question);
            steps.push(ask_for.clone());
        }
        let whole = ask(&model, ask_for.clone()).await;
        assert!(whole.reuse() > 0.9, "{architecture:?}: {:?}", whole.usage);
        // Back by one turn, and the same again.
        let back = ask(&model, steps[0].clone()).await;
        assert!(back.reuse() > 0.8, "{architecture:?}: {:?}", back.usage);
        let mut edited = ask_for.clone();
        edited.messages.pop();
        edited.messages.push(Message::User(UserMessage::text("an edit")));
        let warm = ask(&model, edited.clone()).await;
        assert!(warm.reuse() > 0.8, "{architecture:?}: {:?}", warm.usage);
        model.unload().await;
        let restarted = ask(&model, edited.clone()).await;
        assert!(restarted.reuse() > 0.8, "{architecture:?}: {:?}", restarted.usage);
        assert_eq!(warm.text, restarted.text, "{architecture:?}");
        // Without random bytes in the history the prompt is the same from nothing.
        let question = |text: &str| {
            let mut ask_for = hot("A question");
            ask_for.messages.push(Message::User(UserMessage::text(text)));
            ask_for
        };
        ask(&model, question(&"one that is long ".repeat(9))).await;
        let warm = ask(&model, question("another")).await;
        assert!(warm.reuse() > 0.8, "{architecture:?}: {:?}", warm.usage);
        model.forget(None).await;
        let cold = ask(&model, question("another")).await;
        assert_eq!((cold.usage.reused_tokens, cold.text), (0, warm.text), "{architecture:?}");
    }
}

#[tokio::test]
async fn the_count_is_that_of_the_prompt() {
    let place = place().await;
    let model = &place.fixture.model;
    let mut ask_for = hot("How long is this?");
    let counted = model.count(ask_for.clone()).await.unwrap();
    let reply = ask(model, ask_for.clone()).await;
    assert_eq!(counted, Some(reply.usage.prompt_tokens));
    go_on(&mut ask_for, &reply, "And now?");
    ask_for.tools.push(crate::support::tool("notes__list", serde_json::json!({"type": "object"})));
    let counted = model.count(ask_for.clone()).await.unwrap();
    assert_eq!(counted, Some(ask(model, ask_for).await.usage.prompt_tokens));
}
