use lectern_core::{ChatRequest, ConversationId, Message, Sampling, ToolChoice, UserMessage};
use lectern_test_gguf::Recipe;
use serde_json::json;

use crate::support::{Fixture, ask, random_model, request, result_of, tool};

/// A request in which the model has to call a tool.
fn forced(seed: u32) -> ChatRequest {
    let schema = json!({
        "type": "object",
        "properties": { "kind": { "enum": ["note", "folder"] }, "deep": { "type": "boolean" } },
        "required": ["kind", "deep"],
    });
    ChatRequest {
        system: Some("You look after notes. ".repeat(30)),
        tools: vec![tool("notes__list", schema)],
        tool_choice: ToolChoice::Required,
        sampling: Sampling {
            seed: Some(seed),
            temperature: Some(1.0),
            max_tokens: Some(200),
            ..Sampling::default()
        },
        ..request("List them")
    }
}

async fn fixture() -> Fixture {
    random_model(Recipe { context: 8192, ..Recipe::default() }).await
}

#[tokio::test]
async fn the_second_step_evaluates_only_what_is_new() {
    let fixture = fixture().await;
    let mut ask_for = forced(1);
    let mut before = 0;
    for step in 0..4 {
        let reply = ask(&fixture.model, ask_for.clone()).await;
        assert_eq!(reply.error, None);
        let calls = reply.tool_calls();
        assert_eq!(calls.len(), 1, "{:?}", reply.text);
        if step > 0 {
            assert!(reply.reuse() >= 0.95, "step {step} reused {:?}", reply.usage);
            // Everything up to the end of the last reply comes from the cache, but for its unevaluated end token.
            assert!(
                reply.usage.reused_tokens + 1 >= before,
                "step {step}: {:?}, {before} before",
                reply.usage
            );
        }
        before = reply.usage.prompt_tokens + reply.usage.generated_tokens;
        ask_for.messages.push(Message::Assistant(reply.message()));
        ask_for.messages.push(result_of(&calls[0], "a.md"));
    }
    ask_for.messages.push(Message::User(UserMessage::text("Thanks")));
    let reply = ask(&fixture.model, ask_for).await;
    assert!(reply.usage.reused_tokens + 1 >= before, "the next turn: {:?}, {before} before", reply.usage);
}

#[tokio::test]
async fn a_reply_without_its_tokens_still_gives_the_same_prompt() {
    // Without the stored data the reply is rendered again; the answer may not depend on what the cache holds.
    let fixture = fixture().await;
    let mut ask_for = forced(2);
    let reply = ask(&fixture.model, ask_for.clone()).await;
    let mut message = reply.message();
    message.provider_data = None;
    ask_for.messages.extend([Message::Assistant(message), result_of(&reply.tool_calls()[0], "b.md")]);
    let warm = ask(&fixture.model, ask_for.clone()).await;
    fixture.model.unload().await;
    let cold = ask(&fixture.model, ask_for).await;
    assert_eq!(cold.usage.reused_tokens, 0);
    assert!(warm.usage.reused_tokens > 0);
    assert_eq!(warm.usage.prompt_tokens, cold.usage.prompt_tokens);
    let calls = |reply: &crate::support::Reply| {
        reply.calls.iter().map(|(_, name, arguments)| (name.clone(), arguments.clone())).collect::<Vec<_>>()
    };
    assert_eq!(calls(&warm), calls(&cold));
}

#[tokio::test]
async fn an_edited_history_is_evaluated_from_the_edit_on() {
    let fixture = fixture().await;
    let mut first = request(&"The same beginning. ".repeat(20));
    first.messages.push(Message::User(UserMessage::text("first")));
    let whole = ask(&fixture.model, first.clone()).await;
    first.messages[1] = Message::User(UserMessage::text("second"));
    let edited = ask(&fixture.model, first).await;
    assert!(edited.usage.reused_tokens > 300, "{:?}", edited.usage);
    assert!(edited.usage.reused_tokens < whole.usage.prompt_tokens);
}

#[tokio::test(flavor = "multi_thread")]
async fn conversations_side_by_side_do_not_mix() {
    let fixture = fixture().await;
    let in_conversation = |name: &str, text: &str| ChatRequest {
        conversation: ConversationId::from(name),
        system: Some("Shared instructions. ".repeat(10)),
        ..request(text)
    };
    let (a, b) = (in_conversation("a", "one question"), in_conversation("b", "quite another question"));
    let (first_a, first_b) = tokio::join!(ask(&fixture.model, a.clone()), ask(&fixture.model, b.clone()));
    assert_eq!((&first_a.error, &first_b.error), (&None, &None));
    let (mut next_a, mut next_b) = (a.clone(), b.clone());
    for (next, reply) in [(&mut next_a, &first_a), (&mut next_b, &first_b)] {
        next.messages.push(Message::Assistant(reply.message()));
        next.messages.push(Message::User(UserMessage::text("go on")));
    }
    let (second_a, second_b) = tokio::join!(ask(&fixture.model, next_a), ask(&fixture.model, next_b));
    for (first, second) in [(&first_a, &second_a), (&first_b, &second_b)] {
        let before = first.usage.prompt_tokens + first.usage.generated_tokens;
        assert!(second.usage.reused_tokens + 1 >= before, "{:?} after {:?}", second.usage, first.usage);
    }
    // A new conversation begins with what it shares with an old one.
    let third = ask(&fixture.model, in_conversation("c", "a third")).await;
    assert!(third.usage.reused_tokens > 200, "{:?}", third.usage);
    // And says what it would have said alone.
    fixture.model.unload().await;
    let alone = ask(&fixture.model, in_conversation("c", "a third")).await;
    assert_eq!((alone.text, alone.usage.reused_tokens), (third.text, 0));
}

#[tokio::test]
async fn long_conversations_take_turns_and_lose_nothing() {
    let fixture = fixture().await;
    let about = ["one thing ", "two things ", "three of them "];
    let mut asked: Vec<ChatRequest> = about
        .map(|about| ChatRequest {
            conversation: ConversationId::from(about),
            system: Some("Shared instructions. ".repeat(10)),
            sampling: Sampling { temperature: Some(0.0), max_tokens: Some(24), ..Sampling::default() },
            ..request(&about.repeat(100))
        })
        .to_vec();
    for round in 0..3 {
        for request in &mut asked {
            let reply = ask(&fixture.model, request.clone()).await;
            assert_eq!(reply.error, None);
            assert!(reply.usage.prompt_tokens > 700, "long enough to be in the way: {:?}", reply.usage);
            assert!(round == 0 || reply.reuse() >= 0.95, "round {round}: {:?}", reply.usage);
            request.messages.push(Message::Assistant(reply.message()));
            request.messages.push(Message::User(UserMessage::text("And?")));
        }
    }
    // What was put away and brought back goes on as if it had been alone.
    let alone = self::fixture().await;
    for beside in asked {
        let mut last = String::new();
        for end in (0..beside.messages.len()).filter(|at| at % 2 == 0) {
            let mut request = beside.clone();
            request.messages.truncate(end + 1);
            last = ask(&alone.model, request).await.text;
        }
        assert_eq!(ask(&fixture.model, beside).await.text, last);
        alone.model.unload().await;
    }
}

#[tokio::test]
async fn a_full_cache_gives_up_the_oldest_conversation() {
    let options = lectern_local::LocalOptions { context: Some(1024), ..Default::default() };
    let fixture =
        crate::support::random_model_with(Recipe::default(), options, crate::support::worker()).await;
    for round in 0..6 {
        let ask_for = ChatRequest {
            conversation: ConversationId(format!("conversation {round}")),
            ..request(&format!("{round} {}", "words ".repeat(100)))
        };
        let reply = ask(&fixture.model, ask_for).await;
        assert_eq!(reply.error, None, "round {round}");
    }
}

#[tokio::test]
async fn a_model_at_rest_gives_its_memory_back_and_comes_again() {
    let speed = lectern_local::SpeedOptions {
        idle_unload: Some(std::time::Duration::from_millis(300)),
        ..lectern_local::SpeedOptions::default()
    };
    let options = lectern_local::LocalOptions { speed, ..Default::default() };
    let fixture =
        crate::support::random_model_with(Recipe::default(), options, crate::support::worker()).await;
    let first = ask(&fixture.model, request("Hello")).await;
    while fixture.model.worker_id().await.is_some() {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let again = ask(&fixture.model, request("Hello")).await;
    assert_eq!((again.error, again.text), (None, first.text));
}
