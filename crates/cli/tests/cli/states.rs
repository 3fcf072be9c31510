//! What is saved of conversations, over changes of the model and deletions.

use std::fs;
use std::path::Path;
use std::time::Duration;

use lectern_app::view::{SendReceipt, SendRequest};
use lectern_app::{Engine, EngineOptions, Home};
use lectern_core::{ConversationId, EventKind, Events, ModelId, Usage};
use lectern_test_gguf::Recipe;
use serde_json::{Value, json};

use crate::engine::Opened;

/// Only a broken engine reaches it.
const PATIENCE: Duration = Duration::from_secs(120);

impl Opened {
    /// A small model of its own weights, at this place in the folder.
    async fn random_model(&self, at: &str, seed: u64, settings: &Value) -> ModelId {
        let path = self.folder.path().join(at);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, Recipe { context: 65_536, ..Recipe::seeded(seed) }.bytes()).unwrap();
        let id = self.engine.add_model(&path).unwrap().id;
        let mut changes = json!({"tools": "off", "max_tokens": 40, "seed": 7});
        changes.as_object_mut().unwrap().extend(settings.as_object().unwrap().clone());
        self.engine.set_model_generation(&id, changes.as_object().unwrap()).await.unwrap();
        id
    }

    async fn begin(&self, conversation: Option<&ConversationId>, model: &ModelId, text: &str) -> SendReceipt {
        let request = SendRequest {
            conversation: conversation.cloned(),
            text: text.to_owned(),
            model: Some(model.clone()),
            ..SendRequest::default()
        };
        self.engine.send(request).await.unwrap()
    }

    async fn ask(
        &self,
        conversation: Option<&ConversationId>,
        model: &ModelId,
        text: &str,
    ) -> (ConversationId, Usage) {
        let receipt = self.begin(conversation, model, text).await;
        let events = self.events(&receipt, -1).await;
        let usage = events.iter().find_map(|event| match &event.kind {
            EventKind::StepFinished { stats, .. } => Some(stats.usage),
            _ => None,
        });
        (receipt.conversation, usage.unwrap_or_else(|| panic!("{events:#?}")))
    }

    async fn until_saved(&self, conversations: u32) {
        let saved = async {
            while self.engine.saved_states().unwrap().conversations != conversations {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(PATIENCE, saved).await.expect("so many conversations are saved");
    }
}

fn states(folder: &Path) -> usize {
    let entries = fs::read_dir(folder).unwrap().flatten();
    entries.filter(|entry| entry.path().extension().is_some_and(|end| end == "kv")).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conversation_goes_on_where_it_was_after_another_model() {
    let opened = Opened::fresh();
    let (one, other) = (
        opened.random_model("one.gguf", 5, &json!({})).await,
        opened.random_model("other.gguf", 6, &json!({})).await,
    );
    let (conversation, first) = opened.ask(None, &one, "What is the heat pump's error?").await;
    let known = first.prompt_tokens + first.generated_tokens;

    // At once: there was no rest in which a state would have been saved.
    let (_, away) = opened.ask(Some(&conversation), &other, "And now?").await;
    assert_eq!(away.reused_tokens, 0, "another model has read nothing yet");
    let (_, back) = opened.ask(Some(&conversation), &one, "And what else?").await;
    assert!(back.reused_tokens + 2 >= known, "{known} tokens were read before: {first:?}, then {back:?}");
    let (_, again) = opened.ask(Some(&conversation), &other, "And then?").await;
    assert!(again.reused_tokens + 2 >= away.prompt_tokens + away.generated_tokens, "{away:?}, {again:?}");
    opened.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_conversation_leaves_no_state() {
    let opened = Opened::fresh();
    let engine = &opened.engine;
    let model = opened.random_model("one.gguf", 5, &json!({})).await;
    let (one, _) = opened.ask(None, &model, "A secret").await;
    opened.until_saved(1).await;
    let (two, _) = opened.ask(None, &model, "Hello").await;
    opened.until_saved(2).await;
    engine.delete_conversation(&one).unwrap();
    opened.until_saved(1).await;
    // What the process still knew of it is not saved when it ends.
    engine.shutdown().await;
    assert_eq!(engine.saved_states().unwrap().conversations, 1);
    engine.delete_conversation(&two).unwrap();
    assert_eq!(engine.saved_states().unwrap().bytes, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conversation_that_came_back_is_saved_again() {
    let opened = Opened::fresh();
    let engine = &opened.engine;
    let model = opened.random_model("one.gguf", 5, &json!({})).await;
    let (one, _) = opened.ask(None, &model, "No secret").await;
    engine.delete_conversation(&one).unwrap();
    engine.restore_conversation(&one).unwrap();
    opened.ask(Some(&one), &model, "As I said").await;
    engine.shutdown().await;
    assert_eq!(engine.saved_states().unwrap().conversations, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_model_that_was_let_go_in_a_turn_saves_nothing_that_was_deleted_meanwhile() {
    let opened = Opened::fresh();
    let engine = &opened.engine;
    let endless =
        json!({"grammar": "root ::= \"a\" root", "max_tokens": 1_000_000, "context_length": 65_536});
    let (model, other) = (
        opened.random_model("one.gguf", 5, &endless).await,
        opened.random_model("other.gguf", 6, &json!({})).await,
    );
    // It is known to the model alone: the next turn begins before the model rests.
    let secret = opened.begin(None, &model, "A secret").await;
    let events = until_it_writes(engine, &secret).await;
    stop(engine, &secret, events).await;
    let long = opened.begin(None, &model, "Tell me a long story").await;
    let events = until_it_writes(engine, &long).await;
    opened.ask(None, &other, "Hello").await;
    engine.delete_conversation(&secret.conversation).unwrap();
    let running = engine.conversations().unwrap().into_iter().filter(|one| one.running);
    let running: Vec<_> = running.map(|one| one.id).collect();
    assert_eq!(running, std::slice::from_ref(&long.conversation));

    stop(engine, &long, events).await;
    engine.shutdown().await;
    assert_eq!(engine.saved_states().unwrap().conversations, 2, "the long one, and that of the other model");
}

async fn until_it_writes(engine: &Engine, receipt: &SendReceipt) -> Events {
    let mut events = engine.attach_turn(&receipt.turn, -1).unwrap();
    let writes = async {
        while let Some(event) = events.next().await {
            if matches!(event.kind, EventKind::TextDelta { .. }) {
                return;
            }
        }
        panic!("the turn ended");
    };
    tokio::time::timeout(PATIENCE, writes).await.expect("it writes");
    events
}

async fn stop(engine: &Engine, receipt: &SendReceipt, mut events: Events) {
    engine.cancel_turn(&receipt.turn).unwrap();
    while events.next().await.is_some() {}
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_state_of_a_conversation_that_was_deleted_goes_with_the_next_start() {
    let opened = Opened::fresh();
    let model = opened.random_model("one.gguf", 5, &json!({})).await;
    let (one, _) = opened.ask(None, &model, "A secret").await;
    opened.engine.shutdown().await;
    let folder = opened.engine.home().states();
    let saved: Vec<_> = fs::read_dir(&folder).unwrap().flatten().map(|entry| entry.path()).collect();
    let kept: Vec<_> = saved.iter().map(|path| (path.clone(), fs::read(path).unwrap())).collect();
    opened.engine.delete_conversation(&one).unwrap();
    assert_eq!(states(&folder), 0);
    // As a worker leaves it whose application was killed before it could say what was deleted.
    kept.iter().for_each(|(path, bytes)| fs::write(path, bytes).unwrap());
    assert!(states(&folder) > 0);
    let engine = opened.again();
    let gone = async {
        while states(&folder) > 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, gone).await.expect("it goes");
    engine.shutdown().await;
}

impl Opened {
    /// The same home in another engine, as after a restart.
    fn again(&self) -> Engine {
        let executable = Some(env!("CARGO_BIN_EXE_lectern").into());
        let home = Home::open(Some(&self.folder.path().join("home"))).unwrap();
        Engine::open(home, EngineOptions { executable, ..EngineOptions::default() }).unwrap()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_model_removed_for_good_takes_its_states_along() {
    let opened = Opened::fresh();
    let one = opened.random_model("one.gguf", 5, &json!({})).await;
    let own = opened.random_model("home/models/mine.gguf", 6, &json!({})).await;
    let (conversation, _) = opened.ask(None, &one, "Hello").await;
    opened.ask(Some(&conversation), &own, "And now?").await;
    let removed = opened.engine.remove_model(&own).await.unwrap();
    opened.engine.shutdown().await;
    let folder = opened.engine.home().states();
    let both = states(&folder);
    assert_eq!(both, 2, "one for each model");

    // Two days later, as far as what was removed is concerned.
    let trash = opened.engine.home().models().join(".trash").join(&removed.token);
    let mut notes = fs::read_dir(&trash).unwrap().flatten().map(|entry| entry.path());
    let note = notes.find(|path| path.extension().is_some_and(|end| end == "json")).unwrap();
    let mut told: Value = serde_json::from_slice(&fs::read(&note).unwrap()).unwrap();
    told["at"] = Value::from("2020-01-01T00:00:00Z");
    fs::write(&note, told.to_string()).unwrap();
    let engine = opened.again();
    let gone = async {
        while trash.exists() || states(&folder) == both {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, gone).await.expect("it goes with its model");
    assert_eq!(states(&folder), 1, "that of the other model stays");
    engine.shutdown().await;
}
