//! What is read while the user types is not read again, and changes no word of what follows.

use std::path::Path;

use lectern_core::{
    AssistantMessage, ChatModel, ChatRequest, ConversationId, Message, Part, Sampling, UserMessage,
};
use lectern_local::LocalModel;
use lectern_test_gguf::{Architecture, Proportions, Recipe};
use tokio_util::sync::CancellationToken;

use crate::support::{Fixture, Reply, ask, open, random_model, request, worker};

const TYPED: &str = "I would like to know what the notes say of the journey to Lyon and of the weather there";
/// Draft after draft: half a word, a mistake, its mending, the same once more.
const DRAFTS: [&str; 6] =
    ["I", "I would like to k", "I would like to know waht", "I would like to know what t", TYPED, TYPED];
/// The end of the last word, what ends the message, and what opens the reply: a token is a byte here.
const BEHIND: u32 = 40;

/// A few likeliest tokens: what is read in other pieces is not the same to the last bit, and differs later.
fn few(text: &str) -> ChatRequest {
    let sampling = Sampling { temperature: Some(0.0), max_tokens: Some(5), ..Sampling::default() };
    ChatRequest { sampling, ..request(text) }
}

/// A conversation in which the user is to write the next message.
async fn begun(model: &LocalModel) -> ChatRequest {
    let first = ChatRequest { system: Some("You look after notes. ".repeat(20)), ..few("Hello") };
    assert_eq!(ask(model, first.clone()).await.error, None);
    let mut next = first;
    // In the place of random bytes, which are others when they are read from their text.
    let text = "Good day. I look after your notes.".to_owned();
    let parts = vec![Part::Text { text }];
    next.messages.push(Message::Assistant(AssistantMessage { parts, ..AssistantMessage::default() }));
    next
}

fn with(request: &ChatRequest, text: &str) -> ChatRequest {
    let mut request = request.clone();
    request.messages.push(Message::User(UserMessage::text(text)));
    request
}

async fn typed(model: &LocalModel, request: &ChatRequest, drafts: &[&str]) {
    for draft in drafts {
        model.prepare(with(request, draft), CancellationToken::new()).await;
    }
}

fn read_now(reply: &Reply) -> u32 {
    assert_eq!(reply.error, None);
    reply.usage.prompt_tokens - reply.usage.reused_tokens
}

async fn model_of(architecture: Architecture, folder: &Path) -> LocalModel {
    let path = folder.join("random.gguf");
    std::fs::write(&path, Proportions::tiny(architecture).random(5)).unwrap();
    open(&path, lectern_local::LocalOptions::default(), worker()).await
}

const ALL: [Architecture; 5] = [
    Architecture::Llama,
    Architecture::Mixture,
    Architecture::Hybrid,
    Architecture::Recurrent,
    Architecture::Predicting,
];

/// Sends this after the drafts, and sees that the model says what it says where nothing was read before; what was read
/// then, and the reply.
async fn sent_after_drafts(architecture: Architecture, text: &str) -> (u32, Reply) {
    let folder = tempfile::tempdir().unwrap();
    let model = model_of(architecture, folder.path()).await;
    let begun = begun(&model).await;
    typed(&model, &begun, &DRAFTS).await;
    let reply = ask(&model, with(&begun, text)).await;
    let read = read_now(&reply);
    same_without_reading_ahead(&model, &begun, text, &reply).await;
    (read, reply)
}

#[tokio::test]
async fn what_is_sent_as_it_was_typed_is_read_but_for_one_token() {
    for architecture in ALL {
        let (read, reply) = sent_after_drafts(architecture, TYPED).await;
        assert_eq!(read, 1, "{architecture:?}: {:?}", reply.usage);
    }
}

#[tokio::test]
async fn a_draft_that_goes_on_is_read_but_for_its_end() {
    for architecture in ALL {
        let (read, reply) = sent_after_drafts(architecture, &format!("{TYPED}, and so on")).await;
        assert!(read < BEHIND, "{architecture:?}: {:?}", reply.usage);
    }
}

#[tokio::test]
async fn a_draft_that_is_given_up_costs_none_of_the_history() {
    let other = "Something else";
    for architecture in ALL {
        let (read, reply) = sent_after_drafts(architecture, other).await;
        assert!(read < BEHIND + other.len() as u32, "{architecture:?}: {:?}", reply.usage);
    }
}

#[tokio::test]
async fn the_first_question_of_all_is_read_behind_its_instructions() {
    for architecture in ALL {
        let folder = tempfile::tempdir().unwrap();
        let model = model_of(architecture, folder.path()).await;
        let nothing = ChatRequest {
            conversation: ConversationId::default(),
            system: Some("You look after notes. ".repeat(20)),
            messages: Vec::new(),
            ..few("")
        };
        typed(&model, &nothing, &["", "W", "What is th"]).await;
        // It has a name now.
        let named = ChatRequest { conversation: ConversationId::from("named"), ..nothing };
        let reply = ask(&model, with(&named, "Where")).await;
        assert!(read_now(&reply) < BEHIND, "{architecture:?}: {:?}", reply.usage);
        same_without_reading_ahead(&model, &named, "Where", &reply).await;
    }
}

/// The model says the same where nothing was read before.
async fn same_without_reading_ahead(model: &LocalModel, begun: &ChatRequest, text: &str, reply: &Reply) {
    model.forget(None).await;
    let cold = ask(model, with(begun, text)).await;
    assert_eq!((cold.usage.reused_tokens, &cold.error), (0, &None));
    assert_eq!(cold.text, reply.text, "{text}");
}

async fn fixture() -> Fixture {
    random_model(Recipe { context: 8192, ..Recipe::default() }).await
}

#[tokio::test]
async fn what_is_read_ahead_is_not_read_again() {
    let fixture = fixture().await;
    let typed = "I would like to know what the notes say of the journey to Lyon and of the weather there";
    let system = Some("You look after notes. ".repeat(20));
    let first = ChatRequest { system: system.clone(), ..request("Hello") };
    let reply = ask(&fixture.model, first.clone()).await;
    let mut next = first;
    next.messages.push(Message::Assistant(reply.message()));
    // While it is typed, key after key, some of them wrong.
    for draft in ["I", "I would like to k", "I would like to know waht", typed] {
        let mut drafted = next.clone();
        drafted.messages.push(Message::User(UserMessage::text(draft)));
        fixture.model.prepare(drafted, CancellationToken::new()).await;
    }
    next.messages.push(Message::User(UserMessage::text(typed)));
    let warm = ask(&fixture.model, next.clone()).await;
    assert_eq!(warm.error, None);
    let read_now = warm.usage.prompt_tokens - warm.usage.reused_tokens;
    // The last word, what ends the message, and what opens the reply (a token is a byte here).
    assert!(read_now < 40, "{:?}", warm.usage);
    // And the answer is the one that it would have been.
    let plain = self::fixture().await;
    ask(&plain.model, ChatRequest { messages: next.messages[..1].to_vec(), ..next.clone() }).await;
    let cold = ask(&plain.model, next).await;
    assert_eq!((cold.text, cold.usage.prompt_tokens), (warm.text, warm.usage.prompt_tokens));
}

#[tokio::test]
async fn several_drafts_at_once_are_read_as_the_last_one() {
    let folder = tempfile::tempdir().unwrap();
    let model = model_of(Architecture::Llama, folder.path()).await;
    let begun = begun(&model).await;
    let long = "words that are long in coming ".repeat(60);
    let drafts: Vec<String> =
        (1..9).map(|part| long[..long.len() * part / 8].trim_end().to_owned()).collect();
    // Each comes while the one before is read, or waits for its turn.
    let read = drafts.iter().map(|draft| {
        let prepare = model.prepare(with(&begun, draft), CancellationToken::new());
        async {
            prepare.await;
        }
    });
    futures::future::join_all(read).await;
    let reply = ask(&model, with(&begun, long.trim_end())).await;
    assert_eq!(read_now(&reply), 1, "{:?}", reply.usage);
}

#[tokio::test]
async fn a_question_does_not_wait_for_what_is_read_ahead() {
    let fixture = fixture().await;
    let long = |words: usize| ChatRequest {
        conversation: ConversationId::from("long"),
        ..request(&"many words ".repeat(words))
    };
    let ahead = fixture.model.prepare(long(600), CancellationToken::new());
    let (reply, ()) = tokio::join!(ask(&fixture.model, request("Hello")), ahead);
    assert_eq!(reply.error, None);
    // A draft that is given up leaves the model as it was.
    let given_up = CancellationToken::new();
    given_up.cancel();
    fixture.model.prepare(long(600), given_up).await;
    assert_eq!(ask(&fixture.model, request("Hello")).await.text, reply.text);
}
