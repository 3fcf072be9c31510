//! Rough times: real threads, stops at bad moments, a disk that fails, a runtime that ends.

use lectern_core::testing::{Beat, Behaviour, ScriptedModel, ScriptedTools, calls, says, tool};
use lectern_core::{Delta, EventKind, Message, Store, ToolOutcome, TurnErrorCode, TurnOutcome};
use serde_json::json;

use crate::app::{App, all_events, finish, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_at_any_moment_ends_every_turn() {
    let apps: Vec<App> = (0..60)
        .map(|_| {
            let tools = ScriptedTools::new().with(tool("hangs", true), Behaviour::Hangs);
            App::start([calls("hangs", json!({}))], tools)
        })
        .collect();
    let turns: Vec<_> = apps.iter().map(|app| app.send("go")).collect();
    for (n, turn) in turns.iter().enumerate() {
        // Some are stopped before the call, some just as it starts, some while it runs.
        if n % 3 > 0 {
            until(turn, |kind| matches!(kind, EventKind::StepFinished { .. }).then_some(())).await;
        }
        if n % 3 > 1 {
            until(turn, |kind| matches!(kind, EventKind::ToolStarted { .. }).then_some(())).await;
        }
        turn.cancel();
    }
    for (app, turn) in apps.iter().zip(&turns) {
        assert_eq!(finish(turn).await, TurnOutcome::Cancelled);
        assert!(app.results().iter().all(|result| result.outcome == ToolOutcome::Cancelled));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_turns_side_by_side_keep_their_own_story() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("c.sqlite")).unwrap();
    let tools = || ScriptedTools::new().with(tool("read", true), Behaviour::LateNews(vec![1.0, 2.0]));
    let apps: Vec<App> = (0..12)
        .map(|_| {
            let mut app = App::start([calls("read", json!({})), says("Done.")], tools());
            app.store = store.clone();
            app.conversation = store.create_conversation().unwrap();
            app
        })
        .collect();
    let turns: Vec<_> = apps.iter().map(|app| app.send("go")).collect();
    for (app, turn) in apps.iter().zip(&turns) {
        let events = all_events(turn).await;
        assert!(events.iter().map(|event| event.seq).eq(0..events.len() as u64));
        assert!(events.iter().all(|event| event.conversation == app.conversation));
        assert_eq!(finish(turn).await, TurnOutcome::Completed);
        assert_eq!(app.messages().len(), 4);
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails_ends_the_turn_with_its_reason() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.sqlite");
    let tools = ScriptedTools::new().with(tool("write", false), Behaviour::Answers("ok"));
    let mut app = App::start([calls("write", json!({})), says("Done.")], tools);
    app.store = Store::open(&path).unwrap();
    app.conversation = app.store.create_conversation().unwrap();
    let turn = app.send("go");
    crate::app::permission_request(&turn).await;
    rusqlite::Connection::open(&path).unwrap().execute_batch("DROP TABLE audit").unwrap();
    crate::app::answer(&turn, lectern_core::PermissionAnswer::Allow { grant: lectern_core::Grant::Once })
        .await;
    let TurnOutcome::Failed { error } = finish(&turn).await else { panic!() };
    assert_eq!(error.code, TurnErrorCode::Store);
    assert!(app.tools.calls().is_empty(), "what can't be audited does not run");
    let ends = |kind: &EventKind| matches!(kind, EventKind::TurnFinished { .. });
    assert_eq!(turn.events().ready().iter().filter(|event| ends(&event.kind)).count(), 1);
}

#[test]
fn a_runtime_that_ends_ends_its_turns() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let reply = vec![
        Beat::Delta(Delta::Text("So far".to_owned())),
        Beat::Wait(std::time::Duration::from_secs(3_600)),
    ];
    let app = App::with_model(ScriptedModel::new([reply, says("Hi.")]), ScriptedTools::new());
    let turn = runtime.block_on(async {
        let turn = app.send("go");
        until(&turn, |kind| matches!(kind, EventKind::TextDelta { .. }).then_some(())).await;
        turn
    });
    drop(runtime);
    let again = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    again.block_on(async {
        let TurnOutcome::Failed { error } = finish(&turn).await else { panic!() };
        assert_eq!(error.code, TurnErrorCode::Interrupted);
        let Some(Message::Assistant(message)) = app.messages().pop() else { panic!() };
        assert_eq!((message.text(), message.incomplete), ("So far".to_owned(), true));
        assert_eq!(app.ask("again").await, TurnOutcome::Completed);
    });
}
