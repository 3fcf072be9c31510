//! What a request says about the reply: settings, the form of the answer, thinking, what stands last.

use lectern_core::{
    AnswerForm, ChatRequest, FinishReason, Message, ModelErrorCode, Sampling, ToolChoice, UserMessage,
};
use lectern_local::{CallForm, FormatOptions, LocalOptions};
use lectern_test_gguf::{CHATML, Recipe};
use serde_json::{Value, json};

use crate::support::{Fixture, Reply, ask, random_model, random_model_with, request, tool, worker};

fn hot(seed: u32) -> Sampling {
    Sampling { temperature: Some(1.5), seed: Some(seed), max_tokens: Some(200), ..Sampling::default() }
}

async fn plain() -> Fixture {
    random_model(Recipe { context: 8192, ..Recipe::default() }).await
}

async fn with_format(format: FormatOptions) -> Fixture {
    let options = LocalOptions { format, ..LocalOptions::default() };
    random_model_with(Recipe { context: 8192, ..Recipe::default() }, options, worker()).await
}

/// How often the commonest character stands in a text.
fn commonest(text: &str) -> usize {
    text.chars().map(|letter| text.matches(letter).count()).max().unwrap_or(0)
}

#[tokio::test]
async fn penalties_keep_a_reply_from_repeating_itself() {
    let fixture = plain().await;
    let with = |sampling: Sampling| ChatRequest { sampling, ..request("Hello") };
    // A model with random weights and no temperature soon repeats itself.
    let base = Sampling { temperature: Some(0.0), max_tokens: Some(150), ..Sampling::default() };
    let raw = |reply: Reply| reply.data.unwrap()["lectern_local"]["raw"].as_str().unwrap().to_owned();
    let plain = raw(ask(&fixture.model, with(base.clone())).await);
    for sampling in [
        Sampling { repeat_penalty: Some(1.8), ..base.clone() },
        Sampling { frequency_penalty: Some(2.0), ..base.clone() },
        Sampling { presence_penalty: Some(2.0), ..base.clone() },
    ] {
        let penalised = raw(ask(&fixture.model, with(sampling.clone())).await);
        assert_ne!(penalised, plain, "{sampling:?}");
        assert!(commonest(&penalised) <= commonest(&plain), "{sampling:?}");
    }
    let cut = Sampling { min_p: Some(1.0), ..hot(3) };
    let cold = Sampling { temperature: Some(0.0), ..hot(3) };
    let (cut, cold) = (ask(&fixture.model, with(cut)).await, ask(&fixture.model, with(cold)).await);
    assert_eq!(raw(cut), raw(cold), "only the likeliest token passes");
}

#[tokio::test]
async fn an_answer_can_be_held_to_one_word() {
    let fixture = plain().await;
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..12 {
        let mut ask_for = ChatRequest {
            answer: AnswerForm::Grammar(r#"root ::= "yes" | "no""#.to_owned()),
            tools: vec![tool("look", json!({ "type": "object", "properties": {} }))],
            tool_choice: ToolChoice::None,
            sampling: hot(seed),
            ..request("Is a tool needed?")
        };
        let reply = ask(&fixture.model, ask_for.clone()).await;
        assert_eq!((reply.error, reply.finish), (None, Some(FinishReason::Stop)));
        assert!(["yes", "no"].contains(&reply.text.as_str()), "{:?}", reply.text);
        seen.insert(reply.text.clone());
        ask_for.sampling.max_tokens = Some(1);
        let first = ask(&fixture.model, ask_for).await;
        assert_eq!(first.text, reply.text[..1], "a byte is a token here");
    }
    assert_eq!(seen.len(), 2);
}

#[tokio::test]
async fn an_answer_can_be_held_to_a_schema() {
    let fixture = plain().await;
    let schema = json!({
        "type": "object",
        "properties": { "name": { "enum": ["a", "b"] }, "arguments": { "type": "object", "properties": {} } },
        "required": ["name", "arguments"],
        "additionalProperties": false,
    });
    for seed in 0..5 {
        let reply = ask(
            &fixture.model,
            ChatRequest {
                answer: AnswerForm::JsonSchema(schema.clone()),
                sampling: hot(seed),
                ..request("Hello")
            },
        )
        .await;
        // It looks like a call, and is none.
        assert_eq!((reply.error, reply.calls.len()), (None, 0));
        let value: Value = serde_json::from_str(&reply.text).unwrap();
        assert!(jsonschema::is_valid(&schema, &value), "{value}");
    }
}

#[tokio::test]
async fn a_grammar_that_is_none_is_an_error() {
    let fixture = plain().await;
    for bad in [
        "root ::= (",
        "root ::= missing",
        "start ::= \"a\"",
        "root ::= root \"a\"",
        "",
        "root ::= [a-",
        "\u{0}",
    ] {
        let reply = ask(
            &fixture.model,
            ChatRequest { answer: AnswerForm::Grammar(bad.to_owned()), ..request("Hello") },
        )
        .await;
        let error = reply.error.unwrap_or_else(|| panic!("{bad:?} was taken"));
        assert_eq!(error.code, ModelErrorCode::BadRequest, "{bad:?}");
        assert!(error.message.contains("grammar"), "{bad:?}: {}", error.message);
    }
    assert_eq!(ask(&fixture.model, request("Hello")).await.error, None, "the worker goes on");
}

#[tokio::test]
async fn what_changes_stands_last() {
    let fixture = plain().await;
    let history = "A long history. ".repeat(60);
    let mut ask_for = request(&history);
    ask_for.messages.push(Message::User(UserMessage::text("And now?")));
    ask_for.tail = Some("It is 10:00.".to_owned());
    let first = ask(&fixture.model, ask_for.clone()).await;
    ask_for.tail = Some("It is 10:01.".to_owned());
    let second = ask(&fixture.model, ask_for.clone()).await;
    assert!(second.usage.reused_tokens + 40 > first.usage.prompt_tokens, "{:?}", second.usage);
    ask_for.tail = None;
    let without = ask(&fixture.model, ask_for).await;
    assert_eq!(without.usage.prompt_tokens + "\n\nIt is 10:00.".len() as u32, first.usage.prompt_tokens);
}

#[tokio::test]
async fn a_template_and_stop_texts_can_be_overridden() {
    let usual = plain().await;
    let short = with_format(FormatOptions {
        template: Some(
            "{%- for message in messages %}{{ message.content }}{%- endfor %}{%- if add_generation_prompt %}>{%- endif %}"
                .to_owned(),
        ),
        ..FormatOptions::default()
    })
    .await;
    let prompt = |reply: &Reply| reply.usage.prompt_tokens;
    let (long, short) =
        (ask(&usual.model, request("Hello")).await, ask(&short.model, request("Hello")).await);
    assert!(prompt(&short) < 10 && prompt(&long) > 20, "{:?} {:?}", short.usage, long.usage);

    let mut ask_for = ChatRequest { sampling: hot(3), ..request("Hello") };
    ask_for.sampling.max_tokens = Some(40);
    let raw = |reply: Reply| reply.data.unwrap()["lectern_local"]["raw"].as_str().unwrap().to_owned();
    let whole = raw(ask(&usual.model, ask_for.clone()).await);
    let stop: String = whole.chars().skip(5).take(2).collect();
    let stopping = with_format(FormatOptions { stop: vec![stop.clone()], ..FormatOptions::default() }).await;
    let cut = raw(ask(&stopping.model, ask_for).await);
    assert_eq!(cut, whole[..whole.find(&stop).unwrap()]);
}

#[tokio::test]
async fn a_model_without_tools_is_told_the_form_of_its_calls() {
    let options = |form| LocalOptions {
        format: FormatOptions {
            call_form: form,
            template: Some(CHATML.to_owned()),
            ..FormatOptions::default()
        },
        ..LocalOptions::default()
    };
    for form in [None, Some(CallForm::Json), Some(CallForm::Pythonic)] {
        let recipe = Recipe { context: 8192, ..Recipe::default() };
        let fixture = random_model_with(recipe, options(form), worker()).await;
        let schema =
            json!({ "type": "object", "properties": { "n": { "enum": [1, 2] } }, "required": ["n"] });
        let reply = ask(
            &fixture.model,
            ChatRequest {
                tools: vec![tool("count", schema)],
                tool_choice: ToolChoice::Required,
                sampling: hot(1),
                ..request("Count")
            },
        )
        .await;
        assert_eq!((reply.error, reply.finish), (None, Some(FinishReason::ToolCalls)), "{form:?}");
        assert_eq!(reply.calls[0].1.as_str(), "count");
    }
}
