//! A worker that is killed at any moment of a turn costs one reply at most, and leaves nothing behind.

use std::path::Path;
use std::time::Duration;

use lectern_core::{ChatRequest, Delta, Message, ModelErrorCode, Sampling, UserMessage};
use lectern_local::{CacheOptions, LocalModel, LocalOptions};
use lectern_test_gguf::Recipe;

use crate::support::{Reply, ask, random_model_with, request, worker};

const KILLS: u64 = 100;

fn question(round: u64) -> ChatRequest {
    let mut ask_for = ChatRequest {
        system: Some("You look after notes. ".repeat(60)),
        sampling: Sampling {
            seed: Some(5),
            temperature: Some(1.0),
            max_tokens: Some(120),
            ..Sampling::default()
        },
        ..request("First question")
    };
    ask_for
        .messages
        .push(Message::User(UserMessage::text(format!("Round {round}: {}", "more words ".repeat(60)))));
    ask_for
}

/// Children of this process whose parent has not asked how they ended.
fn zombies() -> usize {
    let own = std::process::id().to_string();
    let is_ours = |stat: &str| {
        stat.rsplit_once(')').is_some_and(|(_, rest)| {
            let mut fields = rest.split_whitespace();
            fields.next() == Some("Z") && fields.next() == Some(own.as_str())
        })
    };
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let stats = processes.filter_map(|process| std::fs::read_to_string(process.path().join("stat")).ok());
    stats.filter(|stat| is_ours(stat)).count()
}

/// Whether this process has mapped a file.
fn maps(path: &Path) -> bool {
    std::fs::read_to_string("/proc/self/maps").unwrap().contains(&path.display().to_string())
}

/// A number below `most` that looks like chance.
fn chance(round: u64, most: u64) -> u64 {
    let mixed = (round + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) % most
}

async fn killed_while_it_answers(model: &LocalModel, round: u64, pause: Duration) -> Reply {
    let process = model.worker_id().await;
    let signal = if round.is_multiple_of(2) { "-KILL" } else { "-ABRT" };
    let killer = async {
        tokio::time::sleep(pause).await;
        // The worker that runs now, which may have been started by this reply.
        if let Some(process) = process {
            let _ = std::process::Command::new("kill").args([signal, &process.to_string()]).output();
        }
    };
    let (reply, ()) = tokio::join!(ask(model, question(round)), killer);
    reply
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_kills_cost_a_reply_each_at_most() {
    let folder = tempfile::tempdir().unwrap();
    let states = folder.path().join("kv");
    let cache = CacheOptions {
        folder: Some(states.clone()),
        rest: Duration::from_millis(1),
        ..CacheOptions::default()
    };
    let options = LocalOptions { cache, ..LocalOptions::default() };
    let recipe = Recipe { context: 8192, blocks: 4, width: 128, ..Recipe::default() };
    let fixture = random_model_with(recipe, options, worker()).await;
    let model = &fixture.model;
    assert_eq!(ask(model, question(0)).await.error, None);
    let began = std::time::Instant::now();
    assert_eq!(ask(model, question(1)).await.error, None);
    // The prompt, the reply, and a little of the rest in which it is saved.
    let whole = began.elapsed().mul_f64(1.2);
    let (mut errors, mut again, mut untouched) = (0, 0, 0);
    for round in 0..KILLS {
        if model.worker_id().await.is_none() {
            // So that there is a worker to be killed; it loads with the question.
            assert_eq!(
                ask(model, question(round + 1)).await.error,
                None,
                "round {round}: the next turn works"
            );
        }
        if round % 4 == 3 {
            // In the save at rest.
            tokio::time::sleep(whole.mul_f64(chance(round, 100) as f64 / 400.0)).await;
        }
        let pause = whole.mul_f64(chance(round, 1000) as f64 / 1000.0);
        let reply = killed_while_it_answers(model, round, pause).await;
        match reply.error {
            Some(error) => {
                assert_eq!(error.code, ModelErrorCode::ModelCrashed, "{error}");
                assert!(error.message.contains("signal"), "{error}");
                errors += 1;
            }
            None if reply.deltas.iter().any(|delta| matches!(delta, Delta::Loading(_))) => again += 1,
            None => untouched += 1,
        }
    }
    let last = ask(model, question(7)).await;
    assert_eq!(last.error, None);
    println!(
        "FIGURE {KILLS} kills of a worker: {errors} errors, {again} tried again, {untouched} whole before"
    );
    assert!(errors + again > 0, "no kill hit a reply");
    assert_eq!(zombies(), 0);
    assert!(!maps(&model.file().info.path), "the host maps no model");
    model.unload().await;
    let names: Vec<String> = std::fs::read_dir(&states)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(names.iter().all(|name| name.ends_with(".kv")), "temporary files are left: {names:?}");
    // And what was saved is sound: it is used after a restart.
    let warm = ask(model, question(7)).await;
    assert!(warm.reuse() > 0.9, "{:?} of {names:?}", warm.usage);
}
