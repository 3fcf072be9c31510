//! The loop's good manners: repeated calls, empty answers, a model that turns in circles.

use lectern_core::exposure::{Exposure, ExposureReason};
use lectern_core::testing::{Behaviour, Reply, ScriptedModel, ScriptedTools, calls, calls_all, says, tool};
use lectern_core::{
    Event, EventKind, Grant, Message, PermissionAnswer, Policy, ResultNote, Rule, RuleEffect, RuleMatch,
    ToolOutcome, TurnOutcome,
};
use serde_json::{Value, json};

use crate::app::{App, all_events, finish, permission_request, until};

fn notes() -> ScriptedTools {
    ScriptedTools::new()
        .with(tool("read", true), Behaviour::Answers("a long note"))
        .with(tool("write", false), Behaviour::Answers("written"))
}

/// Everything is allowed.
fn trusting(script: impl IntoIterator<Item = Reply>) -> App {
    let app = App::start(script, notes());
    let everything = Rule { effect: RuleEffect::Allow, matches: RuleMatch::Everything };
    app.permissions.set_policy(Policy { rules: vec![everything] });
    app
}

fn called(app: &App) -> Vec<Value> {
    app.tools.calls().into_iter().map(|record| Value::Object(record.call.arguments)).collect()
}

fn exposures(events: &[Event]) -> Vec<Exposure> {
    let started = events.iter().filter_map(|event| match &event.kind {
        EventKind::StepStarted { exposure, .. } => exposure.clone(),
        _ => None,
    });
    started.collect()
}

fn notices(events: &[Event]) -> Vec<String> {
    let codes = events.iter().filter_map(|event| match &event.kind {
        EventKind::Notice { code, .. } => Some(code.clone()),
        _ => None,
    });
    codes.collect()
}

#[tokio::test(start_paused = true)]
async fn a_repeated_reading_shows_the_earlier_result_and_says_so() {
    let again = calls("read", json!({"lines": [1, 2], "path": "A.md"}));
    let app = trusting([calls("read", json!({"path": "A.md", "lines": [1.0, 2]})), again, says("Done.")]);
    assert_eq!(app.ask("go").await, TurnOutcome::Completed);
    assert_eq!(called(&app).len(), 1);
    let results = app.results();
    let first = results[0].call.clone();
    assert_eq!(results[1].note, Some(ResultNote::Repeated { first }));
    assert_eq!(results[1].outcome, ToolOutcome::Succeeded);
    assert!(results[1].text().contains("not run again") && results[1].text().ends_with("a long note"));
    let Some(Message::Tool(told)) = app.model.requests()[2].messages.last().cloned() else { panic!() };
    assert_eq!(told.text(), results[1].text());
}

#[tokio::test(start_paused = true)]
async fn what_was_changed_in_between_is_read_again() {
    let read = || calls("read", json!({"path": "A.md"}));
    let app = trusting([read(), calls("write", json!({"path": "A.md"})), read(), says("Done.")]);
    assert_eq!(app.ask("go").await, TurnOutcome::Completed);
    assert_eq!(called(&app).len(), 3);
}

#[tokio::test(start_paused = true)]
async fn the_next_turn_reads_anew() {
    let read = || calls("read", json!({"path": "A.md"}));
    let app = trusting([read(), says("One."), read(), says("Two.")]);
    app.ask("go").await;
    app.ask("again").await;
    assert_eq!(called(&app).len(), 2);
}

#[tokio::test(start_paused = true)]
async fn equal_calls_in_one_message_run_once() {
    let read = ("read", json!({"path": "A.md"}));
    let other = ("read", json!({"path": "B.md"}));
    let app = trusting([calls_all([read.clone(), other, read]), says("Done.")]);
    assert_eq!(app.ask("go").await, TurnOutcome::Completed);
    assert_eq!(called(&app).len(), 2);
    let results = app.results();
    assert_eq!(results.len(), 3, "each call has its result, in order");
    assert_eq!(results[2].note, Some(ResultNote::Repeated { first: results[0].call.clone() }));
}

#[tokio::test(start_paused = true)]
async fn equal_calls_around_a_change_are_all_settled() {
    let read = ("read", json!({"path": "A.md"}));
    let write = ("write", json!({"path": "A.md"}));
    let app = trusting([calls_all([read.clone(), read.clone(), write, read]), says("Done.")]);
    assert_eq!(app.ask("go").await, TurnOutcome::Completed);
    assert_eq!(called(&app).len(), 3, "what was changed in between is read again");
    let results = app.results();
    assert_eq!(results.len(), 4, "each call has its result, in order");
    assert_eq!(results[1].note, Some(ResultNote::Repeated { first: results[0].call.clone() }));
    assert_eq!(results[3].note, None);
}

#[tokio::test(start_paused = true)]
async fn a_repeated_change_needs_the_users_word_even_when_rules_allow_it() {
    let write = || calls("write", json!({"text": "milk"}));
    for (answer, runs) in [(PermissionAnswer::Allow { grant: Grant::Once }, 2), (PermissionAnswer::Deny, 1)] {
        let app = trusting([write(), write(), write(), says("Done.")]);
        let turn = app.send("go");
        let asked = permission_request(&turn).await;
        assert_eq!(app.results().len(), 2, "the second one was held back without a question");
        assert_eq!(
            app.results()[1].note,
            Some(ResultNote::Repeated { first: app.results()[0].call.clone() })
        );
        turn.answer_permission(&asked.id, answer).unwrap();
        assert_eq!(finish(&turn).await, TurnOutcome::Completed);
        assert_eq!(called(&app).len(), runs);
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_denied_is_not_asked_again() {
    let write = || calls("write", json!({"text": "milk"}));
    let app = App::start([write(), write(), says("As you wish.")], notes());
    let turn = app.send("go");
    let asked = permission_request(&turn).await;
    turn.answer_permission(&asked.id, PermissionAnswer::Deny).unwrap();
    let events = all_events(&turn).await;
    let asked =
        events.iter().filter(|event| matches!(event.kind, EventKind::PermissionRequested { .. })).count();
    assert_eq!((asked, called(&app).len()), (1, 0));
    assert_eq!(app.results()[1].outcome, ToolOutcome::Denied);
}

#[tokio::test(start_paused = true)]
async fn a_model_that_turns_in_circles_has_to_answer() {
    let read = || calls("read", json!({"path": "A.md"}));
    let app = trusting([read(), read(), read(), read(), says("All I found.")]);
    let turn = app.send("go");
    let events = all_events(&turn).await;
    assert_eq!(finish(&turn).await, TurnOutcome::Completed);
    assert_eq!(called(&app).len(), 1);
    assert!(notices(&events).contains(&"repeating".to_owned()));
    assert_eq!(exposures(&events).last().unwrap().reason, ExposureReason::Repeating);
    let last = app.model.requests().pop().unwrap();
    assert!(last.tools.is_empty());
    let Some(Message::User(word)) = last.messages.last() else { panic!("{:?}", last.messages.last()) };
    assert!(lectern_core::message::text_of(&word.parts).contains("same calls"));
    assert_eq!(app.messages().len(), 10, "what is said to the model is not stored");
}

#[tokio::test(start_paused = true)]
async fn a_model_that_always_calls_comes_to_an_end() {
    let model = ScriptedModel::new([calls("read", json!({"path": "A.md"}))]).repeating();
    let app = App::with_model(model, notes());
    assert_eq!(app.ask("go").await, TurnOutcome::StepLimit);
    assert_eq!((called(&app).len(), app.model.requests().len()), (1, 5));
    let wrong = ScriptedModel::new([calls("raed", json!({}))]).repeating();
    let app = App::with_model(wrong, notes());
    assert_eq!(app.ask("go").await, TurnOutcome::StepLimit);
    assert!(app.model.requests().len() <= 6, "{}", app.model.requests().len());
}

#[tokio::test(start_paused = true)]
async fn an_empty_answer_after_tools_is_asked_for_once_more_without_them() {
    let app = trusting([calls("read", json!({})), says(" \n"), says("Here it is.")]);
    let turn = app.send("go");
    let events = all_events(&turn).await;
    assert_eq!(finish(&turn).await, TurnOutcome::Completed);
    assert!(notices(&events).contains(&"empty_answer".to_owned()));
    assert_eq!(exposures(&events).last().unwrap().reason, ExposureReason::EmptyAnswer);
    assert!(app.model.requests()[2].tools.is_empty());
    let Some(Message::Assistant(answer)) = app.messages().pop() else { panic!() };
    assert_eq!(answer.text(), "Here it is.");
}

#[tokio::test(start_paused = true)]
async fn a_model_that_never_answers_is_asked_once_more_and_not_for_ever() {
    let app = trusting([calls("read", json!({})), says(""), says(""), says("too late")]);
    assert_eq!(app.ask("go").await, TurnOutcome::Completed);
    assert_eq!(app.model.requests().len(), 3);
    let app = trusting([says("")]);
    assert_eq!(app.ask("hi").await, TurnOutcome::Completed, "nothing came before it");
    assert_eq!(app.model.requests().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_failed_tool_is_news_and_a_second_try_is_allowed() {
    let tools = ScriptedTools::new().with(tool("read", true), Behaviour::Fails("not found: Lyn.md"));
    let read = || calls("read", json!({"path": "Lyn.md"}));
    let app = App::start([read(), read(), read(), says("I know Lyon without it.")], tools);
    let turn = app.send("go");
    let shown = until(&turn, |kind| match kind {
        EventKind::ToolFinished { result, .. } => Some(result.clone()),
        _ => None,
    })
    .await;
    assert_eq!(shown.outcome, ToolOutcome::Failed);
    assert_eq!(finish(&turn).await, TurnOutcome::Completed);
    assert_eq!(called(&app).len(), 2, "the third time it is not run");
}
