//! Servers that ask the user while their tool runs.

use lectern_core::testing::{Behaviour, ScriptedTools, calls, fails, says, tool};
use lectern_core::turn::AnswerRefused;
use lectern_core::{
    EventKind, JsonObject, Message, ModelErrorCode, Question, QuestionAnswer, QuestionId, SampleRequest,
    Sampling, ToolChoice, TurnHandle, TurnOutcome, UserMessage, form,
};
use serde_json::{Value, json};

use crate::app::{App, all_events, finish, until};

fn asking(question: Question, times: usize) -> ScriptedTools {
    ScriptedTools::new().with(tool("ask", true), Behaviour::Asks(Box::new(question), times))
}

fn a_form() -> Question {
    let schema = json!({"type": "object", "required": ["age"], "properties": {"age": {"type": "integer"}}});
    let fields = form::read(&schema).unwrap();
    Question::Form { message: "Who?".to_owned(), fields, schema }
}

fn sampling() -> Question {
    let request = SampleRequest {
        system: Some("Be brief.".to_owned()),
        messages: vec![Message::User(UserMessage::text("Say hello."))],
        tools: Vec::new(),
        tool_choice: ToolChoice::Auto,
        sampling: Sampling::default(),
        hints: Vec::new(),
    };
    Question::Sampling { request: Box::new(request), model: None }
}

fn values(value: Value) -> QuestionAnswer {
    let Value::Object(content) = value else { panic!("no object") };
    QuestionAnswer::Accepted { content: Some(content) }
}

async fn asked(turn: &TurnHandle) -> (QuestionId, Question) {
    until(turn, |kind| match kind {
        EventKind::QuestionAsked { question_id, question, .. } => {
            Some((question_id.clone(), question.clone()))
        }
        _ => None,
    })
    .await
}

/// The reply of the model that the user is to judge.
async fn reply_shown(turn: &TurnHandle) -> (QuestionId, String) {
    until(turn, |kind| match kind {
        EventKind::QuestionAsked {
            question_id, question: Question::SamplingReply { message, .. }, ..
        } => Some((question_id.clone(), message.text())),
        _ => None,
    })
    .await
}

fn answers(events: &[lectern_core::Event]) -> Vec<QuestionAnswer> {
    let answers = events.iter().filter_map(|event| match &event.kind {
        EventKind::QuestionAnswered { answer, .. } => Some(answer.clone()),
        _ => None,
    });
    answers.collect()
}

#[tokio::test(start_paused = true)]
async fn only_an_answer_that_fits_reaches_the_server() {
    let app = App::start([calls("ask", json!({})), says("Thanks.")], asking(a_form(), 1));
    let turn = app.send("go");
    let (id, question) = asked(&turn).await;
    assert_eq!(question, a_form());

    let refused = turn.answer_question(&id, values(json!({"age": "old"})));
    assert!(matches!(refused, Err(AnswerRefused::DoesNotFit(faults)) if faults[0].path == "/age"));
    let nothing = turn.answer_question(&id, QuestionAnswer::Accepted { content: None });
    assert!(matches!(nothing, Err(AnswerRefused::DoesNotFit(_))));
    turn.answer_question(&id, values(json!({"age": 36, "secret": "not asked"}))).unwrap();
    assert_eq!(turn.answer_question(&id, QuestionAnswer::Declined), Err(AnswerRefused::NotAsked));

    assert_eq!(finish(&turn).await, TurnOutcome::Completed);
    assert_eq!(answers(&all_events(&turn).await), [values(json!({"age": 36}))]);
    let reply = app.results()[0].text();
    assert!(reply.contains("36") && !reply.contains("not asked"), "{reply}");
}

#[tokio::test(start_paused = true)]
async fn a_stop_withdraws_the_question() {
    let app = App::start([calls("ask", json!({})), says("Thanks.")], asking(a_form(), 1));
    let turn = app.send("go");
    let (id, _) = asked(&turn).await;
    turn.cancel();
    assert_eq!(finish(&turn).await, TurnOutcome::Cancelled);
    assert_eq!(answers(&all_events(&turn).await), [QuestionAnswer::Cancelled]);
    assert_eq!(turn.answer_question(&id, QuestionAnswer::Declined), Err(AnswerRefused::NotAsked));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_asks_without_end_is_declined_in_the_end() {
    let app = App::start([calls("ask", json!({})), says("Thanks.")], asking(a_form(), 1_000));
    let turn = app.send("go");
    let mut events = turn.events();
    while let Some(event) = events.next().await {
        if let EventKind::QuestionAsked { question_id, .. } = event.kind {
            turn.answer_question(&question_id, values(json!({"age": 1}))).unwrap();
        }
    }
    let events = all_events(&turn).await;
    let (asked, answered) = (
        events.iter().filter(|event| matches!(event.kind, EventKind::QuestionAsked { .. })).count(),
        answers(&events).len(),
    );
    assert_eq!((asked, answered), (20, 20));
    assert_eq!(app.results()[0].text().matches("Declined").count(), 980);
}

#[tokio::test(start_paused = true)]
async fn sampling_is_approved_and_its_cost_is_told() {
    let replies = [calls("ask", json!({})), says("Hello, server."), says("Done.")];
    let app = App::start(replies, asking(sampling(), 1));
    let turn = app.send("go");
    let (id, question) = asked(&turn).await;
    assert!(
        matches!(question, Question::Sampling { model: Some(model), .. } if model.as_str() == "scripted")
    );
    turn.answer_question(&id, QuestionAnswer::Accepted { content: Some(JsonObject::new()) }).unwrap();
    let (shown, said) = reply_shown(&turn).await;
    assert_eq!(said, "Hello, server.");
    assert!(app.results().is_empty(), "the server has nothing yet");
    turn.answer_question(&shown, QuestionAnswer::Accepted { content: None }).unwrap();
    assert_eq!(finish(&turn).await, TurnOutcome::Completed);

    let told = all_events(&turn).await.into_iter().find_map(|event| match event.kind {
        EventKind::SampleFinished { message, question_id, .. } => Some((message.text(), question_id)),
        _ => None,
    });
    assert_eq!(told, Some(("Hello, server.".to_owned(), id)));
    assert!(app.results()[0].text().contains("Hello, server."));
    let request = &app.model.requests()[1];
    assert_eq!((request.messages.len(), request.system.as_deref()), (1, Some("Be brief.")));
    assert_ne!(request.conversation, app.conversation, "the conversation is not part of it");
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_the_user_keeps_never_reaches_the_server() {
    for no in [QuestionAnswer::Declined, QuestionAnswer::Cancelled] {
        let replies = [calls("ask", json!({})), says("my secret"), says("Done.")];
        let app = App::start(replies, asking(sampling(), 1));
        let turn = app.send("go");
        let (id, _) = asked(&turn).await;
        turn.answer_question(&id, QuestionAnswer::Accepted { content: None }).unwrap();
        let (shown, _) = reply_shown(&turn).await;
        turn.answer_question(&shown, no).unwrap();
        assert_eq!(finish(&turn).await, TurnOutcome::Completed);
        assert!(!app.results()[0].text().contains("my secret"));
    }
    // A stop while the reply is looked at keeps it, too.
    let replies = [calls("ask", json!({})), says("my secret")];
    let app = App::start(replies, asking(sampling(), 1));
    let turn = app.send("go");
    let (id, _) = asked(&turn).await;
    turn.answer_question(&id, QuestionAnswer::Accepted { content: None }).unwrap();
    let (shown, _) = reply_shown(&turn).await;
    turn.cancel();
    assert_eq!(finish(&turn).await, TurnOutcome::Cancelled);
    let sent = turn.answer_question(&shown, QuestionAnswer::Accepted { content: None });
    assert_eq!(sent, Err(AnswerRefused::NotAsked));
    assert!(!app.results()[0].text().contains("my secret"));
}

#[tokio::test(start_paused = true)]
async fn sampling_that_is_declined_or_fails_ends_nothing() {
    let app = App::start([calls("ask", json!({})), says("Done.")], asking(sampling(), 1));
    let turn = app.send("go");
    let (id, _) = asked(&turn).await;
    turn.answer_question(&id, QuestionAnswer::Declined).unwrap();
    assert_eq!(finish(&turn).await, TurnOutcome::Completed);
    assert_eq!(app.model.requests().len(), 2, "the model was not asked for the server");

    let broken = fails(ModelErrorCode::Provider, "no tokens left");
    let app = App::start([calls("ask", json!({})), broken, says("Done.")], asking(sampling(), 1));
    let turn = app.send("go");
    let (id, _) = asked(&turn).await;
    turn.answer_question(&id, QuestionAnswer::Accepted { content: None }).unwrap();
    assert_eq!(finish(&turn).await, TurnOutcome::Completed);
    assert!(app.results()[0].text().contains("no tokens left"));
}
