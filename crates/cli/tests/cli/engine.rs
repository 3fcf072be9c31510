//! What the window asks of the engine, asked without a window.

use std::fs;
use std::path::Path;
use std::time::Duration;

use lectern_app::view::{
    AppNews, DraftTransport, Problem, SendReceipt, SendRequest, ServerDraft, ServerState,
};
use lectern_app::{Engine, EngineOptions, Home, News};
use lectern_core::{ConversationId, Event, EventKind, ServerId};
use serde_json::Value;
use tempfile::TempDir;

use crate::lectern::QUESTION;

/// Only a broken engine reaches it.
const PATIENCE: Duration = Duration::from_secs(120);

pub struct Opened {
    pub engine: Engine,
    pub folder: TempDir,
}

impl Opened {
    pub fn fresh() -> Self {
        Self::within(tempfile::tempdir().unwrap(), EngineOptions::default())
    }

    /// In this folder, which may have something in it already.
    pub fn within(folder: TempDir, options: EngineOptions) -> Self {
        let home = Home::open(Some(&folder.path().join("home"))).unwrap();
        let executable = Some(env!("CARGO_BIN_EXE_lectern").into());
        let engine = Engine::open(home, EngineOptions { executable, ..options }).unwrap();
        Self { engine, folder }
    }

    fn vault(&self, name: &str, notes: &[(&str, &str)]) -> std::path::PathBuf {
        let vault = self.folder.path().join(name);
        for (path, text) in notes {
            fs::create_dir_all(vault.join(path).parent().unwrap()).unwrap();
            fs::write(vault.join(path), text).unwrap();
        }
        vault.canonicalize().unwrap()
    }

    async fn send(&self, conversation: Option<ConversationId>, text: &str) -> Result<SendReceipt, Problem> {
        self.engine.send(SendRequest { conversation, text: text.to_owned(), ..SendRequest::default() }).await
    }

    pub async fn events(&self, receipt: &SendReceipt, after_seq: i64) -> Vec<Event> {
        let mut events = self.engine.attach_turn(&receipt.turn, after_seq).unwrap();
        let mut all = Vec::new();
        while let Some(event) = events.next().await {
            all.push(event);
        }
        all
    }
}

/// Reads news until one is such.
async fn until<T>(news: &mut News, such: impl Fn(AppNews) -> Option<T>) -> T {
    let found = async {
        loop {
            if let Some(found) = such(news.next().await.expect("the engine lives")) {
                return found;
            }
        }
    };
    tokio::time::timeout(PATIENCE, found).await.expect("no such news")
}

fn ready(id: &'static str) -> impl Fn(AppNews) -> Option<()> {
    move |news| match news {
        AppNews::ServerChanged { server } if server.id.as_str() == id => {
            (server.state == ServerState::Ready).then_some(())
        }
        _ => None,
    }
}

fn vaults(news: AppNews) -> Option<usize> {
    match news {
        AppNews::VaultsChanged { vaults } => Some(vaults.len()),
        _ => None,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn vaults_come_and_go_while_the_engine_runs() {
    let opened = Opened::fresh();
    let engine = &opened.engine;
    let mut news = engine.subscribe();
    let folder = opened.vault("My Notes", &[("Deep/Clock.md", "# Clock\n\nIt loses four minutes.\n")]);
    let view = engine.add_vault(&folder).await.unwrap();
    assert_eq!((view.server.as_str(), view.sample), ("my-notes", false));
    assert_eq!(until(&mut news, vaults).await, 2);
    engine.servers_ready().await;
    let note = engine.read_note(&view.server, "Deep/Clock.md").await.unwrap();
    assert_eq!(note.text, "# Clock\n\nIt loses four minutes.\n");
    let outside = engine.read_note(&view.server, "../home/settings.json").await.unwrap_err();
    assert_eq!(outside.code, "no_note");

    let sample = engine.home().sample_vault();
    engine.remove_vault(&sample).await.unwrap();
    assert_eq!(until(&mut news, vaults).await, 1);
    let left: Vec<_> = engine.servers().into_iter().map(|server| server.id.0).collect();
    assert_eq!(left, ["my-notes"]);
    assert!(sample.exists(), "the notes stay");
    assert_eq!(engine.remove_vault(Path::new("/nowhere")).await.unwrap_err().code, "unknown_vault");
    engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_note_is_read_whole() {
    let opened = Opened::fresh();
    let text: String =
        (0..9_000).map(|n| format!("Line {n} of a note that is longer than one answer.\n")).collect();
    let folder = opened.vault("long", &[("Long.md", &text)]);
    let view = opened.engine.add_vault(&folder).await.unwrap();
    opened.engine.servers_ready().await;
    let note = opened.engine.read_note(&view.server, "Long.md").await.unwrap();
    assert_eq!(note.text.len(), text.len());
    assert!(note.text == text);
    opened.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_can_be_followed_from_any_event_and_is_stored() {
    let opened = Opened::fresh();
    let engine = &opened.engine;
    let receipt = opened.send(None, QUESTION).await.unwrap();
    let running = opened.send(Some(receipt.conversation.clone()), "and now?").await;
    assert_eq!(running.unwrap_err().code, "turn_running");
    let all = opened.events(&receipt, -1).await;
    assert_eq!(opened.events(&receipt, 4).await, all[5..]);

    let view = engine.conversation(&receipt.conversation).unwrap();
    assert_eq!(view.turns[0].events.last(), all.last());
    assert!(view.messages.len() >= 4, "{:#?}", view.messages);
    let path = opened.folder.path().join("trace.json");
    engine.export_trace(&receipt.conversation, &path).unwrap();
    let trace: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    assert!(trace.to_string().contains(QUESTION));
    assert_eq!(trace["decisions"][0]["allowed"], true, "{}", trace["decisions"]);
    engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conversations_are_renamed_hidden_and_brought_back() {
    let opened = Opened::fresh();
    let engine = &opened.engine;
    let receipt = opened.send(None, "hello").await.unwrap();
    opened.events(&receipt, -1).await;
    let id = receipt.conversation;
    engine.rename_conversation(&id, "  The\nfirst one ").unwrap();
    assert_eq!(engine.conversations().unwrap()[0].title, "The first one");
    assert_eq!(engine.rename_conversation(&id, " \n").unwrap_err().code, "empty_title");
    engine.delete_conversation(&id).unwrap();
    assert!(engine.conversations().unwrap().is_empty());
    engine.restore_conversation(&id).unwrap();
    assert_eq!(engine.conversations().unwrap()[0].id, id);
    assert!(!engine.conversations().unwrap()[0].running);
    engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_is_started_anew_on_request() {
    let opened = Opened::fresh();
    let mut news = opened.engine.subscribe();
    until(&mut news, ready("notes")).await;
    opened.engine.restart_server(&"notes".into()).unwrap();
    let starting = |news| match news {
        AppNews::ServerChanged { server } => {
            matches!(server.state, ServerState::Starting { .. }).then_some(())
        }
        _ => None,
    };
    until(&mut news, starting).await;
    until(&mut news, ready("notes")).await;
    assert_eq!(opened.engine.restart_server(&ServerId::from("nobody")).unwrap_err().code, "unknown_server");
    assert!(opened.engine.server_log(&"notes".into(), 0).is_ok());
    opened.engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ending_stops_a_running_turn_and_stores_it() {
    let opened = Opened::fresh();
    let receipt = opened.send(None, QUESTION).await.unwrap();
    opened.engine.shutdown().await;
    let view = opened.engine.conversation(&receipt.conversation).unwrap();
    let last = view.turns[0].events.last().map(|event| &event.kind);
    assert!(matches!(last, Some(EventKind::TurnFinished { .. })), "{last:?}");
}

fn servers(news: AppNews) -> Option<Vec<lectern_app::view::ServerView>> {
    match news {
        AppNews::ServersChanged { servers } => Some(servers),
        _ => None,
    }
}

/// A server that can't be found, as a form gives it.
fn draft(name: &str) -> ServerDraft {
    let command = "no-such-program-here".to_owned();
    ServerDraft {
        id: None,
        name: name.to_owned(),
        transport: DraftTransport::Stdio { command, args: Vec::new(), env: Vec::new(), cwd: None },
        enabled: true,
        timeout_s: Some(7),
        trusted: false,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_are_saved_switched_off_removed_and_brought_back() {
    let opened = Opened::fresh();
    let engine = &opened.engine;
    let ids = || engine.servers().into_iter().map(|server| server.id.0).collect::<Vec<_>>();
    for name in ["one", "two", "three"] {
        engine.save_server(draft(name)).await.unwrap();
    }
    assert_eq!(engine.save_server(draft("two")).await.unwrap_err().code, "server_exists");
    assert_eq!(engine.save_server(draft("notes")).await.unwrap_err().code, "server_exists");
    engine.servers_ready().await;
    let two = ServerId::from("two");
    assert!(matches!(engine.server(&two).unwrap().state, ServerState::Failed { .. }), "it was started");
    engine.set_server_enabled(&two, false).await.unwrap();
    let off = engine.server(&two).unwrap();
    assert_eq!((off.enabled, off.timeout_s), (false, Some(7)));
    assert!(matches!(off.state, ServerState::Stopped), "{:?}", off.state);

    let token = engine.remove_server(&two).await.unwrap();
    assert_eq!(ids(), ["notes", "one", "three"]);
    assert_eq!(engine.remove_server(&two).await.unwrap_err().code, "unknown_server");
    assert_eq!(engine.remove_server(&"notes".into()).await.unwrap_err().code, "built_in_server");
    let back = engine.restore_server(&token).await.unwrap();
    assert!(!back.enabled, "as it was");
    assert_eq!(engine.restore_server(&token).await.unwrap_err().code, "nothing_to_undo");
    let text = fs::read_to_string(engine.home().settings()).unwrap();
    let settings: Value = serde_json::from_str(&text).unwrap();
    let kept: Vec<&String> = settings["mcpServers"].as_object().unwrap().keys().collect();
    assert_eq!(kept, ["one", "two", "three"], "at its old place");

    let mut changed = draft("two");
    changed.id = Some(two.clone());
    changed.enabled = true;
    changed.transport =
        DraftTransport::Http { url: Some("http://127.0.0.1:9/mcp".into()), headers: Vec::new() };
    assert_eq!(engine.save_server(changed).await.unwrap().command, "http://127.0.0.1:9/mcp");
    engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_another_process_changes_applies_without_a_restart() {
    let opened = Opened::fresh();
    let engine = &opened.engine;
    let mut news = engine.subscribe();
    let home = engine.home().path().to_owned();
    let lectern = async |args: &[&str]| {
        let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_lectern"));
        command.args(args).env("LECTERN_HOME", &home).env("LECTERN_KEYRING", "off");
        let output = command.output().await.unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    let id = ServerId::from("x");
    lectern(&["mcp", "add", "x", "--", "no-such-program-here"]).await;
    let there = |news| servers(news).filter(|servers| servers.iter().any(|server| server.id == id));
    until(&mut news, there).await;
    engine.servers_ready().await;
    let ServerState::Failed { problem } = engine.server(&id).unwrap().state else {
        panic!("it was not started")
    };
    assert_eq!(problem.code, "server_command_not_found");
    lectern(&["mcp", "remove", "x"]).await;
    let gone = |news| servers(news).filter(|servers| servers.iter().all(|server| server.id != id));
    until(&mut news, gone).await;
    engine.shutdown().await;
}
