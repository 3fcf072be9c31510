//! A long conversation with tools: how much of each prompt comes from the cache, policy by policy.

use std::time::Duration;

use lectern_core::{
    AnswerForm, ChatModel, ChatRequest, Message, PromptPart, Sampling, ToolChoice, ToolPlacement, UserMessage,
};
use lectern_local::{CacheOptions, LocalModel, LocalOptions};
use lectern_test_gguf::Recipe;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::support::{Fixture, Reply, ask, random_model_with, request, result_of, tool, worker};

const TURNS: usize = 30;

/// How the tools come into the prompt.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Policy {
    /// Always, before the history.
    Always,
    /// In the last question.
    LastUser,
    /// Before the history, but only until the first result is there.
    WhileDeciding,
    /// Never.
    Off,
}

/// One step of the conversation.
struct Step {
    turn: usize,
    first_of_turn: bool,
    reply: Reply,
}

impl Step {
    fn share(&self) -> f64 {
        self.reply.reuse()
    }
}

fn tools() -> Vec<lectern_core::ToolSpec> {
    let schema = json!({
        "type": "object",
        "properties": {
            "kind": { "enum": ["note", "folder", "link", "tag"], "description": "What is looked for." },
            "deep": { "type": "boolean", "description": "Whether folders within folders are looked into." },
        },
        "required": ["kind", "deep"],
    });
    let one = |name: &str| {
        let mut tool = tool(name, schema.clone());
        tool.description = format!("{} It gives the paths and the first lines. ", tool.description).repeat(4);
        tool
    };
    ["notes__list", "notes__find", "notes__tags", "notes__recent"].map(one).into()
}

fn with_policy(mut ask_for: ChatRequest, policy: Policy, has_result: bool) -> ChatRequest {
    match policy {
        Policy::Always => {}
        Policy::LastUser => ask_for.tool_placement = ToolPlacement::LastUser,
        Policy::WhileDeciding if has_result => ask_for.tools.clear(),
        Policy::WhileDeciding => {}
        Policy::Off => ask_for.tools.clear(),
    }
    ask_for
}

/// Thirty turns: a question, a call, a result, an answer. `between` happens before each turn.
async fn converse(model: &LocalModel, policy: Policy, restart_at: Option<usize>) -> Vec<Step> {
    let mut ask_for = ChatRequest {
        system: Some(
            "You look after the notes of one person, and answer with what stands in them. ".repeat(12),
        ),
        tools: tools(),
        sampling: Sampling {
            seed: Some(11),
            temperature: Some(0.0),
            max_tokens: Some(90),
            ..Sampling::default()
        },
        ..request("")
    };
    ask_for.messages.clear();
    let mut steps = Vec::new();
    for turn in 0..TURNS {
        if restart_at == Some(turn) {
            model.unload().await;
        }
        ask_for.messages.push(Message::User(UserMessage::text(format!("Question number {turn}?"))));
        let mut forced = with_policy(ask_for.clone(), policy, false);
        if !forced.tools.is_empty() {
            forced.tool_choice = ToolChoice::Required;
        }
        let call = ask(model, forced).await;
        assert_eq!(call.error, None, "{policy:?}, turn {turn}");
        let calls = call.tool_calls();
        ask_for.messages.push(Message::Assistant(call.message()));
        steps.push(Step { turn, first_of_turn: true, reply: call });
        let Some(first) = calls.first() else { continue };
        if policy == Policy::WhileDeciding {
            // As the turn does while the tool runs, and then asks.
            let mut likely = with_policy(ask_for.clone(), policy, true);
            likely.messages.push(result_of(first, ""));
            get_ready(model, likely).await;
        }
        ask_for.messages.push(result_of(first, &format!("{turn}.md: a line about it")));
        let mut answer = with_policy(ask_for.clone(), policy, true);
        if policy == Policy::WhileDeciding {
            let mut question = answer.clone();
            question.messages.push(Message::User(UserMessage::text("Do you need another tool? yes or no")));
            question.answer = AnswerForm::Grammar("root ::= \"no\"".to_owned());
            let gate = ask(model, question).await;
            assert_eq!((gate.error, gate.text.as_str()), (None, "no"), "turn {turn}");
        }
        answer.tool_choice = ToolChoice::None;
        answer.sampling.max_tokens = Some(12);
        let answer = ask(model, answer).await;
        assert_eq!(answer.error, None, "{policy:?}, turn {turn}");
        ask_for.messages.push(Message::Assistant(answer.message()));
        steps.push(Step { turn, first_of_turn: false, reply: answer });
        if policy == Policy::WhileDeciding {
            let mut likely = with_policy(ask_for.clone(), policy, false);
            likely.messages.push(Message::User(UserMessage::text("")));
            let ready = get_ready(model, likely).await;
            if restart_at == Some(turn + 1) {
                ready.await.unwrap();
            }
        }
    }
    steps
}

/// Lets the model read while the tool runs, or the user reads.
async fn get_ready(model: &LocalModel, likely: ChatRequest) -> tokio::task::JoinHandle<()> {
    let reading = tokio::spawn(model.prepare(likely, CancellationToken::new()));
    tokio::task::yield_now().await;
    reading
}

async fn fixture(folder: &std::path::Path) -> Fixture {
    let cache = CacheOptions {
        folder: Some(folder.to_owned()),
        rest: Duration::from_millis(50),
        ..CacheOptions::default()
    };
    let options = LocalOptions { context: Some(32_768), cache, ..LocalOptions::default() };
    random_model_with(Recipe { context: 32_768, ..Recipe::default() }, options, worker()).await
}

fn line(name: &str, steps: &[Step]) -> String {
    let later = &steps[1..];
    let worst = later.iter().map(Step::share).fold(1.0, f64::min);
    let mean = later.iter().map(Step::share).sum::<f64>() / later.len() as f64;
    let good = later.iter().filter(|step| step.share() >= 0.95).count();
    let last = steps.last().map_or(0, |step| step.reply.usage.prompt_tokens);
    format!("| {name} | {} | {last} | {worst:.3} | {mean:.3} | {good} of {} |", steps.len(), later.len())
}

#[tokio::test(flavor = "multi_thread")]
async fn thirty_turns_come_from_the_cache() {
    let folder = tempfile::tempdir().unwrap();
    println!("FIGURE | tools | steps | tokens at the end | worst reuse | mean | steps with at least 0.95 |");
    println!("FIGURE |---|---|---|---|---|---|");
    for policy in [Policy::Always, Policy::LastUser, Policy::WhileDeciding, Policy::Off] {
        let fixture = fixture(&folder.path().join("kv")).await;
        let steps = converse(&fixture.model, policy, None).await;
        println!("FIGURE {}", line(&format!("{policy:?}"), &steps));
        match policy {
            // Nothing but what is new.
            Policy::Always | Policy::Off => {
                for step in &steps[1..] {
                    let at = format!("{policy:?}, turn {}: {:?}", step.turn, step.reply.usage);
                    assert!(step.share() >= 0.95, "{at}");
                    assert_eq!(step.reply.usage.changed_at, None, "{at}");
                }
            }
            // Within a turn nothing but what is new; a turn begins with the question of the last one.
            Policy::LastUser => {
                for step in steps.iter().filter(|step| !step.first_of_turn && step.turn > 0) {
                    assert!(step.share() >= 0.95, "turn {}: {:?}", step.turn, step.reply.usage);
                }
            }
            Policy::WhileDeciding => {
                // Both ways to begin are kept side by side, and what is new in one is read into the other meanwhile.
                for step in &steps[1..] {
                    assert!(step.share() >= 0.95, "turn {}: {:?}", step.turn, step.reply.usage);
                }
            }
        }
    }
    for policy in [Policy::Always, Policy::WhileDeciding, Policy::Off] {
        let fixture = fixture(&folder.path().join(format!("restart-{policy:?}"))).await;
        let steps = converse(&fixture.model, policy, Some(TURNS - 2)).await;
        println!("FIGURE {}", line(&format!("{policy:?}, restart before turn 29"), &steps));
        for step in &steps[1..] {
            assert!(step.share() >= 0.95, "{policy:?}, turn {}: {:?}", step.turn, step.reply.usage);
        }
    }
}

#[tokio::test]
async fn what_broke_the_prefix_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let fixture = fixture(folder.path()).await;
    let model = &fixture.model;
    let mut ask_for = ChatRequest {
        system: Some("You look after notes. ".repeat(5)),
        tools: tools(),
        tail: Some("It is nine o'clock.".to_owned()),
        ..request("First question")
    };
    let part = |reply: Reply| reply.usage.changed_at;
    let reply = ask(model, ask_for.clone()).await;
    ask_for.messages.push(Message::Assistant(reply.message()));
    ask_for.messages.push(Message::User(UserMessage::text("Second question")));
    assert_eq!(part(reply), None);
    // The last question has become history, without what stood behind it.
    assert_eq!(part(ask(model, ask_for.clone()).await), Some(PromptPart::Tail));
    ask_for.tail = Some("It is ten o'clock.".to_owned());
    assert_eq!(part(ask(model, ask_for.clone()).await), Some(PromptPart::Tail));
    ask_for.tools.truncate(2);
    assert_eq!(part(ask(model, ask_for.clone()).await), Some(PromptPart::Tools));
    ask_for.system = Some("You are someone else.".to_owned());
    assert_eq!(part(ask(model, ask_for.clone()).await), Some(PromptPart::System));
    ask_for.messages[0] = Message::User(UserMessage::text("Another first question"));
    assert_eq!(part(ask(model, ask_for.clone()).await), Some(PromptPart::Message { number: 0 }));
    assert_eq!(part(ask(model, ask_for).await), None);
}
