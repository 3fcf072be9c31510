//! Tool calls that go well, and those that don't.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use lectern_core::store::AuditQuery;
use lectern_core::testing::{Beat, Behaviour, ScriptedTools, calls, calls_all, says, tool};
use lectern_core::{
    CallContext, CallNews, Delta, EventKind, FinishReason, Grant, Message, MessageId, PermissionAnswer,
    ToolCall, ToolCallId, ToolName, ToolOutcome, ToolProvider, ToolResult, ToolSet, ToolSpec, TurnInput,
    TurnOutcome, WireDirection,
};
use serde_json::json;

use crate::app::{App, all_events, answer, finish, permission_request, until};

fn reading(name: &str, text: &'static str) -> ScriptedTools {
    ScriptedTools::new().with(tool(name, true), Behaviour::Answers(text))
}

/// What the model got to read in its second step.
fn news(app: &App) -> Vec<(ToolOutcome, String)> {
    let request = app.model.requests().swap_remove(1);
    let results = request.messages.into_iter().filter_map(|message| match message {
        Message::Tool(result) => Some((result.outcome, result.text())),
        Message::User(_) | Message::Assistant(_) => None,
    });
    results.collect()
}

#[tokio::test(start_paused = true)]
async fn a_tool_is_called_and_its_result_reaches_the_model() {
    let app = App::start([calls("read", json!({"path": "a.md"})), says("Two.")], reading("read", "two eggs"));

    assert_eq!(app.ask("how many eggs?").await, TurnOutcome::Completed);

    assert_eq!(news(&app), [(ToolOutcome::Succeeded, "two eggs".to_owned())]);
    assert_eq!(app.tools.calls()[0].call.arguments["path"], "a.md");
    assert_eq!(app.messages().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn the_events_tell_the_story_in_order() {
    let app = App::start([calls("read", json!({"p": 1})), says("Done.")], reading("read", "text"));
    let events = all_events(&app.send("go")).await;
    let kinds: Vec<String> = events
        .iter()
        .map(|event| serde_json::to_value(event).unwrap()["kind"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(
        kinds,
        [
            "turn_started",
            "step_started",
            "tool_call_delta",
            "tool_call_delta",
            "step_finished",
            "tool_started",
            "tool_finished",
            "step_started",
            "text_delta",
            "step_finished",
            "turn_finished"
        ]
    );
    assert!(events.iter().map(|event| event.seq).eq(0..11));
}

#[tokio::test(start_paused = true)]
async fn a_denied_tool_is_reported_to_the_model() {
    let tools = ScriptedTools::new().with(tool("delete", false), Behaviour::Answers("gone"));
    let app = App::start([calls("delete", json!({})), says("I did not delete it.")], tools);
    let turn = app.send("clean up");
    answer(&turn, PermissionAnswer::Deny).await;
    assert_eq!(finish(&turn).await, TurnOutcome::Completed);
    let news = news(&app);
    let [(ToolOutcome::Denied, text)] = news.as_slice() else { panic!("{news:?}") };
    assert!(text.contains("did not allow `delete`"), "{text}");
    assert!(app.tools.calls().is_empty());
    let audit = app.store.audit(&AuditQuery::default()).unwrap();
    assert_eq!(audit.len(), 1);
    assert_eq!(audit[0].reason, "user: denied");
}

#[tokio::test(start_paused = true)]
async fn an_answer_holds_for_as_long_as_it_was_given() {
    let tools = || ScriptedTools::new().with(tool("write", false), Behaviour::Answers("written"));
    for (grant, asked_again) in [(Grant::Once, true), (Grant::Conversation, false), (Grant::Always, false)] {
        let script = [calls("write", json!({"n": 1})), calls("write", json!({"n": 2})), says("Done.")];
        let app = App::start(script, tools());
        let turn = app.send("write twice");
        answer(&turn, PermissionAnswer::Allow { grant }).await;
        if asked_again {
            let first = permission_request(&turn).await;
            let second = until(&turn, |kind| match kind {
                EventKind::PermissionRequested { call, .. } if call.id != first.id => Some(call.id.clone()),
                _ => None,
            })
            .await;
            turn.answer_permission(&second, PermissionAnswer::Deny).unwrap();
        }
        assert_eq!(finish(&turn).await, TurnOutcome::Completed);
        assert_eq!(app.tools.calls().len(), if asked_again { 1 } else { 2 }, "{grant:?}");
        assert_eq!(app.permissions.policy().rules.len(), usize::from(grant == Grant::Always));
    }
}

#[tokio::test(start_paused = true)]
async fn an_always_in_one_conversation_answers_the_question_in_another() {
    let tools = ScriptedTools::new().with(tool("write", false), Behaviour::Answers("written"));
    let app = App::start([calls("write", json!({})), calls("write", json!({})), says("a"), says("b")], tools);
    let mut elsewhere = app.input("there");
    elsewhere.conversation = app.store.create_conversation().unwrap();
    let (here, there) = (app.send("here"), app.turns.start(elsewhere).unwrap());
    permission_request(&there).await;
    answer(&here, PermissionAnswer::Allow { grant: Grant::Always }).await;
    assert_eq!(finish(&here).await, TurnOutcome::Completed);
    assert_eq!(finish(&there).await, TurnOutcome::Completed);
    assert_eq!(app.tools.calls().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_tool_is_news_that_names_the_near_one() {
    let tools = reading("notes__read_note", "text");
    let app = App::start([calls("read_notes", json!({})), says("Sorry.")], tools);
    assert_eq!(app.ask("go").await, TurnOutcome::Completed);
    let news = news(&app);
    let [(ToolOutcome::Failed, text)] = news.as_slice() else { panic!("{news:?}") };
    assert!(text.contains("no tool `read_notes`") && text.contains("`notes__read_note`"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn wrong_arguments_are_explained_and_nothing_runs() {
    let mut spec = tool("read", true);
    spec.input_schema =
        json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
    let tools = ScriptedTools::new().with(spec, Behaviour::Answers("text"));
    let app =
        App::start([calls("read", json!({"path": 5})), calls("read", json!({})), says("Sorry.")], tools);
    assert_eq!(app.ask("go").await, TurnOutcome::Completed);
    let texts: Vec<String> = app.results().iter().map(ToolResult::text).collect();
    assert!(texts[0].contains("/path: expected string, got number 5"), "{}", texts[0]);
    assert!(texts[1].contains("the required property \"path\""), "{}", texts[1]);
    assert!(app.tools.calls().is_empty());
}

#[tokio::test(start_paused = true)]
async fn broken_json_is_explained_and_no_arguments_are_an_empty_object() {
    let written = |text: &str| {
        let id = ToolCallId::from("x");
        vec![
            Beat::Delta(Delta::ToolCallStarted { index: 0, id, tool: "read".into(), provider_data: None }),
            Beat::Delta(Delta::ToolCallArguments { index: 0, fragment: text.to_owned() }),
            Beat::Delta(Delta::Finished(FinishReason::ToolCalls)),
        ]
    };
    let script = [written("{\"path\": \"a"), written("[1]"), written(""), written(" null "), says("Done.")];
    let app = App::start(script, reading("read", "text"));
    assert_eq!(app.ask("go").await, TurnOutcome::Completed);
    let outcomes: Vec<ToolOutcome> = app.results().iter().map(|result| result.outcome).collect();
    use ToolOutcome::{Failed, Succeeded};
    assert_eq!(outcomes, [Failed, Failed, Succeeded, Succeeded]);
    assert!(app.results()[1].text().contains("no JSON object"));
    assert!(app.tools.calls().iter().all(|record| record.call.arguments.is_empty()));
}

#[tokio::test(start_paused = true)]
async fn a_broken_schema_does_not_stop_the_call() {
    let mut spec = tool("read", true);
    spec.input_schema = json!({"type": "nonsense", "$ref": "https://example.com/elsewhere.json"});
    let tools = ScriptedTools::new().with(spec, Behaviour::Answers("text"));
    let app = App::start([calls("read", json!({})), says("Done.")], tools);
    let turn = app.send("go");
    let events = all_events(&turn).await;
    assert_eq!(app.tools.calls().len(), 1);
    let noticed =
        |kind: &EventKind| matches!(kind, EventKind::Notice { code, .. } if code == "broken_schema");
    assert!(events.iter().any(|event| noticed(&event.kind)));
}

#[tokio::test(start_paused = true)]
async fn reading_calls_run_side_by_side_and_keep_their_order() {
    let slow = |millis| Behaviour::Slow(Duration::from_millis(millis), "read");
    let tools = ScriptedTools::new().with(tool("a", true), slow(300)).with(tool("b", true), slow(100));
    let app = App::start([calls_all([("a", json!({})), ("b", json!({}))]), says("Done.")], tools);
    let events = all_events(&app.send("go")).await;
    assert_eq!(app.tools.calls()[1].beside, ["a".into()]);
    let told: Vec<&str> = events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::ToolFinished { result, .. } => Some(result.tool.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(told, ["b", "a"], "each is told when it is done");
    let stored: Vec<String> = app.results().iter().map(|result| result.tool.to_string()).collect();
    assert_eq!(stored, ["a", "b"], "stored in call order");
}

#[tokio::test(start_paused = true)]
async fn one_writing_call_makes_them_wait_for_each_other() {
    let slow = || Behaviour::Slow(Duration::from_millis(100), "ok");
    let tools = ScriptedTools::new().with(tool("read", true), slow()).with(tool("write", false), slow());
    let script = [calls_all([("read", json!({})), ("write", json!({})), ("read", json!({}))]), says("Done.")];
    let app = App::start(script, tools);
    let turn = app.send("go");
    answer(&turn, PermissionAnswer::Allow { grant: Grant::Once }).await;
    finish(&turn).await;
    let records = app.tools.calls();
    assert_eq!(records.len(), 3);
    assert!(records.iter().all(|record| record.beside.is_empty()), "{records:?}");
}

#[tokio::test(start_paused = true)]
async fn failing_crashing_and_lying_tools_are_news() {
    let tools = ScriptedTools::new()
        .with(tool("fails", true), Behaviour::Fails("no such note"))
        .with(tool("panics", true), Behaviour::Panics)
        .with(tool("lies", true), Behaviour::WrongId);
    let script =
        [calls_all([("fails", json!({})), ("panics", json!({})), ("lies", json!({}))]), says("Done.")];
    let app = App::start(script, tools);
    assert_eq!(app.ask("go").await, TurnOutcome::Completed);
    let results = app.results();
    let ends: Vec<(&str, ToolOutcome)> =
        results.iter().map(|result| (result.tool.as_str(), result.outcome)).collect();
    use ToolOutcome::{Failed, Succeeded};
    assert_eq!(ends, [("fails", Failed), ("panics", Failed), ("lies", Succeeded)]);
    assert!(results[1].text().contains("the tool panics"));
}

#[tokio::test(start_paused = true)]
async fn progress_never_falls_and_never_comes_late() {
    let steps = vec![0.0, 2.0, 1.0, f64::NAN, 2.0, 3.0];
    let tools = ScriptedTools::new().with(tool("slow", true), Behaviour::LateNews(steps));
    let app = App::start([calls("slow", json!({})), vec![Beat::Wait(Duration::from_secs(1))]], tools);
    let events = all_events(&app.send("go")).await;
    let progress: Vec<f64> = events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::ToolProgress { progress, .. } => Some(progress.done),
            _ => None,
        })
        .collect();
    assert_eq!(progress, [0.0, 2.0, 2.0, 3.0]);
}

#[tokio::test(start_paused = true)]
async fn ids_that_come_again_are_replaced() {
    let script = [calls("read", json!({})), calls("read", json!({})), says("Done.")];
    let app = App::start(script, reading("read", "text"));
    assert_eq!(app.ask("go").await, TurnOutcome::Completed);
    let ids: Vec<String> = app.results().iter().map(|result| result.call.to_string()).collect();
    assert_eq!(ids[0], "call_0", "a provider's id is echoed");
    assert_ne!(ids[1], "call_0", "but names one call only");
}

#[tokio::test(start_paused = true)]
async fn a_long_protocol_message_is_kept_whole_with_its_turn() {
    let long = json!({"id": 7, "result": {"text": "é".repeat(200_000)}});
    let news = CallNews::Wire(WireDirection::Received, long.clone());
    let tools = ScriptedTools::new().with(tool("read", true), Behaviour::Tells(news));
    let app = App::start([calls("read", json!({})), says("Done.")], tools);
    let events = all_events(&app.send("go")).await;
    let cut = events.iter().find_map(|event| match &event.kind {
        EventKind::ToolWire { message, .. } => Some(message.clone()),
        _ => None,
    });
    let cut = cut.unwrap();
    assert_eq!((&cut["cut"], cut["bytes"].as_u64()), (&json!(true), Some(long.to_string().len() as u64)));
    let full = MessageId::from(cut["full"].as_str().unwrap());
    assert_eq!(app.store.long_message(&full).unwrap(), Some(long));
    assert_eq!(app.store.long_message(&"nothing".into()).unwrap(), None);
}

/// Tools of which one is run by somebody else.
struct HandedOver(Arc<ScriptedTools>);

impl ToolProvider for HandedOver {
    fn tools(&self) -> Arc<[ToolSpec]> {
        self.0.tools()
    }

    fn hands_over(&self, tool: &ToolName) -> bool {
        tool.as_str() == "theirs"
    }

    fn call(&self, call: ToolCall, context: CallContext) -> BoxFuture<'static, ToolResult> {
        self.0.call(call, context)
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_somebody_else_runs_ends_the_turn_after_the_others_of_its_step() {
    let tools = ScriptedTools::new()
        .with(tool("theirs", false), Behaviour::Answers("never"))
        .with(tool("change", false), Behaviour::Answers("changed"));
    let app = App::start([calls_all([("theirs", json!({})), ("change", json!({}))]), says("never")], tools);
    let handed: Arc<dyn ToolProvider> = Arc::new(HandedOver(app.tools.clone()));
    let tools = Arc::new(ToolSet::new([handed]));
    let turn = app.turns.start(TurnInput { tools, ..app.input("go") }).unwrap();
    // Consent is asked for the other call only.
    assert_eq!(permission_request(&turn).await.tool.as_str(), "change");
    answer(&turn, PermissionAnswer::Allow { grant: Grant::Once }).await;
    assert_eq!(finish(&turn).await, TurnOutcome::Completed);
    assert_eq!(app.model.requests().len(), 1);
    let outcomes: Vec<ToolOutcome> = app.results().iter().map(|result| result.outcome).collect();
    assert_eq!(outcomes, [ToolOutcome::Cancelled, ToolOutcome::Succeeded]);
    assert_eq!(app.tools.calls().len(), 1);
    assert_eq!(app.store.audit(&AuditQuery::default()).unwrap().len(), 1);
}
