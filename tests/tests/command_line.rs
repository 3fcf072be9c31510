//! The command line as a person or a script uses it: the built `lectern`, the real starter, the real notes server.

#![expect(clippy::unwrap_used, reason = "a test stops where it is surprised")]

use std::process::{Command, Output};

use lectern_tests::program;
use serde_json::Value;
use tempfile::TempDir;

const QUESTION: &str = "What does error E7 on the heat pump mean?";

fn lectern(home: &TempDir, arguments: &[&str]) -> Output {
    let mut command = Command::new(program("lectern"));
    command.args(arguments).env("LECTERN_HOME", home.path());
    command.output().expect("lectern starts")
}

/// The events of a question, from first to last.
fn events(home: &TempDir, arguments: &[&str]) -> Vec<Value> {
    let output = lectern(home, arguments);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

fn of_kind<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["kind"] == kind).collect()
}

fn answer(events: &[Value]) -> String {
    let text = of_kind(events, "text_delta")
        .into_iter()
        .filter_map(|event| event["text"].as_str())
        .collect::<String>();
    assert!(!text.is_empty(), "no answer: {events:#?}");
    text
}

#[test]
fn the_first_question_is_answered_without_any_set_up() {
    let home = tempfile::tempdir().unwrap();
    let output = lectern(&home, &["ask", QUESTION]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("Error E7 means that the filter in the return is blocked"), "{text}");
    assert!(text.contains("Heat pump"), "{text}");
}

#[test]
fn the_events_tell_the_whole_turn_in_order() {
    let home = tempfile::tempdir().unwrap();
    let events = events(&home, &["ask", "--json", QUESTION]);
    let seqs: Vec<_> = events.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs, (0..events.len() as u64).collect::<Vec<_>>());
    assert_eq!(events.first().unwrap()["kind"], "turn_started");
    assert_eq!(events.last().unwrap()["kind"], "turn_finished");
    assert_eq!(events.last().unwrap()["outcome"]["type"], "completed");
    let started: Vec<_> =
        of_kind(&events, "tool_started").into_iter().map(|event| &event["call"]["id"]).collect();
    let finished: Vec<_> =
        of_kind(&events, "tool_finished").into_iter().map(|event| &event["result"]["call"]).collect();
    assert_eq!(started, finished);
    assert!(started.len() >= 2, "a search and a read: {started:?}");
    assert!(answer(&events).contains("Error E7 means that the filter in the return is blocked"));
}

#[test]
fn a_later_step_evaluates_only_what_is_new() {
    let home = tempfile::tempdir().unwrap();
    let events = events(&home, &["ask", "--json", QUESTION]);
    let usage: Vec<_> =
        of_kind(&events, "step_finished").into_iter().map(|event| &event["stats"]["usage"]).collect();
    assert!(usage.len() >= 3, "{usage:?}");
    for pair in usage.windows(2) {
        let count =
            |usage: &Value, key: &str| usage[key].as_f64().unwrap_or_else(|| panic!("{key}: {usage}"));
        let known = count(pair[0], "prompt_tokens") + count(pair[0], "generated_tokens");
        let reused = count(pair[1], "reused_tokens");
        assert!(reused >= 0.95 * known, "{reused} of {known} were reused: {pair:?}");
    }
}

#[test]
fn a_conversation_goes_on() {
    let home = tempfile::tempdir().unwrap();
    let first = events(&home, &["ask", "--json", QUESTION]);
    let id = first[0]["conversation"].as_str().unwrap();
    let second =
        events(&home, &["ask", "--json", "--conversation", id, "Where did Thomas lose his hat in Norway?"]);
    assert_eq!(second[0]["conversation"], id);
    assert!(!of_kind(&second, "tool_finished").is_empty());
    assert!(answer(&second).contains("Thomas lost his hat there"), "{}", answer(&second));
}

#[test]
fn mistakes_have_their_own_exit_codes() {
    let home = tempfile::tempdir().unwrap();
    assert_eq!(lectern(&home, &["ask"]).status.code(), Some(2));
    assert_eq!(lectern(&home, &["no-such-command"]).status.code(), Some(2));
    let output = lectern(&home, &["ask", "--model", "/no/such/model.gguf", QUESTION]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("/no/such/model.gguf"), "{output:?}");
}
