//! Images of messages: stored once, whole for the model and for every reader, gone with their conversation.

use lectern_core::testing::{ScriptedModel, ScriptedTools, says};
use lectern_core::{Blob, ChatRequest, EventKind, Message, Part, Store, UserMessage};
use rusqlite::Connection;

use crate::app::{App, finish};

/// Larger than a page of the file; no real picture, the store doesn't look.
fn picture() -> Blob {
    Blob::of("image/png", &(0..60_000_u32).map(|place| (place % 251) as u8).collect::<Vec<_>>())
}

fn with(text: &str, blob: Blob) -> UserMessage {
    UserMessage { parts: vec![Part::Image(blob), Part::Text { text: text.to_owned() }], context: None }
}

fn images_of(request: &ChatRequest) -> Vec<Blob> {
    let users = request.messages.iter().filter_map(|message| match message {
        Message::User(user) => Some(user),
        Message::Assistant(_) | Message::Tool(_) => None,
    });
    users.flat_map(UserMessage::images).cloned().collect()
}

#[tokio::test(start_paused = true)]
async fn an_image_is_stored_once_and_read_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.sqlite");
    // It counts the bytes of an image as a text.
    let script = [says("A cat."), says("Still a cat."), says("Yes.")];
    let model = ScriptedModel::new(script).with_context(1_000_000);
    let mut app = App::with_model(model, ScriptedTools::new());
    app.store = Store::open(&path).unwrap();
    app.conversation = app.store.create_conversation().unwrap();
    for text in ["What is this?", "And now?"] {
        let message = with(text, picture());
        let turn = app.turns.start(lectern_core::TurnInput { message, ..app.input("") }).unwrap();
        finish(&turn).await;
    }
    app.ask("Sure?").await;
    let seen: Vec<_> = app.model.requests().iter().map(images_of).collect();
    assert_eq!(seen, [vec![picture()], vec![picture(), picture()], vec![picture(), picture()]]);

    let (id, messages) = (app.conversation.clone(), app.messages());
    drop(app);
    let store = Store::open(&path).unwrap();
    assert_eq!(store.conversation(&id).unwrap().title, "What is this?");
    let again: Vec<_> = store.messages(&id).unwrap().into_iter().map(|stored| stored.message).collect();
    assert_eq!(again, messages);
    let EventKind::TurnStarted { message, .. } = &store.turns(&id).unwrap()[1].events[0].kind else {
        panic!()
    };
    assert_eq!(*message, with("And now?", picture()));

    let connection = Connection::open(&path).unwrap();
    let count = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(count("SELECT sum(length(bytes)) FROM images"), 60_000, "once for both messages and events");
    let longest =
        "SELECT max(length(body)) FROM (SELECT body FROM messages UNION ALL SELECT body FROM events)";
    assert!(count(longest) < 2_000);
    connection.pragma_update(None, "foreign_keys", true).unwrap();
    connection.execute("DELETE FROM conversations", []).unwrap();
    assert_eq!(count("SELECT count(*) FROM images"), 0);
}

#[tokio::test(start_paused = true)]
async fn an_image_that_is_none_and_one_of_an_older_version_are_read_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.sqlite");
    let mut app = App::start([says("Hm.")], ScriptedTools::new());
    app.store = Store::open(&path).unwrap();
    app.conversation = app.store.create_conversation().unwrap();
    let broken = Blob { mime: "image/png".to_owned(), base64: "no base64!".to_owned() };
    let message = with("Look", broken.clone());
    finish(&app.turns.start(lectern_core::TurnInput { message, ..app.input("") }).unwrap()).await;
    assert_eq!(app.messages()[0], Message::User(with("Look", broken)));

    // As it was stored before images had a table of their own.
    let body = serde_json::to_string(&Message::User(with("Look", picture()))).unwrap();
    let connection = Connection::open(&path).unwrap();
    connection.execute("UPDATE messages SET body = ?1 WHERE parent IS NULL", [body]).unwrap();
    assert_eq!(app.messages()[0], Message::User(with("Look", picture())));
}
