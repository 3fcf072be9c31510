//! Sessions of `lectern serve`: the real executable, killed in the middle; the real notes server in folders of sessions.

use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::sync::mpsc;

use serde_json::{Value, json};

use crate::lectern::Lectern;
use crate::served::Serving;

/// Sessions that are in the middle of an answer when the server is killed, or were, or will be.
const STREAMS: usize = 50;

impl Serving {
    fn call(&self, tool: &str, session: &str, arguments: &Value) -> (u16, Value) {
        let body = json!({"session_id": session, "arguments": arguments});
        self.json("POST", &format!("/api/tools/{tool}"), Some(&body))
    }
}

/// What a client got of an answer before its connection was gone.
struct Got {
    session: String,
    question: String,
    text: String,
    begun: bool,
    done: bool,
}

fn question(number: usize) -> String {
    format!("Hello number {number}, are you there?")
}

/// Reads a stream of frames to its end, whatever that is.
fn follow(stream: TcpStream, number: usize, told: &mpsc::Sender<()>) -> Got {
    let (session, question) = (format!("s{number}"), question(number));
    let mut got = Got { session, question, text: String::new(), begun: false, done: false };
    for line in BufReader::new(stream).lines().map_while(Result::ok) {
        let Some(data) = line.strip_prefix("data: ") else { continue };
        let Ok(frame) = serde_json::from_str::<Value>(data) else { continue };
        got.begun = true;
        if frame["type"] == "content" {
            got.text.push_str(frame["delta"]["content"].as_str().unwrap());
        }
        if frame["type"] == "done" {
            got.done = true;
            let _ = told.send(());
        }
    }
    got
}

/// The texts of a session's messages, in their order.
fn texts(session: &Value) -> Vec<String> {
    let text = |message: &Value| {
        let parts = message["parts"].as_array().cloned().unwrap_or_default();
        parts.iter().filter_map(|part| part["text"].as_str()).collect()
    };
    session["messages"].as_array().unwrap().iter().map(text).collect()
}

#[test]
fn a_server_that_is_killed_in_the_middle_of_fifty_answers_loses_no_finished_message() {
    let lectern = Lectern::new();
    let serving = Serving::start(&lectern, &[]);
    let (tell, told) = mpsc::channel();
    let followers: Vec<_> = (0..STREAMS)
        .map(|number| {
            let body = json!({
                "messages": [{"role": "user", "content": question(number)}],
                "session_id": format!("s{number}"), "stream": true, "tools": [], "max_tokens": 40,
            });
            let stream = serving.send("POST", "/api/chat/completions", &serving.key, Some(&body));
            let tell = tell.clone();
            std::thread::spawn(move || follow(stream, number, &tell))
        })
        .collect();
    // Some have come to their end, and the others are on their way or wait.
    for _ in 0..10 {
        told.recv().unwrap();
    }
    drop(serving);
    let got: Vec<Got> = followers.into_iter().map(|follower| follower.join().unwrap()).collect();
    assert!(got.iter().filter(|got| got.done).count() >= 10);

    let serving = Serving::start(&lectern, &[]);
    for got in &got {
        let (status, session) = serving.json("GET", &format!("/api/sessions/{}", got.session), None);
        if !got.begun && status == 404 {
            // It was not taken yet.
            continue;
        }
        assert_eq!(status, 200, "{}: {session}", got.session);
        let texts = texts(&session);
        if got.begun {
            assert_eq!(texts[0], got.question, "{session}");
        }
        if got.done {
            assert_eq!(texts.last(), Some(&got.text), "{session}");
            assert_eq!(texts.len(), 2);
        }
    }
    // What was in the middle can be gone on with.
    let cut = got.iter().find(|got| !got.done).map_or("s0", |got| &got.session);
    let body = json!({"messages": [{"role": "user", "content": "And now?"}], "session_id": cut, "tools": [],
        "max_tokens": 5});
    let (status, answer) = serving.json("POST", "/api/chat/completions", Some(&body));
    assert_eq!(status, 200, "{answer}");
    assert_eq!(answer["tool_execution"]["session_id"], cut);
}

#[test]
fn sessions_write_notes_into_folders_of_their_own_and_nowhere_else() {
    let lectern = Lectern::new();
    let servers = json!({"mcpServers": {
        "notes": {"command": env!("CARGO_BIN_EXE_lectern"), "args": ["vault", "${LECTERN_WORKSPACE}"]},
    }});
    let file = lectern.write("servers.json", &servers.to_string());
    let args = ["--mcp-config", file.to_str().unwrap(), "--allow", "all"];
    let serving = Serving::start(&lectern, &args);
    let secret = json!({"path": "secret.md", "content": "The word is walnut."});
    let (status, said) = serving.call("notes__create_note", "mine", &secret);
    assert_eq!(status, 200, "{said}");
    let workspace = std::path::PathBuf::from(said["workspace_path"].as_str().unwrap());
    assert!(workspace.join("secret.md").is_file());
    let listed = |session: &str| {
        let (status, said) = serving.call("notes__list_notes", session, &json!({}));
        assert_eq!(status, 200, "{said}");
        said["result"]["content"].as_str().unwrap().to_owned()
    };
    assert!(listed("mine").contains("secret.md"));
    assert!(!listed("theirs").contains("secret.md"));
    // Who knows the way does not get there either.
    let name = workspace.file_name().unwrap().to_str().unwrap();
    let ways = [
        format!("../{name}/secret.md"),
        workspace.join("secret.md").display().to_string(),
        "..\\secret.md".to_owned(),
        "../../settings.json".to_owned(),
    ];
    for way in ways {
        let (status, said) = serving.call("notes__read_note", "theirs", &json!({"path": way}));
        assert_eq!((status, &said["error"]["code"]), (422, &json!("tool_failed")), "{way}: {said}");
        let (status, said) =
            serving.call("notes__create_note", "theirs", &json!({"path": way, "content": "x"}));
        assert_eq!((status, &said["error"]["code"]), (422, &json!("tool_failed")), "{way}: {said}");
    }
    // A link out of the folder leads nowhere.
    let (_, theirs) = serving.call("notes__list_notes", "theirs", &json!({}));
    let theirs = std::path::PathBuf::from(theirs["workspace_path"].as_str().unwrap());
    std::os::unix::fs::symlink(&workspace, theirs.join("link")).unwrap();
    let (status, said) = serving.call("notes__read_note", "theirs", &json!({"path": "link/secret.md"}));
    assert_eq!((status, &said["error"]["code"]), (422, &json!("tool_failed")), "{said}");
    assert!(!said.to_string().contains("walnut"));
    assert_eq!(std::fs::read_to_string(workspace.join("secret.md")).unwrap().matches("walnut").count(), 1);
}
