//! Servers that others wrote, in place of ours.

use std::path::PathBuf;

use lectern_core::{EventKind, ToolOutcome};
use serde_json::{Value, json};

use crate::lectern::Lectern;

fn package(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/clients/node_modules").join(name);
    assert!(path.exists(), "{} is missing; `make test` installs it", path.display());
    path
}

fn config(lectern: &Lectern, id: &str, args: &[&str]) -> String {
    let text = json!({"mcpServers": {id: {"command": "node", "args": args}}}).to_string();
    lectern.write("mcp.json", &text).to_str().unwrap().to_owned()
}

fn everything(lectern: &Lectern) -> String {
    let program = package("@modelcontextprotocol/server-everything/dist/index.js");
    config(lectern, "everything", &[program.to_str().unwrap()])
}

#[test]
fn tools_of_another_server_are_called_with_progress() {
    let lectern = Lectern::new();
    let file = everything(&lectern);
    let question = "Trigger the long running operation with duration 1 and 4 steps";
    let asked = lectern.ask(["--yes", "--mcp-config", &file, question]);
    let results = asked.results();
    assert_eq!(results[0].tool.as_str(), "everything__trigger-long-running-operation", "{results:?}");
    assert_eq!(results[0].outcome, ToolOutcome::Succeeded, "{results:?}");
    let progress: Vec<f64> = asked
        .events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::ToolProgress { progress, .. } => Some(progress.done),
            _ => None,
        })
        .collect();
    assert!(progress.len() >= 2 && progress.is_sorted(), "{progress:?}");
    let offered = asked.events.iter().find_map(|event| match &event.kind {
        EventKind::StepStarted { tools, .. } => Some(tools.clone()),
        _ => None,
    });
    let ours = offered.unwrap().iter().filter(|tool| !tool.as_str().starts_with("everything__")).count();
    assert_eq!(ours, 0, "a file of servers replaces the vaults");
}

#[test]
fn a_server_that_was_not_trusted_is_asked_about_even_when_it_only_reads() {
    let lectern = Lectern::new();
    let asked = lectern.ask(["--mcp-config", &everything(&lectern), "Echo seven green bottles"]);
    assert_eq!(asked.results()[0].outcome, ToolOutcome::Denied);
}

#[test]
fn a_folder_is_read_through_the_filesystem_server() {
    let lectern = Lectern::new();
    lectern.write("files/Clock.md", "# Clock\n\nThe grandfather clock loses four minutes each week.\n");
    let folder = lectern.home().join("files").canonicalize().unwrap();
    let program = package("@modelcontextprotocol/server-filesystem/dist/index.js");
    let file = config(&lectern, "fs", &[program.to_str().unwrap(), folder.to_str().unwrap()]);
    let question = format!("read {}/Clock.md", folder.display());
    let asked = lectern.ask(["--yes", "--mcp-config", &file, &question]);
    assert!(asked.answer().contains("loses four minutes each week"), "{}", asked.answer());
}

#[test]
fn a_server_that_does_not_start_is_said_and_stops_nobody() {
    let lectern = Lectern::new();
    let file = lectern.write("mcp.json", r#"{"mcpServers":{"gone":{"command":"no-such-program-here"}}}"#);
    let file = file.to_str().unwrap();
    let ran = lectern.run(["ask", "--mcp-config", file, "hello"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.err.contains("no-such-program-here"), "{ran:?}");
    let listed = lectern.run(["mcp", "list", "--json", "--mcp-config", file]);
    assert_eq!(listed.code, Some(0), "a list of broken servers is a list");
    let value: Value = serde_json::from_str(&listed.out).unwrap();
    assert_eq!(value["servers"][0]["state"]["type"], "failed");
    assert_eq!(value["servers"][0]["state"]["problem"]["code"], "server_command_not_found");
}

/// A server of the modern era that wants input twice, and has nothing else.
fn asking(lectern: &Lectern) -> String {
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/servers/asks.mjs");
    config(lectern, "kitchen", &[script.to_str().unwrap(), "modern", "rounds"])
}

/// A model that calls that server's tool, and then says so.
fn calling(lectern: &Lectern) -> String {
    let call = "<tool_call>\n{\"name\": \"kitchen__rounds\", \"arguments\": {}}\n</tool_call>";
    lectern.scripted(&[call, "Done."]).to_str().unwrap().to_owned()
}

#[test]
fn without_a_person_a_servers_question_is_declined_even_with_yes() {
    let lectern = Lectern::new();
    let (file, model) = (asking(&lectern), calling(&lectern));
    let asked = lectern.ask(["--yes", "--mcp-config", &file, "--model", &model, "Call the tool rounds"]);
    assert!(asked.results()[0].text().contains(r#""action":"decline""#), "{:?}", asked.results());
    assert!(asked.ran.err.contains("a question of kitchen was declined"), "{}", asked.ran.err);
}

#[test]
fn forms_take_their_defaults_when_that_was_said() {
    let lectern = Lectern::new();
    let (file, model) = (asking(&lectern), calling(&lectern));
    let asked = lectern.ask([
        "--yes",
        "--elicitation",
        "accept-defaults",
        "--mcp-config",
        &file,
        "--model",
        &model,
        "Call the tool rounds",
    ]);
    assert!(asked.results()[0].text().contains(r#""second":"bread""#), "{:?}", asked.results());
    let questions = asked.events.iter().filter(|event| matches!(event.kind, EventKind::QuestionAsked { .. }));
    assert_eq!(questions.count(), 2);
}

/// The user's message, from the first event.
fn message(asked: &crate::lectern::Asked) -> Value {
    match &asked.events[0].kind {
        EventKind::TurnStarted { message, .. } => serde_json::to_value(message).unwrap(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_message_takes_resources_along_and_runs_prompts() {
    let lectern = Lectern::new();
    let file = everything(&lectern);
    let text = "What is in @everything:demo://resource/dynamic/text/1?";
    let attached = message(&lectern.ask(["--mcp-config", &file, text]));
    assert_eq!(attached["parts"][0]["text"], text);
    assert_eq!(attached["parts"][1]["uri"], "demo://resource/dynamic/text/1");
    assert!(attached["parts"][1]["text"].as_str().unwrap().contains("Resource 1"));
    let prompted = message(&lectern.ask(["--mcp-config", &file, "/everything:args-prompt city=Lyon"]));
    assert!(prompted["parts"][0]["text"].as_str().unwrap().contains("Lyon"), "{prompted}");

    for (bad, word) in [
        ("/nobody:x", "nobody"),
        ("/everything:nothing", "nothing"),
        ("/everything:args-prompt", "`city`"),
        ("/everything:args-prompt city", "name=value"),
        ("see @everything:demo://no/such", "resources/read"),
    ] {
        let ran = lectern.run(["ask", "--mcp-config", &file, bad]);
        assert!(ran.code != Some(0) && ran.err.contains(word), "{bad}: {ran:?}");
    }
}

#[test]
fn resources_and_prompts_are_listed() {
    let lectern = Lectern::new();
    let file = everything(&lectern);
    let ran = lectern.run(["mcp", "resources", "--mcp-config", &file, "--json"]);
    let listed: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(listed["servers"][0]["server"], "everything");
    assert!(listed["servers"][0]["templates"].as_array().is_some_and(|all| !all.is_empty()), "{listed}");
    let ran = lectern.run(["mcp", "prompts", "everything", "--mcp-config", &file]);
    assert!(ran.out.contains("/everything:args-prompt city=… [state=…]"), "{ran:?}");
    let ran = lectern.run(["mcp", "prompts", "nobody", "--mcp-config", &file]);
    assert!(ran.code != Some(0) && ran.err.contains("there is no server `nobody`"), "{ran:?}");
}
