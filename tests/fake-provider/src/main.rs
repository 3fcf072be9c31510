//! `lectern-fake-provider [SCRIPT.json]`: the strict Vertex AI as a process, for tests that are not written in Rust.
//!
//! The script is a list of steps; a step is a list of chunks, a chunk a list of Gemini's parts. Without one, five steps
//! with parallel calls of `notes__list` and `notes__read_note` are played. The first line of standard output is JSON with
//! the address, a service account's credentials and a token; then one line for each request. It ends with its standard
//! input.
#![expect(clippy::unwrap_used, reason = "a test's own server: whatever goes wrong is to end the test")]
#![expect(clippy::print_stdout, reason = "its lines are read by a test")]

use std::io::Read;
use std::time::Duration;

use lectern_fake_provider::vertex::{Step, Vertex};
use serde_json::{Value, json};

fn steps(script: Option<String>) -> Vec<Step> {
    let Some(path) = script else { return five_steps() };
    let script: Vec<Vec<Vec<Value>>> = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    script.into_iter().map(Step::of).collect()
}

fn five_steps() -> Vec<Step> {
    let list = json!({});
    let read = |path: &str| json!({ "path": path });
    vec![
        Step::says(&["Let me look. "])
            .thinks("I need the list.")
            .calls("notes__list", &list)
            .calls("notes__read_note", &read("a.md")),
        Step::default().calls("notes__list", &list).with_ids(),
        Step::default()
            .calls("notes__read_note", &read("b.md"))
            .calls("notes__list", &list)
            .calls("notes__read_note", &read("c.md"))
            .with_ids(),
        Step::says(&["Almost"]).signed_end().calls("notes__read_note", &read("d.md")),
        Step::says(&["All ", "done."]).signed_end(),
    ]
}

#[tokio::main]
async fn main() {
    let fake = Vertex::start(steps(std::env::args().nth(1))).await;
    let first =
        json!({"url": fake.server.url(), "service_account": fake.service_account(), "token": fake.token()});
    println!("{first}");
    let end = tokio::task::spawn_blocking(|| std::io::stdin().lock().read_to_end(&mut Vec::new()));
    let (mut told, mut refused) = (0, 0);
    while !end.is_finished() {
        for seen in fake.server.seen().iter().skip(told) {
            told += 1;
            let refusals = fake.refusals();
            let line = json!({"path": seen.path, "refused": refusals.get(refused)});
            refused = refusals.len();
            println!("{line}");
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
