//! The store: what it keeps, what it refuses, and what it repairs after a crash.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::app::{App, finish, until};
use lectern_core::testing::{Beat, Behaviour, ScriptedModel, ScriptedTools, calls_all, says, tool};
use lectern_core::{
    Delta, EventKind, FinishReason, Message, Store, StoreError, ToolOutcome, TurnErrorCode, TurnOutcome,
};
use rusqlite::Connection;
use serde_json::json;

fn app_on(path: &Path, model: ScriptedModel, tools: ScriptedTools) -> App {
    let mut app = App::with_model(model, tools);
    app.store = Store::open(path).unwrap();
    app.conversation = app.store.create_conversation().unwrap();
    app
}

fn talk(path: &Path) -> App {
    app_on(path, ScriptedModel::new([says("One."), says("Two.")]), ScriptedTools::new())
}

#[tokio::test(start_paused = true)]
async fn what_was_said_is_there_after_reopening() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.sqlite");
    let app = talk(&path);
    app.ask("# A question\nwith two lines").await;
    let (id, messages) = (app.conversation.clone(), app.messages());
    let turns = app.store.turns(&id).unwrap();
    drop(app);

    let store = Store::open(&path).unwrap();
    let list = store.conversations().unwrap();
    assert_eq!((list.len(), list[0].title.as_str()), (1, "A question"));
    let again: Vec<Message> = store.messages(&id).unwrap().into_iter().map(|stored| stored.message).collect();
    assert_eq!(again, messages);
    assert_eq!(store.turns(&id).unwrap(), turns);
    let kinds: Vec<_> = turns[0].events.iter().map(|event| std::mem::discriminant(&event.kind)).collect();
    assert_eq!(kinds.len(), 4, "started, step started, step finished, finished; no deltas");
}

#[tokio::test(start_paused = true)]
async fn titles_are_short_and_cut_between_words() {
    let long_words =
        "Why does the sourdough in my grandmother's kitchen always rise so much better than mine?";
    for (text, title) in [
        ("  \n\n> **Hello**  there\t\u{7}friend\nmore", "**Hello** there friend"),
        ("## - C# or C++?", "C# or C++?"),
        ("-5 degrees", "-5 degrees"),
        (long_words, "Why does the sourdough in my grandmother's kitchen always…"),
        (&"字".repeat(80), &format!("{}…", "字".repeat(59))),
        (&"x".repeat(60), &"x".repeat(60)),
        ("", ""),
    ] {
        let app = App::start([says("Ok.")], ScriptedTools::new());
        app.ask(text).await;
        assert_eq!(app.store.conversation(&app.conversation).unwrap().title, title);
    }
}

#[tokio::test(start_paused = true)]
async fn the_last_changed_comes_first_and_the_empty_ones_do_not_show() {
    let app = App::start([says("a"), says("b"), says("c")], ScriptedTools::new());
    app.ask("first").await;
    let first = app.conversation.clone();
    let mut second = app.input("second");
    second.conversation = app.store.create_conversation().unwrap();
    std::thread::sleep(Duration::from_millis(5));
    finish(&app.turns.start(second).unwrap()).await;
    app.store.create_conversation().unwrap();
    let titles =
        || -> Vec<String> { app.store.conversations().unwrap().into_iter().map(|line| line.title).collect() };
    assert_eq!(titles(), ["second", "first"]);
    std::thread::sleep(Duration::from_millis(5));
    app.ask("more").await;
    assert_eq!(titles(), ["first", "second"]);
    app.store.rename(&first, " A\nnew  name ").unwrap();
    assert_eq!(titles(), ["A new name", "second"]);
}

#[tokio::test(start_paused = true)]
async fn a_deleted_conversation_can_come_back_until_it_is_purged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.sqlite");
    let app = talk(&path);
    app.ask("hello").await;
    let (store, id) = (app.store.clone(), app.conversation.clone());

    store.delete(&id).unwrap();
    assert_eq!(store.conversations().unwrap(), []);
    assert_eq!(store.deleted_conversations().unwrap(), std::slice::from_ref(&id));
    assert!(matches!(store.conversation(&id), Err(StoreError::UnknownConversation(_))));
    assert!(app.turns.start(app.input("still there?")).is_err());
    store.restore(&id).unwrap();
    assert_eq!(store.deleted_conversations().unwrap(), []);
    assert_eq!(store.messages(&id).unwrap().len(), 2);
    assert!(matches!(store.delete(&"none".into()), Err(StoreError::UnknownConversation(_))));

    store.delete(&id).unwrap();
    drop((app, store));
    let days = |days: i64| {
        let connection = Connection::open(&path).unwrap();
        let step = days * 24 * 3_600_000;
        connection.execute("UPDATE conversations SET deleted_at = deleted_at - ?1", [step]).unwrap();
    };
    days(29);
    Store::open(&path).unwrap().restore(&id).unwrap();
    Store::open(&path).unwrap().delete(&id).unwrap();
    days(31);
    assert!(Store::open(&path).unwrap().restore(&id).is_err());
    let connection = Connection::open(&path).unwrap();
    for table in ["messages", "turns", "events"] {
        let left: u32 =
            connection.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap();
        assert_eq!(left, 0, "{table}");
    }
}

#[test]
fn files_that_are_not_ours_are_named_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.sqlite");
    std::fs::write(&path, "not a database, but long enough to look like one".repeat(100)).unwrap();
    let before = std::fs::read(&path).unwrap();
    let error = Store::open(&path).err().unwrap();
    assert!(matches!(error, StoreError::Damaged { .. }), "{error:?}");
    assert!(error.to_string().contains("c.sqlite") && error.hint().is_some());
    assert_eq!(std::fs::read(&path).unwrap(), before);

    let missing = folder.path().join("no/such/folder/c.sqlite");
    assert!(matches!(Store::open(&missing), Err(StoreError::Open { .. })));
    assert!(matches!(Store::open(folder.path()), Err(StoreError::Open { .. })));

    let newer = folder.path().join("newer.sqlite");
    drop(Store::open(&newer).unwrap());
    Connection::open(&newer).unwrap().pragma_update(None, "user_version", 99).unwrap();
    let error = Store::open(&newer).err().unwrap();
    assert!(matches!(error, StoreError::Newer { found: 99, .. }), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn a_damage_in_the_middle_is_an_error_not_a_crash() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.sqlite");
    let app = talk(&path);
    app.ask("hello").await;
    drop(app);
    let mut bytes = std::fs::read(&path).unwrap();
    let end = bytes.len();
    bytes[4096..end].fill(0x5a);
    std::fs::write(&path, bytes).unwrap();
    match Store::open(&path) {
        Err(StoreError::Damaged { .. }) => {}
        Err(error) => panic!("{error:?}"),
        Ok(store) => assert!(store.conversations().is_err()),
    }
}

/// Lets a turn run until `stop`, then takes the file as a crash would leave it.
async fn crash_when(app: &App, stop: impl Fn(&EventKind) -> bool, from: &Path, to: &Path) {
    let turn = app.send("go");
    until(&turn, |kind| stop(kind).then_some(())).await;
    let connection = Connection::open(from).unwrap();
    connection.execute("VACUUM INTO ?1", [to.to_str().unwrap()]).unwrap();
    turn.cancel();
    finish(&turn).await;
}

fn interrupted(store: &Store, app: &App) -> Vec<EventKind> {
    let turns = store.turns(&app.conversation).unwrap();
    let events = &turns.last().unwrap().events;
    let EventKind::TurnFinished { outcome: TurnOutcome::Failed { error } } = &events.last().unwrap().kind
    else {
        panic!("{events:?}")
    };
    assert_eq!(error.code, TurnErrorCode::Interrupted);
    assert!(events.windows(2).all(|pair| pair[0].seq < pair[1].seq));
    events.iter().map(|event| event.kind.clone()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_crash_while_the_model_speaks_loses_at_most_a_second() {
    let folder = tempfile::tempdir().unwrap();
    let (path, copy) = (folder.path().join("c.sqlite"), folder.path().join("copy.sqlite"));
    let mut reply: Vec<Beat> = Vec::new();
    for word in ["one ", "two ", "three ", "four "] {
        reply.push(Beat::Delta(Delta::Text(word.to_owned())));
        reply.push(Beat::Wait(Duration::from_millis(700)));
    }
    let app = app_on(&path, ScriptedModel::new([reply]), ScriptedTools::new());
    let fourth = |kind: &EventKind| matches!(kind, EventKind::TextDelta { text } if text == "four ");
    crash_when(&app, fourth, &path, &copy).await;

    let store = Store::open(&copy).unwrap();
    let Some(Message::Assistant(message)) = store.history(&app.conversation).unwrap().pop() else { panic!() };
    assert!(message.incomplete);
    assert!(message.text().starts_with("one two three"), "{}", message.text());
    let kinds = interrupted(&store, &app);
    let EventKind::StepFinished { finish, message: told, .. } = &kinds[kinds.len() - 2] else { panic!() };
    assert_eq!((finish, told), (&FinishReason::Failed, &message));
}

#[tokio::test(start_paused = true)]
async fn a_crash_between_calls_keeps_what_was_done_and_settles_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    let (path, copy) = (folder.path().join("c.sqlite"), folder.path().join("copy.sqlite"));
    let slow = |secs| Behaviour::Slow(Duration::from_secs(secs), "slow");
    let tools = ScriptedTools::new()
        .with(tool("a", true), slow(50))
        .with(tool("b", true), Behaviour::Answers("b is done"))
        .with(tool("c", true), slow(60));
    let script = [calls_all([("a", json!({})), ("b", json!({})), ("c", json!({}))])];
    let app = app_on(&path, ScriptedModel::new(script), tools);
    let done = |kind: &EventKind| matches!(kind, EventKind::ToolFinished { .. });
    crash_when(&app, done, &path, &copy).await;

    let store = Store::open(&copy).unwrap();
    let stored: Vec<Message> =
        store.messages(&app.conversation).unwrap().into_iter().map(|stored| stored.message).collect();
    assert_eq!(stored, store.history(&app.conversation).unwrap(), "repaired in the file, not only when read");
    let results: Vec<(String, ToolOutcome)> = stored
        .iter()
        .filter_map(|message| match message {
            Message::Tool(result) => Some((result.tool.to_string(), result.outcome)),
            _ => None,
        })
        .collect();
    use ToolOutcome::{Cancelled, Succeeded};
    let expected = [("a", Cancelled), ("b", Succeeded), ("c", Cancelled)];
    assert_eq!(results, expected.map(|(tool, outcome)| (tool.to_owned(), outcome)));
    interrupted(&store, &app);
    assert_eq!(Store::open(&copy).unwrap().messages(&app.conversation).unwrap().len(), stored.len());
}

#[tokio::test(start_paused = true)]
async fn the_turn_of_another_open_store_is_not_taken_for_dead() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.sqlite");
    let script = [vec![Beat::Wait(Duration::from_secs(9))], says("Two.")];
    let app = app_on(&path, ScriptedModel::new(script), ScriptedTools::new());
    let turn = app.send("one");
    let other = Store::open(&path).unwrap();
    assert_eq!(other.turns(&app.conversation).unwrap()[0].events.len(), 1, "not repaired");
    let mut there = app.input("two");
    there.store = other.clone();
    let elsewhere = lectern_core::Turns::default();
    assert!(elsewhere.start(there.clone()).is_err(), "and not joined");
    turn.cancel();
    finish(&turn).await;
    assert_eq!(finish(&elsewhere.start(there).unwrap()).await, TurnOutcome::Completed);
}

#[tokio::test(start_paused = true)]
async fn a_dead_turn_does_not_block_its_conversation() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.sqlite");
    let app = talk(&path);
    app.ask("one").await;
    // As if another process had died since we opened the file.
    let connection = Connection::open(&path).unwrap();
    connection.execute("UPDATE turns SET finished = 0, instance = 'dead'", []).unwrap();
    assert_eq!(app.ask("two").await, TurnOutcome::Completed);
    assert_eq!(app.store.turns(&app.conversation).unwrap().len(), 2);
}

#[test]
fn two_stores_on_one_file_wait_for_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let path = Arc::new(folder.path().join("c.sqlite"));
    let writers: Vec<_> = (0..4)
        .map(|_| {
            let path = path.clone();
            std::thread::spawn(move || {
                let store = Store::open(&path).unwrap();
                for _ in 0..20 {
                    store.create_conversation().unwrap();
                }
            })
        })
        .collect();
    writers.into_iter().for_each(|writer| writer.join().unwrap());
    let connection = Connection::open(&*path).unwrap();
    let made: u32 = connection.query_row("SELECT count(*) FROM conversations", [], |row| row.get(0)).unwrap();
    assert_eq!(made, 80);
    let check: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(check, "ok");
}
