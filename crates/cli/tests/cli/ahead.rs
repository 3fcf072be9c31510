//! What is read while the user types is what the question then begins with, whatever the policy of tools.

use std::fs;

use lectern_app::EngineOptions;
use lectern_app::view::SendRequest;
use lectern_core::{EventKind, ModelId, Usage};
use lectern_test_gguf::Recipe;
use serde_json::{Value, json};

use crate::engine::Opened;

/// Beyond this many tools they are chosen by relevance where nobody said otherwise.
const TOOLS: usize = 40;
/// Tokens of what stands behind a question: the end of its last word, the day, the template's own.
const BEHIND: u32 = 120;

/// An engine with a server of many tools, and a model with random weights.
async fn with_tools() -> Opened {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mcp.json");
    let count = TOOLS.to_string();
    let server = json!({"command": lectern_fixture_server::binary(), "args": ["--tools", count]});
    fs::write(&file, json!({"mcpServers": {"fx": server}}).to_string()).unwrap();
    let options = EngineOptions { mcp_config: Some(file), ..EngineOptions::default() };
    let opened = Opened::within(folder, options);
    opened.engine.servers_settled().await;
    opened
}

fn add(opened: &Opened, name: &str, recipe: Recipe) -> ModelId {
    let path = opened.folder.path().join(name);
    fs::write(&path, Recipe { context: 65_536, ..recipe }.bytes()).unwrap();
    opened.engine.add_model(&path).unwrap().id
}

async fn set(opened: &Opened, model: &ModelId, changes: Value) {
    opened.engine.set_model_generation(model, changes.as_object().unwrap()).await.unwrap();
}

/// Asks in a conversation of its own; what the first request of the turn cost: the question whether a tool is needed,
/// where that is asked, else the step.
async fn ask(opened: &Opened, model: &ModelId, text: &str) -> Usage {
    let request = SendRequest { text: text.to_owned(), model: Some(model.clone()), ..SendRequest::default() };
    let receipt = opened.engine.send(request).await.unwrap();
    let events = opened.events(&receipt, -1).await;
    let gate = events.iter().find_map(|event| match &event.kind {
        EventKind::StepStarted { exposure: Some(exposure), .. } => Some(exposure.gate.as_ref()?.usage),
        _ => None,
    });
    let step = events.iter().find_map(|event| match &event.kind {
        EventKind::StepFinished { stats, .. } => Some(stats.usage),
        _ => None,
    });
    gate.or(step).unwrap_or_else(|| panic!("{events:#?}"))
}

fn draft(seed: usize) -> String {
    (0..60).map(|at| format!("word{} of note {seed}, ", at * 7 + seed)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_begins_with_what_was_read_while_it_was_typed() {
    let opened = with_tools().await;
    let model = add(&opened, "one.gguf", Recipe::seeded(5));
    let usual = json!({"max_tokens": 4, "seed": 1, "context_length": 65_536});
    set(&opened, &model, usual.clone()).await;
    // What question and instructions take alone.
    set(&opened, &model, json!({"tools": "off"})).await;
    let alone = ask(&opened, &model, &draft(0)).await.prompt_tokens;
    let policies = [
        (Value::Null, "left to us"),
        (json!("always"), "always"),
        (json!("deciding"), "deciding"),
        (json!("last_user"), "last_user"),
        (json!("relevant"), "relevant"),
        (json!("off"), "off"),
    ];
    for (seed, (tools, name)) in policies.into_iter().enumerate() {
        for gate in [false, true] {
            // So that nothing is known of what was asked before.
            opened.engine.forget_states().await.unwrap();
            set(&opened, &model, json!({"tools": tools, "gate": gate})).await;
            let draft = draft(10 * seed + usize::from(gate));
            opened.engine.read_ahead(None, &draft, Some(model.clone())).await;
            let usage = ask(&opened, &model, &format!("{draft}and an end")).await;
            println!(
                "{name}, gate {gate}: {} of {} tokens were read, {alone} alone",
                usage.reused_tokens, usage.prompt_tokens
            );
            let question_last = matches!(name, "always" | "off") || (name == "deciding" && !gate);
            let expected = if question_last && !gate { usage.prompt_tokens } else { alone };
            assert!(
                usage.reused_tokens + BEHIND >= expected,
                "{name}, gate {gate}: {usage:?}, {alone} alone"
            );
        }
    }
    opened.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_that_is_sent_as_it_was_read_costs_one_token() {
    let opened = with_tools().await;
    let model = add(&opened, "one.gguf", Recipe::seeded(5));
    let usual = json!({"max_tokens": 4, "seed": 1, "context_length": 65_536});
    set(&opened, &model, usual).await;
    for (seed, tools) in ["always", "deciding", "last_user", "relevant", "off"].into_iter().enumerate() {
        for gate in [false, true] {
            opened.engine.forget_states().await.unwrap();
            set(&opened, &model, json!({"tools": tools, "gate": gate})).await;
            let draft = draft(10 * seed + usize::from(gate));
            let question = format!("{draft}and an end?");
            opened.engine.read_ahead(None, &draft, Some(model.clone())).await;
            opened.engine.read_ahead(None, &question, Some(model.clone())).await;
            let usage = ask(&opened, &model, &question).await;
            assert_eq!(usage.prompt_tokens - usage.reused_tokens, 1, "{tools}, gate {gate}: {usage:?}");
        }
    }
    opened.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_model_of_the_next_message_is_the_one_that_reads() {
    let opened = with_tools().await;
    let (usual, other) =
        (add(&opened, "one.gguf", Recipe::seeded(5)), add(&opened, "two.gguf", Recipe::seeded(6)));
    for model in [&usual, &other] {
        set(&opened, model, json!({"max_tokens": 4, "tools": "off"})).await;
    }
    opened.engine.select_model(&usual).unwrap();
    let draft = draft(1);
    opened.engine.read_ahead(None, &draft, Some(other.clone())).await;
    let usage = ask(&opened, &other, &format!("{draft}and an end")).await;
    assert!(usage.reused_tokens + BEHIND >= usage.prompt_tokens, "{usage:?}");
    // The usual one, whose reading ends when another is asked, reads again afterwards.
    let (given_up, draft) = (self::draft(2), self::draft(3));
    opened.engine.read_ahead(None, &given_up, Some(usual.clone())).await;
    ask(&opened, &other, "Something else").await;
    opened.engine.read_ahead(None, &draft, Some(usual.clone())).await;
    let usage = ask(&opened, &usual, &format!("{draft}and an end")).await;
    assert!(usage.reused_tokens + BEHIND >= usage.prompt_tokens, "{usage:?}");
    opened.engine.shutdown().await;
}
