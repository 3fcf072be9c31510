//! Whatever models, tools and users do: the invariants of a turn hold.

use std::collections::HashMap;
use std::time::Duration;

use lectern_core::testing::{Beat, Behaviour, Reply, ScriptedModel, ScriptedTools, fails, tool};
use lectern_core::{
    Delta, Event, EventKind, FinishReason, Grant, Message, ModelErrorCode, Opaque, PermissionAnswer,
    ToolCallId, ToolOutcome, TurnErrorCode, TurnHandle, TurnOutcome, Usage, history,
};
use proptest::prelude::*;
use serde_json::json;

use crate::app::{App, finish};

const READING: [&str; 7] = ["answers", "fails", "panics", "slow", "hangs", "late", "lies"];
const WRITING: [&str; 3] = ["write", "write_slow", "write_hangs"];

fn tools() -> ScriptedTools {
    let slow = |millis| Behaviour::Slow(Duration::from_millis(millis), "slow");
    let behaviours = [
        Behaviour::Answers("text"),
        Behaviour::Fails("no"),
        Behaviour::Panics,
        slow(250),
        Behaviour::Hangs,
        Behaviour::LateNews(vec![1.0, 0.5, 3.0]),
        Behaviour::WrongId,
    ];
    let mut tools = ScriptedTools::new();
    for (name, behaviour) in READING.into_iter().zip(behaviours) {
        tools = tools.with(strict(name, true), behaviour);
    }
    for (name, behaviour) in WRITING.into_iter().zip([Behaviour::Answers("ok"), slow(400), Behaviour::Hangs])
    {
        tools = tools.with(strict(name, false), behaviour);
    }
    tools
}

fn strict(name: &str, reads: bool) -> lectern_core::ToolSpec {
    let mut spec = tool(name, reads);
    spec.input_schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    spec
}

/// One thing that a model may do, in order or out of it.
fn beat() -> impl Strategy<Value = Beat> {
    let index = 0..4_u32;
    let id = prop::sample::select(vec!["", "a", "a", "b", "call_0", "call_1"]);
    let name = prop::sample::select([&READING[..], &WRITING[..], &["unknown"]].concat());
    let fragment = prop::sample::select(vec!["", "{}", "{\"n\":", "1}", "{\"n\": \"x\"}", "[", "null"]);
    prop_oneof![
        4 => "[a-z ]{0,8}".prop_map(|text| Beat::Delta(Delta::Text(text))),
        2 => "[a-z ]{0,8}".prop_map(|text| Beat::Delta(Delta::Thinking(text))),
        5 => (index.clone(), id, name).prop_map(|(index, id, name)| Beat::Delta(Delta::ToolCallStarted {
            index, id: id.into(), tool: name.into(), provider_data: None
        })),
        6 => (index, fragment).prop_map(|(index, fragment)| Beat::Delta(Delta::ToolCallArguments {
            index, fragment: fragment.to_owned()
        })),
        1 => Just(Beat::Delta(Delta::Loading(0.5))),
        1 => Just(Beat::Delta(Delta::PromptProgress { done: 1, total: 2, reused: 0 })),
        1 => Just(Beat::Delta(Delta::Usage(Usage { prompt_tokens: 9, ..Usage::default() }))),
        1 => Just(Beat::Delta(Delta::ProviderData(Opaque::from("opaque")))),
        1 => (1..900_u64).prop_map(|millis| Beat::Wait(Duration::from_millis(millis))),
    ]
}

/// How a reply ends, well or badly.
fn ending() -> impl Strategy<Value = Reply> {
    let finished = |reason| vec![Beat::Delta(Delta::Finished(reason))];
    prop_oneof![
        12 => Just(finished(FinishReason::ToolCalls)),
        4 => Just(finished(FinishReason::Stop)),
        1 => Just(finished(FinishReason::Length)),
        1 => Just(finished(FinishReason::Cancelled)),
        1 => Just(finished(FinishReason::Failed)),
        1 => Just(fails(ModelErrorCode::ModelCrashed, "died")),
        1 => Just(vec![Beat::Panic("a panic on purpose")]),
        1 => Just(vec![]),
        1 => Just(vec![Beat::Stall(Duration::from_secs(50)), Beat::Delta(Delta::Finished(FinishReason::Stop))]),
        1 => Just(vec![
            Beat::Delta(Delta::Finished(FinishReason::Stop)),
            Beat::Delta(Delta::Text("late".to_owned())),
            Beat::Stall(Duration::from_secs(50)),
        ]),
    ]
}

fn reply() -> impl Strategy<Value = Reply> {
    (prop::collection::vec(beat(), 0..10), ending()).prop_map(|(mut beats, ending)| {
        beats.extend(ending);
        beats
    })
}

/// What happens to one turn.
#[derive(Clone, Debug)]
struct Fate {
    replies: Vec<Reply>,
    endless: bool,
    /// When the user stops it.
    stop_after: Option<u64>,
    /// What the user answers, again and again.
    answers: Vec<PermissionAnswer>,
}

fn fate() -> impl Strategy<Value = Fate> {
    let answer = prop_oneof![
        3 => Just(PermissionAnswer::Allow { grant: Grant::Once }),
        1 => Just(PermissionAnswer::Allow { grant: Grant::Conversation }),
        1 => Just(PermissionAnswer::Allow { grant: Grant::Always }),
        2 => Just(PermissionAnswer::Deny),
    ];
    let replies = prop::collection::vec(reply(), 1..5);
    let stop_after = prop::option::of(0..3_000_u64);
    (replies, any::<bool>(), stop_after, prop::collection::vec(answer, 1..6))
        .prop_map(|(replies, endless, stop_after, answers)| Fate { replies, endless, stop_after, answers })
}

/// Runs a fate: answers questions, stops at its time, or when a tool hangs for a minute.
async fn live(app: &App, fate: &Fate) -> (TurnHandle, Vec<Event>) {
    let turn = app.send("go");
    let stop = Duration::from_millis(fate.stop_after.unwrap_or(60_000));
    let stopper = tokio::spawn({
        let turn = turn.clone();
        async move {
            tokio::time::sleep(stop).await;
            turn.cancel();
        }
    });
    let mut events = turn.events();
    let mut seen = Vec::new();
    let mut answers = fate.answers.iter().cycle();
    while let Some(event) = events.next().await {
        if let (EventKind::PermissionRequested { call, .. }, Some(answer)) = (&event.kind, answers.next()) {
            // Refused when the turn was stopped in the meantime.
            let _ = turn.answer_permission(&call.id, answer.clone());
        }
        seen.push(event);
    }
    stopper.abort();
    (turn, seen)
}

fn started_and_finished(events: &[Event]) {
    assert!(events.iter().map(|event| event.seq).eq(0..events.len() as u64), "seq has gaps");
    assert!(matches!(events.first().unwrap().kind, EventKind::TurnStarted { .. }));
    let ends = events.iter().filter(|event| matches!(event.kind, EventKind::TurnFinished { .. })).count();
    assert!(matches!(events.last().unwrap().kind, EventKind::TurnFinished { .. }));
    assert_eq!(ends, 1);
    let (mut step, mut expected_step) = (None, 0);
    let mut open: HashMap<ToolCallId, bool> = HashMap::new();
    for event in events {
        match &event.kind {
            EventKind::StepStarted { step: begun, .. } => {
                assert_eq!((*begun, step), (expected_step, None));
                assert!(open.is_empty(), "the calls of the step before are settled");
                step = Some(*begun);
                expected_step += 1;
            }
            EventKind::StepFinished { step: done, message, .. } => {
                assert_eq!(step.take(), Some(*done));
                open = message.tool_calls().map(|call| (call.id.clone(), false)).collect();
                assert!(!message.incomplete || open.is_empty(), "half a reply asks for nothing");
            }
            EventKind::TextDelta { .. }
            | EventKind::ThinkingDelta { .. }
            | EventKind::ToolCallDelta { .. } => {
                assert!(step.is_some(), "a delta outside of a step");
            }
            EventKind::ToolStarted { call } => {
                assert_eq!(open.insert(call.id.clone(), true), Some(false), "started once, when asked for");
            }
            EventKind::ToolProgress { call, .. } | EventKind::ToolLog { call, .. } => {
                assert_eq!(open.get(call), Some(&true), "news of a call that does not run");
            }
            EventKind::ToolFinished { result, .. } => {
                assert!(open.remove(&result.call).is_some(), "settled once, when asked for");
            }
            _ => {}
        }
    }
    assert!(step.is_none() && open.is_empty(), "something is left open");
}

/// The conversation as the events tell it.
fn replay(events: &[Event]) -> Vec<Message> {
    let mut out = Vec::new();
    let mut calls: Vec<ToolCallId> = Vec::new();
    let mut results = HashMap::new();
    for event in events {
        match &event.kind {
            EventKind::TurnStarted { message, .. } => out.push(Message::User(message.clone())),
            EventKind::StepFinished { message, .. } => {
                calls = message.tool_calls().map(|call| call.id.clone()).collect();
                out.push(Message::Assistant(message.clone()));
            }
            EventKind::ToolFinished { result, .. } => {
                results.insert(result.call.clone(), result.clone());
                if calls.iter().all(|call| results.contains_key(call)) {
                    out.extend(calls.drain(..).filter_map(|call| results.remove(&call)).map(Message::Tool));
                }
            }
            _ => {}
        }
    }
    out
}

fn valid(messages: &[Message]) {
    // What is stored needs no repair but for empty answers and doubled questions.
    let mut open: Vec<ToolCallId> = Vec::new();
    let mut ids = std::collections::HashSet::new();
    for message in messages {
        match message {
            Message::Tool(result) => assert_eq!(open.remove(0), result.call, "out of order"),
            Message::User(_) => assert!(open.is_empty()),
            Message::Assistant(message) => {
                assert!(open.is_empty());
                open = message.tool_calls().map(|call| call.id.clone()).collect();
                assert!(open.iter().all(|id| ids.insert(id.clone())), "an id names two calls");
            }
        }
    }
    assert!(open.is_empty(), "a call without a result");
    let request = history::for_request(messages.to_vec());
    assert_eq!(history::for_request(request.clone()), request);
}

fn writing_calls_stood_alone(app: &App) {
    for record in app.tools.calls() {
        let writes = |tool: &lectern_core::ToolName| WRITING.contains(&tool.as_str());
        assert!(!record.beside.iter().any(writes), "{record:?} ran beside a writing call");
        assert!(!writes(&record.call.tool) || record.beside.is_empty(), "{record:?} ran beside another");
    }
}

fn only_allowed_calls_ran(app: &App, events: &[Event]) {
    let audit = app.store.audit(&lectern_core::store::AuditQuery::default()).unwrap();
    for event in events {
        if let EventKind::ToolStarted { call } = &event.kind {
            let entry = audit.iter().find(|entry| entry.call.as_ref() == Some(&call.id)).unwrap();
            assert_eq!(entry.decision, Some(lectern_core::store::AuditDecision::Allowed));
            assert_eq!(entry.arguments, Some(call.arguments.clone().into()));
        }
        if let EventKind::ToolFinished { result, .. } = &event.kind
            && result.outcome == ToolOutcome::Denied
        {
            assert!(!app.tools.calls().iter().any(|record| record.call.id == result.call), "denied, yet run");
        }
    }
}

async fn check(fate: Fate) {
    let mut model = ScriptedModel::new(fate.replies.clone());
    if fate.endless {
        model = model.repeating();
    }
    let mut app = App::with_model(model, tools());
    app.max_steps = 6;
    let (turn, events) = live(&app, &fate).await;
    started_and_finished(&events);
    let stored = app.messages();
    assert_eq!(replay(&events), stored);
    valid(&stored);
    writing_calls_stood_alone(&app);
    only_allowed_calls_ran(&app, &events);
    let kept = app.store.turns(&app.conversation).unwrap().remove(0).events;
    assert_eq!(replay(&kept), stored, "the stored events tell the same");
    assert!(kept.iter().all(|event| events.contains(event)));

    // Nothing comes after the end, and the next turn goes on from there.
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(turn.events().ready(), events);
    let EventKind::TurnFinished { outcome } = events.last().unwrap().kind.clone() else { panic!() };
    if let TurnOutcome::Failed { error } = &outcome {
        assert_ne!(error.code, TurnErrorCode::Store);
    }
    let next = app.send("and now?");
    next.cancel();
    finish(&next).await;
    valid(&app.messages());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn the_invariants_hold_whatever_happens(fate in fate()) {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(check(fate));
    }
}
