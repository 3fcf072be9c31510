//! Conversations that no longer fit: what is shortened, what is summarised, what is refused.

use std::sync::Arc;

use lectern_core::fit::Fit;
use lectern_core::model::Purpose;
use lectern_core::testing::{Behaviour, Reply, ScriptedModel, ScriptedTools, calls, fails, says, tool};
use lectern_core::{
    Blob, ChatRequest, Event, EventKind, Message, ModelErrorCode, Part, ToolMode, ToolSpec, TurnErrorCode,
    TurnOutcome, UserMessage,
};
use proptest::prelude::*;
use serde_json::json;

use crate::app::{App, all_events, finish};

fn noted(length: usize) -> ScriptedTools {
    let text: String = (0..length / 10).map(|line| format!("line {line:04}\n")).collect();
    let properties =
        json!({"type": "object", "properties": {"path": {"type": "string"}, "offset": {"type": "integer"}}});
    let spec = ToolSpec { input_schema: properties, ..tool("read", true) };
    ScriptedTools::new().with(spec, Behaviour::Answers(Box::leak(text.into_boxed_str())))
}

fn app(context: u32, script: impl IntoIterator<Item = Reply>, tools: ScriptedTools) -> App {
    App::with_model(ScriptedModel::new(script).with_context(context), tools)
}

fn fits(events: &[Event]) -> Vec<Option<Fit>> {
    let started = events.iter().filter_map(|event| match &event.kind {
        EventKind::StepStarted { fit, .. } => Some(fit.clone()),
        _ => None,
    });
    started.collect()
}

fn results(request: &ChatRequest) -> Vec<String> {
    let results = request.messages.iter().filter_map(|message| match message {
        Message::Tool(result) => Some(result.text()),
        Message::User(_) | Message::Assistant(_) => None,
    });
    results.collect()
}

fn read(path: &str) -> Reply {
    calls("read", json!({ "path": path }))
}

#[tokio::test(start_paused = true)]
async fn what_fits_is_left_alone_and_not_even_counted() {
    let app = app(8_192, [read("a"), says("ok")], noted(2_000));
    let turn = app.send("go");
    let events = all_events(&turn).await;
    assert_eq!(fits(&events), [None, None]);
    assert_eq!(app.model.counted(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_image_that_may_be_too_large_is_counted() {
    for (context, counted) in [(4_096, 1), (16_384, 0)] {
        let app = app(context, [says("A cat.")], ScriptedTools::new());
        let parts = vec![
            Part::Image(Blob::of("image/png", b"a picture")),
            Part::Text { text: "What is it?".to_owned() },
        ];
        let message = UserMessage { parts, context: None };
        let turn = app.turns.start(lectern_core::TurnInput { message, ..app.input("") }).unwrap();
        let events = all_events(&turn).await;
        assert_eq!(app.model.counted(), counted, "{context}");
        let exact = fits(&events)[0].as_ref().map(|fit| fit.exact);
        assert_eq!(exact, (counted > 0).then_some(true), "{context}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_long_result_keeps_its_start_and_its_end_and_says_how_to_get_the_rest() {
    let app = app(4_096, [read("a"), says("ok")], noted(60_000));
    let turn = app.send("go");
    let events = all_events(&turn).await;
    assert_eq!(finish(&turn).await, TurnOutcome::Completed);
    let sent = &results(&app.model.requests()[1])[0];
    assert!(sent.starts_with("line 0000\n") && sent.ends_with("line 5999\n"), "{sent}");
    assert!(sent.contains("characters are left out here to fit. Call `read` with `offset` to see them"));
    let fit = fits(&events)[1].clone().unwrap();
    assert!(fit.exact && fit.tokens <= fit.room, "{fit:?}");
    assert_eq!((fit.shortened.len(), fit.shortened[0].from), (1, 60_000));
    assert_eq!(app.results()[0].text().len(), 60_000, "the store keeps it whole");
}

#[tokio::test(start_paused = true)]
async fn earlier_results_are_shortened_first_and_stay_so() {
    let script = (0..4).flat_map(|turn| [read(&format!("{turn}")), says("ok")]);
    let app = app(4_096, script, noted(4_000));
    let mut cuts: Vec<Vec<String>> = Vec::new();
    for turn in 0..4 {
        app.ask(&format!("question {turn}")).await;
        cuts.push(results(app.model.requests().last().unwrap()));
    }
    let last = cuts.last().unwrap();
    assert_eq!(last.len(), 4);
    assert!(
        last[0].len() < 1_000 && last[3].len() == 4_000,
        "{:?}",
        last.iter().map(String::len).collect::<Vec<_>>()
    );
    for (earlier, later) in cuts.iter().zip(&cuts[1..]) {
        let same = earlier.iter().zip(later).filter(|(one, other)| one.len() < 1_000 && one != other).count();
        assert_eq!(same, 0, "what was cut looks the same in every later request");
    }
}

fn long_talk(turns: usize) -> (Vec<Reply>, Vec<String>) {
    let words = "word ".repeat(160);
    (
        (0..turns).map(|turn| says(&format!("answer {turn} {words}"))).collect(),
        (0..turns).map(|turn| format!("question {turn}")).collect(),
    )
}

/// A context in which the ninth question is the first that does not fit.
async fn tight() -> u32 {
    let (script, questions) = long_talk(9);
    let app = app(100_000, script, ScriptedTools::new());
    for question in &questions {
        app.ask(question).await;
    }
    let requests = app.model.requests();
    let room = (ScriptedModel::tokens(&requests[7]) + ScriptedModel::tokens(&requests[8])) / 2;
    // A quarter is kept for the answer.
    room * 4 / 3
}

#[tokio::test(start_paused = true)]
async fn the_oldest_turns_are_summarised_once_and_stay_readable() {
    let (mut script, questions) = long_talk(10);
    script.insert(8, says("They spoke about words."));
    let app = app(tight().await, script, ScriptedTools::new());
    for question in &questions[..8] {
        assert_eq!(app.ask(question).await, TurnOutcome::Completed);
    }
    let turn = app.send(&questions[8]);
    let events = all_events(&turn).await;
    let requests = app.model.requests();
    let (side, chat) = (&requests[8], &requests[9]);
    assert_eq!((side.purpose, side.tools.len()), (Purpose::Side, 0));
    assert_ne!(side.conversation, chat.conversation, "the chat's cache stays");
    assert!(chat.system.as_ref().unwrap().ends_with("They spoke about words."), "{:?}", chat.system);
    assert!(chat.messages.len() < 17 && matches!(chat.messages[0], Message::User(_)));
    let summary = fits(&events)[0].clone().unwrap().summary.unwrap();
    assert!(summary.new && summary.text == "They spoke about words.");
    assert_eq!(app.messages().len(), 18, "all messages are still there");
    assert_eq!(app.store.summary(&app.conversation).unwrap().unwrap().up_to, summary.up_to);
    let turn = app.send(&questions[9]);
    let next = fits(&all_events(&turn).await)[0].clone().unwrap().summary.unwrap();
    assert!(!next.new, "the next turn goes on with it");
    let later = app.model.requests().pop().unwrap();
    assert_eq!(later.system, chat.system);
    assert_eq!(later.messages[..chat.messages.len()], chat.messages[..], "the prefix holds");
}

#[tokio::test(start_paused = true)]
async fn a_summary_that_fails_leaves_the_messages_out_and_says_so() {
    let (mut script, questions) = long_talk(9);
    script.insert(8, fails(ModelErrorCode::ModelCrashed, "the worker died"));
    let app = app(tight().await, script, ScriptedTools::new());
    for question in &questions[..8] {
        app.ask(question).await;
    }
    let turn = app.send(&questions[8]);
    let events = all_events(&turn).await;
    assert_eq!(finish(&turn).await, TurnOutcome::Completed);
    let told = events
        .iter()
        .any(|event| matches!(&event.kind, EventKind::Notice { code, .. } if code == "summary_failed"));
    assert!(told);
    assert!(app.model.requests().pop().unwrap().system.unwrap().contains("left out"));
}

#[tokio::test(start_paused = true)]
async fn a_stop_during_the_summary_ends_the_turn() {
    let (mut script, questions) = long_talk(9);
    script.insert(8, vec![lectern_core::testing::Beat::Stall(std::time::Duration::from_secs(3600))]);
    let app = app(tight().await, script, ScriptedTools::new());
    for question in &questions[..8] {
        app.ask(question).await;
    }
    let turn = app.send(&questions[8]);
    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    turn.cancel();
    assert_eq!(finish(&turn).await, TurnOutcome::Cancelled);
    assert_eq!(app.store.summary(&app.conversation).unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn a_message_that_cannot_fit_is_refused_with_the_number_and_the_way_out() {
    let app = app(1_024, [says("never")], ScriptedTools::new());
    let mut input = app.input(&"word ".repeat(4_000));
    input.largest_context = Some(32_768);
    let turn = app.turns.start(input).unwrap();
    let TurnOutcome::Failed { error } = finish(&turn).await else { panic!() };
    assert_eq!(error.code, TurnErrorCode::Model(ModelErrorCode::ContextFull));
    assert!(
        error.message.starts_with("your message is too long") && error.message.contains("are too many"),
        "{error}"
    );
    assert!(error.hint.unwrap().contains("32768"));
    assert!(app.model.requests().is_empty(), "the model was not bothered");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Whatever was said and returned: a request fits, or the turn says why not; the history is valid; nothing that is
    /// stored changes; and what two steps in a row have in common does not shrink without a reason that is told.
    #[test]
    fn requests_always_fit_or_are_refused(
        context in 600_u32..6_000,
        turns in prop::collection::vec((1_usize..3_000, 0_usize..20_000, any::<bool>()), 1..8),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let mut script = Vec::new();
            for (_, _, reads) in &turns {
                if *reads {
                    script.push(read("a"));
                }
                script.push(says(&"answer ".repeat(40)));
            }
            let length = turns.iter().map(|(_, length, _)| *length).max().unwrap_or(0);
            let mut app = app(context, script, noted(length));
            app.model = Arc::new(ScriptedModel::new([says("summary or answer")]).repeating().with_context(context));
            if let Some((_, _, true)) = turns.first() {
                app.tool_mode = ToolMode::Prompted;
            }
            for (question, _, _) in &turns {
                let turn = app.send(&"ask ".repeat(question / 4 + 1));
                let events = all_events(&turn).await;
                match finish(&turn).await {
                    TurnOutcome::Completed => {}
                    TurnOutcome::Failed { error } => {
                        assert_eq!(error.code, TurnErrorCode::Model(ModelErrorCode::ContextFull), "{error}");
                    }
                    other => panic!("{other:?}"),
                }
                for fit in fits(&events).into_iter().flatten() {
                    assert!(fit.tokens < context, "{fit:?}");
                }
            }
            for request in app.model.requests() {
                assert!(ScriptedModel::tokens(&request) <= context, "{} > {context}", ScriptedModel::tokens(&request));
                assert_eq!(lectern_core::history::for_request(request.messages.clone()), request.messages);
            }
        });
    }
}
