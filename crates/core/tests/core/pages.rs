//! Long conversations: read page by page, and in memory that does not follow their length.

use std::path::Path;
use std::process::Command;

use lectern_core::testing::{Behaviour, ScriptedModel, ScriptedTools, calls_all, says, tool};
use lectern_core::turn::SoFar;
use lectern_core::{ConversationId, Message, MessageId, Store};
use rusqlite::{Connection, params};
use serde_json::json;

use crate::app::App;

fn texts(messages: &[Message]) -> Vec<String> {
    let text = |message: &Message| match message {
        Message::User(user) => lectern_core::message::text_of(&user.parts),
        Message::Assistant(reply) => reply.text(),
        Message::Tool(result) => result.text(),
    };
    messages.iter().map(text).collect()
}

#[tokio::test(start_paused = true)]
async fn a_page_holds_whole_turns_and_says_what_stands_before_it() {
    let replies = [says("one"), calls_all([("test__a", json!({}))]), says("two"), says("three")];
    let app = App::start(replies, ScriptedTools::new().with(tool("a", true), Behaviour::Answers("done")));
    for question in ["1?", "2?", "3?"] {
        app.ask(question).await;
    }
    let page = |before: Option<&MessageId>, turns| app.store.page(&app.conversation, before, turns).unwrap();
    let (all, everything) = (page(None, 10), app.store.messages(&app.conversation).unwrap());
    assert_eq!((&all.messages, all.earlier), (&everything, 0));
    assert_eq!(all.turns, app.store.turns(&app.conversation).unwrap());

    let last = page(None, 1);
    assert_eq!((last.messages.len(), last.turns.len(), last.earlier), (2, 1, 2));
    let middle = page(Some(&last.messages[0].id), 1);
    assert_eq!(middle.messages.len(), 4, "question, call, result, answer");
    assert_eq!((middle.turns.len(), middle.earlier), (1, 1));
    let first = page(Some(&middle.messages[0].id), 1);
    assert_eq!((first.messages.len(), first.earlier), (2, 0));
    let whole: Vec<_> = [first.messages.clone(), middle.messages, last.messages].concat();
    assert_eq!(whole, everything);
    assert_eq!(page(Some(&first.messages[0].id), 5).messages, [], "nothing stands before the first");
    assert_eq!(page(Some(&"elsewhere".into()), 5).messages, []);
}

#[tokio::test(start_paused = true)]
async fn what_a_summary_stands_for_is_not_read_again() {
    let app = App::start([says("one"), says("two")], ScriptedTools::new());
    for question in ["1?", "2?"] {
        app.ask(question).await;
    }
    let so_far = || SoFar::of(&app.store, &app.conversation, &[]).unwrap();
    assert_eq!(texts(&so_far().messages), ["1?", "one", "2?", "two"]);
    assert_eq!(so_far().summary, None);
}

/// A conversation of so many turns, of which all but the last are summarised.
fn long_conversation(path: &Path, turns: usize) -> ConversationId {
    let store = Store::open(path).unwrap();
    let conversation = store.create_conversation().unwrap();
    drop(store);
    let mut connection = Connection::open(path).unwrap();
    let tx = connection.transaction().unwrap();
    let id = conversation.as_str();
    let words = "Words that a user wrote long ago. ".repeat(120);
    let mut parent: Option<String> = None;
    for turn in 0..turns {
        tx.execute(
            "INSERT INTO turns (id, conversation, started_at, finished, instance) VALUES (?1, ?2, ?3, 1, '')",
            params![format!("t{turn}"), id, 1_000 + i64::try_from(turn).unwrap()],
        )
        .unwrap();
        for (role, text) in [("user", &words), ("assistant", &words)] {
            let message = format!("{role}{turn}");
            let body = json!({ "role": role, "parts": [{ "type": "text", "text": text }] }).to_string();
            tx.execute(
                "INSERT INTO messages (id, conversation, parent, turn, at, body) VALUES (?1, ?2, ?3, ?4, 1, ?5)",
                params![message, id, parent, format!("t{turn}"), body],
            )
            .unwrap();
            parent = Some(message);
        }
    }
    tx.execute("UPDATE conversations SET leaf = ?2 WHERE id = ?1", params![id, parent]).unwrap();
    tx.execute(
        "INSERT INTO summaries (up_to, conversation, messages, body, at) VALUES (?1, ?2, ?3, 'A summary.', 1)",
        params![format!("assistant{}", turns - 2), id, i64::try_from(2 * (turns - 1)).unwrap()],
    )
    .unwrap();
    tx.commit().unwrap();
    conversation
}

/// Names the file in the process that is measured.
const MEASURED: &str = "LECTERN_TEST_MEASURED";

/// The most memory that a process held which shows the end of the conversation and has a question answered, in kB.
fn measured(path: &Path, conversation: &ConversationId) -> u64 {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "pages::memory_follows_the_page_and_not_the_conversation", "--nocapture"])
        .env(MEASURED, format!("{}\n{}", path.display(), conversation.as_str()))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let peak = said.lines().find_map(|line| line.split("peak:").nth(1)?.trim().parse().ok());
    peak.unwrap_or_else(|| panic!("no figure: {said}{}", String::from_utf8_lossy(&output.stderr)))
}

async fn shows_and_asks(path: &Path, conversation: ConversationId) {
    let mut app = App::with_model(ScriptedModel::new([says("Yes.")]), ScriptedTools::new());
    (app.store, app.conversation) = (Store::open(path).unwrap(), conversation);
    let page = app.store.page(&app.conversation, None, 20).unwrap();
    assert_eq!(page.messages.len(), 40);
    app.ask("Still there?").await;
    let request = app.model.requests().pop().unwrap();
    assert_eq!(request.messages.len(), 3, "the turn behind the summary, and the question");
    assert!(request.system.unwrap().contains("A summary."));
}

#[cfg(target_os = "linux")]
#[test]
fn memory_follows_the_page_and_not_the_conversation() {
    if let Ok(named) = std::env::var(MEASURED) {
        let (path, conversation) = named.split_once('\n').unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(shows_and_asks(Path::new(path), ConversationId(conversation.to_owned())));
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        println!("peak: {}", peak.trim().trim_end_matches(" kB"));
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let peak = |turns| {
        let path = folder.path().join(format!("{turns}.sqlite"));
        let conversation = long_conversation(&path, turns);
        measured(&path, &conversation)
    };
    let (short, long) = (peak(40), peak(4_000));
    // 33 MB of messages; SQLite's own cache of 2 MB is filled by the longer one only.
    assert!(long < short + 6_000, "{short} kB with 40 turns, {long} kB with 4,000");
}
