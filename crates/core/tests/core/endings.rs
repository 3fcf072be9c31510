//! How turns end, and what stays of them.

use std::time::Duration;

use lectern_core::testing::{Beat, Behaviour, ScriptedTools, calls, fails, says, tool};
use lectern_core::{
    Delta, EventKind, FinishReason, Message, ModelErrorCode, PermissionAnswer, StartError, ToolMode,
    ToolOutcome, TurnErrorCode, TurnOutcome,
};
use serde_json::json;

use crate::app::{App, all_events, finish, permission_request, until};

fn text(text: &str) -> Beat {
    Beat::Delta(Delta::Text(text.to_owned()))
}

fn last_answer(app: &App) -> (String, bool) {
    let Some(Message::Assistant(message)) = app.messages().pop() else { panic!("{:?}", app.messages()) };
    (message.text(), message.incomplete)
}

fn failed(outcome: &TurnOutcome) -> TurnErrorCode {
    let TurnOutcome::Failed { error } = outcome else { panic!("{outcome:?}") };
    error.code
}

#[tokio::test(start_paused = true)]
async fn a_model_that_never_stops_calling_meets_the_limit() {
    let tools = ScriptedTools::new().with(tool("read", true), Behaviour::Answers("more"));
    let mut app = App::start((0..9).map(|page| calls("read", json!({ "page": page }))), tools);
    app.max_steps = 5;
    assert_eq!(app.ask("go").await, TurnOutcome::StepLimit);
    assert_eq!(app.tools.calls().len(), 5);
    assert_eq!(app.results().len(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_model_that_fails_midway_leaves_its_words() {
    let mut reply = vec![text("Half an ans")];
    reply.extend(fails(ModelErrorCode::ModelCrashed, "the worker died"));
    let app = App::start([reply, says("Whole.")], ScriptedTools::new());
    assert_eq!(failed(&app.ask("go").await), TurnErrorCode::Model(ModelErrorCode::ModelCrashed));
    assert_eq!(last_answer(&app), ("Half an ans".to_owned(), true));
    assert_eq!(app.ask("again").await, TurnOutcome::Completed, "the next turn goes on");
    assert_eq!(app.model.requests()[1].messages.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_just_stops_is_a_failure() {
    let app = App::start([vec![text("Half")]], ScriptedTools::new());
    assert_eq!(failed(&app.ask("go").await), TurnErrorCode::Model(ModelErrorCode::Provider));
    assert_eq!(last_answer(&app), ("Half".to_owned(), true));
}

#[tokio::test(start_paused = true)]
async fn what_follows_the_finish_is_not_part_of_the_reply() {
    let mut reply = says("Whole.");
    reply.push(text(" More."));
    reply.extend(fails(ModelErrorCode::Provider, "late"));
    let app = App::start([reply], ScriptedTools::new());
    assert_eq!(app.ask("go").await, TurnOutcome::Completed);
    assert_eq!(last_answer(&app), ("Whole.".to_owned(), false));
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_hangs_after_its_finish_is_let_go() {
    let mut reply = says("Whole.");
    reply.push(Beat::Stall(Duration::from_secs(3_600)));
    let app = App::start([reply], ScriptedTools::new());
    assert_eq!(app.ask("go").await, TurnOutcome::Completed);
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_told_once_and_leaves_a_valid_history() {
    let app = App::start([vec![text("Half"), Beat::Panic("boom")], says("Fine.")], ScriptedTools::new());
    let turn = app.send("go");
    let events = all_events(&turn).await;
    let ends = events.iter().filter(|event| matches!(event.kind, EventKind::TurnFinished { .. })).count();
    assert_eq!(ends, 1);
    assert_eq!(failed(&finish(&turn).await), TurnErrorCode::Panic);
    assert_eq!(last_answer(&app), ("Half".to_owned(), true));
    assert_eq!(app.ask("again").await, TurnOutcome::Completed);
}

#[tokio::test(start_paused = true)]
async fn a_stopped_answer_keeps_what_was_said() {
    for stubborn in [false, true] {
        let long = Duration::from_secs(3_600);
        let pause = if stubborn { Beat::Stall(long) } else { Beat::Wait(long) };
        let app = App::start([vec![text("So far"), pause]], ScriptedTools::new());
        let turn = app.send("go");
        until(&turn, |kind| matches!(kind, EventKind::TextDelta { .. }).then_some(())).await;
        turn.cancel();
        assert_eq!(finish(&turn).await, TurnOutcome::Cancelled);
        assert_eq!(last_answer(&app), ("So far".to_owned(), true));
    }
}

#[tokio::test(start_paused = true)]
async fn a_stop_reaches_running_and_waiting_calls() {
    for (behaviour, reads) in [
        (Behaviour::Hangs, true),
        (Behaviour::Slow(Duration::from_secs(3_600), "late"), true),
        (Behaviour::Answers("never asked for"), false),
    ] {
        let tools = ScriptedTools::new().with(tool("t", reads), behaviour);
        let app = App::start([calls("t", json!({})), says("Done.")], tools);
        let turn = app.send("go");
        if reads {
            until(&turn, |kind| matches!(kind, EventKind::ToolStarted { .. }).then_some(())).await;
        } else {
            permission_request(&turn).await;
        }
        turn.cancel();
        assert_eq!(finish(&turn).await, TurnOutcome::Cancelled);
        let outcomes: Vec<ToolOutcome> = app.results().iter().map(|result| result.outcome).collect();
        assert_eq!(outcomes, [ToolOutcome::Cancelled]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_second_turn_is_refused_until_the_first_is_over() {
    let app = App::start([vec![Beat::Wait(Duration::from_secs(9))], says("Two.")], ScriptedTools::new());
    let first = app.send("one");
    let Err(StartError::Running { turn, .. }) = app.turns.start(app.input("two")) else { panic!() };
    assert_eq!(turn.as_ref(), Some(first.turn()));
    first.cancel();
    let mut events = first.events();
    while let Some(event) = events.next().await {
        if let EventKind::TurnFinished { .. } = event.kind {
            // Whoever hears of the end may go on at once.
            assert_eq!(app.ask("two").await, TurnOutcome::Completed);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn another_register_is_refused_by_the_store() {
    let app = App::start([vec![Beat::Wait(Duration::from_secs(9))]], ScriptedTools::new());
    let first = app.send("one");
    let elsewhere = lectern_core::Turns::default();
    let refused = elsewhere.start(app.input("two"));
    assert!(matches!(refused, Err(StartError::Running { turn: None, .. })));
    first.cancel();
    finish(&first).await;
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_nobody_asked_for_is_refused() {
    let app = App::start([says("Hi.")], ScriptedTools::new());
    let turn = app.send("go");
    finish(&turn).await;
    assert!(turn.answer_permission(&"x".into(), PermissionAnswer::Deny).is_err());
}

#[tokio::test(start_paused = true)]
async fn followers_may_come_late_and_leave_early() {
    let app = App::start([says("Hello.")], ScriptedTools::new());
    let turn = app.send("go");
    drop(turn.events());
    let all = all_events(&turn).await;
    assert_eq!(app.turns.get(turn.turn()).unwrap().events_from(2).next_batch().await, all[2..]);
    assert!(turn.events_from(99).next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn no_tools_are_offered_when_they_are_off() {
    let tools = ScriptedTools::new().with(tool("read", true), Behaviour::Answers("text"));
    let mut app = App::start([calls("read", json!({})), says("Done.")], tools);
    app.tool_mode = ToolMode::Off;
    assert_eq!(app.ask("go").await, TurnOutcome::Completed);
    assert!(app.model.requests()[0].tools.is_empty());
    assert_eq!(app.results()[0].outcome, ToolOutcome::Failed);
    assert!(app.tools.calls().is_empty());
}

/// A reply that ends in another way.
fn ending(mut reply: Vec<Beat>, finish: FinishReason) -> Vec<Beat> {
    reply.pop();
    reply.push(Beat::Delta(Delta::Finished(finish)));
    reply
}

#[tokio::test(start_paused = true)]
async fn calls_of_a_reply_that_was_withheld_never_run() {
    let mut reply = ending(calls("read", json!({"path": "A.md"})), FinishReason::Filtered);
    reply.insert(0, text("Let me see."));
    let tools = ScriptedTools::new().with(tool("read", true), Behaviour::Answers("text"));
    let app = App::start([reply, says("never asked for")], tools);
    assert_eq!(app.ask("go").await, TurnOutcome::Completed);
    assert!(app.tools.calls().is_empty());
    assert_eq!(app.model.requests().len(), 1);
    assert_eq!(last_answer(&app), ("Let me see.".to_owned(), false));
    let Some(Message::Assistant(message)) = app.messages().pop() else { panic!() };
    assert!(!message.has_tool_calls());
}

#[tokio::test(start_paused = true)]
async fn at_the_limit_of_tokens_only_whole_calls_run() {
    let begun = |fragment: &str| {
        let id = "c".into();
        let started = Delta::ToolCallStarted { index: 0, id, tool: "read".into(), provider_data: None };
        let arguments = Delta::ToolCallArguments { index: 0, fragment: fragment.to_owned() };
        [started, arguments, Delta::Finished(FinishReason::Length)].map(Beat::Delta).to_vec()
    };
    for (fragment, runs) in [("", 0), ("{\"path\": \"A", 0), ("{}", 1), ("{\"path\": \"A.md\"}", 1)] {
        let tools = ScriptedTools::new().with(tool("read", true), Behaviour::Answers("text"));
        let app = App::start([begun(fragment), says("Done.")], tools);
        assert_eq!(app.ask("go").await, TurnOutcome::Completed);
        assert_eq!(app.tools.calls().len(), runs, "{fragment}");
        assert_eq!(app.results().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn thoughts_that_met_the_limit_of_tokens_are_no_answer() {
    let thoughts = vec![
        Beat::Delta(Delta::Thinking("Hm".to_owned())),
        Beat::Delta(Delta::Finished(FinishReason::Length)),
    ];
    let app = App::start([thoughts], ScriptedTools::new());
    let outcome = app.ask("go").await;
    assert_eq!(failed(&outcome), TurnErrorCode::Model(ModelErrorCode::EmptyAnswer));
    let TurnOutcome::Failed { error } = outcome else { panic!() };
    assert!(error.hint.is_some());
}

#[tokio::test(start_paused = true)]
async fn an_empty_answer_that_comes_as_an_error_is_asked_for_once_more_after_tools() {
    let empty = || fails(ModelErrorCode::EmptyAnswer, "nothing");
    let tools = || ScriptedTools::new().with(tool("read", true), Behaviour::Answers("text"));
    let app = App::start([calls("read", json!({})), empty(), says("Here it is.")], tools());
    assert_eq!(app.ask("go").await, TurnOutcome::Completed);
    assert!(app.model.requests()[2].tools.is_empty());
    assert_eq!(last_answer(&app), ("Here it is.".to_owned(), false));
    let app = App::start([calls("read", json!({})), empty(), empty(), says("too late")], tools());
    assert_eq!(failed(&app.ask("go").await), TurnErrorCode::Model(ModelErrorCode::EmptyAnswer));
    let app = App::start([empty(), says("too late")], tools());
    assert_eq!(failed(&app.ask("go").await), TurnErrorCode::Model(ModelErrorCode::EmptyAnswer));
    assert_eq!(app.model.requests().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_empty_answer_ends_the_turn_and_is_not_sent_again() {
    let empty = vec![Beat::Delta(Delta::Finished(lectern_core::FinishReason::Stop))];
    let app = App::start([empty, says("Hi.")], ScriptedTools::new());
    assert_eq!(app.ask("one").await, TurnOutcome::Completed);
    assert_eq!(app.ask("two").await, TurnOutcome::Completed);
    let requests = app.model.requests();
    let [Message::User(user)] = requests[1].messages.as_slice() else { panic!("{requests:?}") };
    assert_eq!(lectern_core::message::text_of(&user.parts), "one\n\ntwo");
}
