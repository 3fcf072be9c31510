//! Guessing tokens changes when they are evaluated and nothing else.

use lectern_core::{ChatRequest, Message, Sampling, ToolChoice, UserMessage};
use lectern_local::{LocalOptions, Lookup, SpeedOptions};
use lectern_test_gguf::{QuotingModel, Recipe, Size};
use serde_json::json;

use crate::support::{Fixture, Reply, ask, model_with, random_model_with, request, tool, worker};

async fn fixture(seed: u64, lookup: Lookup) -> Fixture {
    let speed = SpeedOptions { lookup, ..SpeedOptions::default() };
    let options = LocalOptions { speed, ..LocalOptions::default() };
    random_model_with(Recipe { seed, context: 4096, ..Recipe::default() }, options, worker()).await
}

/// What the user sees of a reply.
pub fn shown(reply: &Reply) -> (String, Vec<(String, String)>, Option<lectern_core::FinishReason>, u32) {
    assert_eq!(reply.error, None);
    let calls = reply.calls.iter().map(|(_, name, arguments)| (name.0.clone(), arguments.clone()));
    (reply.text.clone(), calls.collect(), reply.finish, reply.usage.generated_tokens)
}

pub fn in_every_way(seed: u32) -> Vec<ChatRequest> {
    let repeating = "the cat sat on the mat and the cat sat on the hat. ".repeat(6);
    let with = |sampling: Sampling| ChatRequest {
        sampling: Sampling { seed: Some(seed), max_tokens: Some(120), ..sampling },
        ..request(&repeating)
    };
    let greedy = Sampling { temperature: Some(0.0), ..Sampling::default() };
    let schema = json!({
        "type": "object",
        "properties": { "kind": { "enum": ["note", "folder"] }, "tags": {
            "type": "array", "minItems": 6, "maxItems": 9, "items": { "enum": ["red", "green"] },
        } },
        "required": ["kind", "tags"],
    });
    vec![
        with(greedy.clone()),
        with(Sampling { temperature: Some(0.3), ..Sampling::default() }),
        with(Sampling { temperature: Some(1.0), top_k: Some(3), ..Sampling::default() }),
        with(Sampling { repeat_penalty: Some(1.3), presence_penalty: Some(0.5), ..greedy.clone() }),
        with(Sampling { stop: vec!["e".to_owned(), "\u{fffd}".to_owned()], ..greedy.clone() }),
        ChatRequest {
            tools: vec![tool("notes__list", schema)],
            tool_choice: ToolChoice::Required,
            ..with(Sampling { temperature: Some(0.8), ..Sampling::default() })
        },
    ]
}

#[tokio::test]
async fn the_text_is_the_same_with_and_without_guesses() {
    let mut right = 0;
    for seed in 1..4 {
        let (plain, guessing) =
            (fixture(u64::from(seed), Lookup::Off).await, fixture(u64::from(seed), Lookup::On).await);
        for (which, ask_for) in in_every_way(seed).into_iter().enumerate() {
            let expected = ask(&plain.model, ask_for.clone()).await;
            let reply = ask(&guessing.model, ask_for.clone()).await;
            assert_eq!(shown(&reply), shown(&expected), "request {which} of seed {seed}");
            assert_eq!(expected.usage.guessed_tokens, Some(0));
            right += reply.usage.right_guesses.unwrap_or(0);
            // What the guesses left in the cache does no harm to what comes next.
            let mut next = ask_for;
            next.messages.push(Message::Assistant(reply.message()));
            next.messages.push(Message::User(UserMessage::text("go on")));
            let (expected, reply) = (ask(&plain.model, next.clone()).await, ask(&guessing.model, next).await);
            assert_eq!(shown(&reply), shown(&expected), "after request {which} of seed {seed}");
            assert_eq!(reply.usage.reused_tokens, expected.usage.reused_tokens);
        }
    }
    assert!(right > 100, "{right} guesses were right: too few to show anything");
}

/// A model and a draft model, in a folder of their own.
async fn with_draft(large: &[u8], draft: &[u8]) -> (Fixture, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let (path, small) = (folder.path().join("large.gguf"), folder.path().join("small.gguf"));
    std::fs::write(&path, large).unwrap();
    std::fs::write(&small, draft).unwrap();
    let speed = SpeedOptions { lookup: Lookup::Off, draft: Some(small), ..SpeedOptions::default() };
    (model_with(&path, LocalOptions { speed, ..LocalOptions::default() }).await, folder)
}

#[tokio::test]
async fn a_draft_model_changes_nothing_but_the_pace() {
    let plain = fixture(5, Lookup::Off).await;
    let (drafted, _folder) = with_draft(&Recipe::seeded(5).bytes(), &Recipe::seeded(6).bytes()).await;
    for ask_for in in_every_way(3) {
        let expected = ask(&plain.model, ask_for.clone()).await;
        assert_eq!(shown(&ask(&drafted.model, ask_for).await), shown(&expected));
    }
    // A model that is sure of each word guesses rightly for itself.
    let quoting = QuotingModel::new(Size::Small);
    let file = tempfile::NamedTempFile::new().unwrap();
    quoting.write(file.path()).unwrap();
    let bytes = std::fs::read(file.path()).unwrap();
    let (sure, _folder) = with_draft(&bytes, &bytes).await;
    let reply = ask(
        &sure.model,
        ChatRequest {
            sampling: Sampling { temperature: Some(0.0), max_tokens: Some(400), ..Sampling::default() },
            ..request("Nothing to quote.")
        },
    )
    .await;
    assert_eq!(reply.text.trim(), format!("\" {}", quoting.quoted().join(" ")));
    assert!(reply.usage.right_guesses.unwrap_or(0) > 50, "{:?}", reply.usage);
}

#[tokio::test]
async fn a_draft_model_of_another_vocabulary_is_refused() {
    let other = Recipe { more_tokens: vec!["<|more|>".to_owned()], ..Recipe::default() };
    let (fixture, _folder) = with_draft(&Recipe::seeded(5).bytes(), &other.bytes()).await;
    let error = ask(&fixture.model, request("Hello")).await.error.unwrap();
    assert!(error.message.contains("268 tokens") && error.message.contains("267"), "{}", error.message);
    let (fixture, _folder) = with_draft(&Recipe::seeded(5).bytes(), b"no model").await;
    let error = ask(&fixture.model, request("Hello")).await.error.unwrap();
    assert!(error.message.contains("small.gguf"), "{}", error.message);
}

#[tokio::test]
async fn a_quotation_is_guessed_and_other_words_are_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("quoting.gguf");
    let quoting = QuotingModel::new(Size::Small);
    quoting.write(&path).unwrap();
    let words = format!("\" {}", quoting.quoted().join(" "));
    let speed = SpeedOptions { lookup: Lookup::On, threads: Some(1), ..SpeedOptions::default() };
    let fixture = model_with(&path, LocalOptions { speed, ..LocalOptions::default() }).await;
    let asked = |text: &str| ChatRequest {
        sampling: Sampling { temperature: Some(0.0), max_tokens: Some(400), ..Sampling::default() },
        ..request(text)
    };
    let quoted = ask(&fixture.model, asked(&format!("A note says: {words} and so on."))).await;
    assert_eq!(quoted.text.trim(), words);
    let right = quoted.usage.right_guesses.unwrap_or(0);
    assert!(right * 10 > quoted.usage.generated_tokens * 7, "{:?}", quoted.usage);
    let own = ask(&fixture.model, asked("Nothing to quote.")).await;
    assert_eq!(own.text.trim(), words);
    assert_eq!(own.usage.right_guesses, Some(0), "{:?}", own.usage);
}
