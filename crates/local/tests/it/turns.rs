//! A long conversation with tools, in the loop that the application runs: how much of each prompt comes from the cache,
//! policy by policy.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use lectern_core::testing::{Behaviour, ScriptedTools};
use lectern_core::turn::likely_request;
use lectern_core::{
    Actor, AnswerForm, ChatModel, ChatRequest, Delta, EarlierTurns, EventKind, ExposurePolicy, Message,
    ModelError, ModelInfo, PermissionBook, Policy, PromptPart, Sampling, Store, ThinkingOptions,
    ToolAnnotations, ToolChoice, ToolExposure, ToolMode, ToolSpec, TurnInput, TurnOutcome, Turns, Usage,
    UserMessage,
};
use lectern_local::{CacheOptions, LocalOptions};
use lectern_test_gguf::Recipe;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::support::{Fixture, Reply, ask, random_model_with, request, tool, worker};

const TURNS: usize = 30;

/// Turns whose questions are about something else.
const AWAY: std::ops::Range<usize> = 10..20;

/// A model of random weights calls nothing of its own accord, so it is led: a question is answered with a call, a result
/// with words, and another call is never needed. Everything else is the loop's.
struct Led {
    fixture: Fixture,
    reading: Arc<AtomicUsize>,
}

impl ChatModel for Led {
    fn info(&self) -> &ModelInfo {
        self.fixture.model.info()
    }

    fn stream(
        &self,
        mut request: ChatRequest,
        cancel: CancellationToken,
    ) -> BoxStream<'static, Result<Delta, ModelError>> {
        let asked = matches!(request.messages.last(), Some(Message::User(_)));
        match &request.answer {
            AnswerForm::Grammar(_) => request.answer = AnswerForm::Grammar("root ::= \"no\"".to_owned()),
            AnswerForm::Free | AnswerForm::JsonSchema(_) if asked && !request.tools.is_empty() => {
                request.tool_choice = ToolChoice::Required;
            }
            AnswerForm::Free | AnswerForm::JsonSchema(_) => {
                request.tool_choice = ToolChoice::None;
                request.sampling.max_tokens = Some(12);
            }
        }
        self.fixture.model.stream(request, cancel)
    }

    fn prepare(&self, request: ChatRequest, cancel: CancellationToken) -> BoxFuture<'static, ()> {
        let (read, reading) = (self.fixture.model.prepare(request, cancel), Arc::clone(&self.reading));
        reading.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move {
            read.await;
            reading.fetch_sub(1, Ordering::SeqCst);
        })
    }

    fn count(&self, request: ChatRequest) -> BoxFuture<'static, Result<Option<u32>, ModelError>> {
        self.fixture.model.count(request)
    }
}

impl Led {
    /// The user reads, and what is read ahead comes to its end.
    async fn at_rest(&self) {
        while self.reading.load(Ordering::SeqCst) > 0 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}

/// One step of the conversation.
struct Step {
    turn: usize,
    usage: Usage,
}

impl Step {
    fn share(&self) -> f64 {
        f64::from(self.usage.reused_tokens) / f64::from(self.usage.prompt_tokens.max(1))
    }
}

fn reading_tool(area: &str, what: &str) -> ToolSpec {
    let schema = json!({
        "type": "object",
        "properties": {
            "kind": { "enum": ["one", "many", "newest", "tagged"], "description": "What is looked for." },
            "deep": { "type": "boolean", "description": "Whether folders within folders are looked into." },
        },
        "required": ["kind", "deep"],
    });
    let mut tool = tool(&format!("{area}__{what}"), schema);
    tool.description = format!("The {what} of {area}. It gives the paths and the first lines. ").repeat(4);
    tool.annotations = ToolAnnotations { read_only: Some(true), ..ToolAnnotations::default() };
    tool.trusted = true;
    tool
}

/// Four tools for each of these.
fn tools(areas: &[&str]) -> Vec<ToolSpec> {
    let of = |area: &&str| ["list", "find", "tags", "recent"].map(|what| reading_tool(area, what));
    areas.iter().flat_map(of).collect()
}

struct Conversation {
    model: Arc<Led>,
    store: Store,
    turns: Turns,
    tools: Arc<ScriptedTools>,
    policy: ToolExposure,
}

impl Conversation {
    fn new(fixture: Fixture, policy: ToolExposure) -> Self {
        let areas: &[&str] = match policy {
            ToolExposure::Relevant => &["notes", "photos", "invoices"],
            ToolExposure::Always | ToolExposure::Deciding | ToolExposure::LastUser | ToolExposure::Off => {
                &["notes"]
            }
        };
        let answers = Behaviour::Answers("journeys/1.md: a line about it");
        let tools = tools(areas).into_iter();
        let tools = tools.fold(ScriptedTools::new(), |all, one| all.with(one, answers.clone()));
        Self {
            model: Arc::new(Led { fixture, reading: Arc::default() }),
            store: Store::in_memory().unwrap(),
            turns: Turns::default(),
            tools: Arc::new(tools),
            policy,
        }
    }

    fn input(&self, conversation: &lectern_core::ConversationId, text: &str) -> TurnInput {
        TurnInput {
            conversation: conversation.clone(),
            message: UserMessage::text(text),
            model: self.model.clone(),
            tools: self.tools.clone(),
            who: Actor::Cli,
            permissions: Arc::new(PermissionBook::new(Policy::default())),
            store: self.store.clone(),
            system: Some(
                "You look after what one person keeps, and answer with what stands there. ".repeat(12),
            ),
            sampling: Sampling {
                seed: Some(11),
                temperature: Some(0.0),
                max_tokens: Some(90),
                ..Sampling::default()
            },
            thinking: ThinkingOptions::default(),
            answer: AnswerForm::Free,
            earlier_turns: EarlierTurns::Sent,
            largest_context: None,
            tool_mode: ToolMode::Native,
            exposure: ExposurePolicy { tools: self.policy, relevant: 4, ..ExposurePolicy::default() },
            first_choice: ToolChoice::Auto,
            others: serde_json::Map::new(),
            max_steps: 6,
            cancel: CancellationToken::new(),
        }
    }

    /// Thirty turns: a question, a call, a result, an answer.
    async fn go_on(&self, way: Way) -> Vec<Step> {
        let conversation = self.store.create_conversation().unwrap();
        let mut steps = Vec::new();
        for turn in 0..TURNS {
            if way == Way::Restarted && turn == TURNS - 2 {
                self.model.fixture.model.unload().await;
            }
            let area = if AWAY.contains(&turn) { "photos" } else { "notes" };
            let input = self.input(&conversation, &format!("{turn}: which {area}?"));
            if way == Way::Typed {
                let draft = likely_request(&input).unwrap();
                self.model.prepare(draft, CancellationToken::new()).await;
            }
            let handle = self.turns.start(input).unwrap();
            let outcome = handle.finished().await;
            let events = handle.events().ready();
            assert_eq!(outcome, TurnOutcome::Completed, "{:?}, turn {turn}: {events:#?}", self.policy);
            for event in events {
                if let EventKind::StepFinished { stats, .. } = event.kind {
                    steps.push(Step { turn, usage: stats.usage });
                }
            }
            self.model.at_rest().await;
        }
        steps
    }
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
    let last = steps.last().map_or(0, |step| step.usage.prompt_tokens);
    format!("| {name} | {} | {last} | {worst:.3} | {mean:.3} | {good} of {} |", steps.len(), later.len())
}

const POLICIES: [ToolExposure; 5] = [
    ToolExposure::Always,
    ToolExposure::Deciding,
    ToolExposure::LastUser,
    ToolExposure::Relevant,
    ToolExposure::Off,
];

/// How the conversation is led.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Each question is pasted and sent at once.
    Pasted,
    /// The same, and the program is started anew before the last but one.
    Restarted,
    /// What is typed is read before it is sent, as the window has it.
    Typed,
}

#[tokio::test(flavor = "multi_thread")]
async fn thirty_turns_come_from_the_cache() {
    let folder = tempfile::tempdir().unwrap();
    println!("FIGURE | tools | steps | tokens at the end | worst reuse | mean | steps with at least 0.95 |");
    println!("FIGURE |---|---|---|---|---|---|");
    for (policy, way) in POLICIES
        .into_iter()
        .flat_map(|policy| [Way::Pasted, Way::Restarted, Way::Typed].map(|way| (policy, way)))
    {
        let fixture = fixture(&folder.path().join(format!("{policy:?}{way:?}"))).await;
        let steps = Conversation::new(fixture, policy).go_on(way).await;
        let name = format!("{policy:?}, {way:?}");
        println!("FIGURE {}", line(&name, &steps));
        let each = if policy == ToolExposure::Off { 1 } else { 2 };
        assert!(steps.len() >= each * TURNS, "{name}");
        for (step, before) in steps.iter().skip(1).zip(&steps) {
            let said = format!("{name}, turn {}: {:?}", step.turn, step.usage);
            // Both ways to begin are kept side by side, so one of two prompts that follow each other may begin otherwise;
            // and an answer that is asked for again ends with words that no later prompt has.
            let same = policy != ToolExposure::Deciding && steps.len() == each * TURNS;
            assert!(step.usage.changed_at.is_none() || !same, "{said}");
            // Four more tools are told of: that is new, and all that is. Where the question was typed, it was read then.
            let first = step.turn != before.turn && way != Way::Typed;
            let new_tools = policy == ToolExposure::Relevant && step.turn == AWAY.start && first;
            assert!(step.share() >= 0.95 || new_tools, "{said}");
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
        tools: tools(&["notes"]),
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
