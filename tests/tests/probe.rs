//! `lectern mcp probe` as a black box: the built program, the fixture server, and what stands on standard output.

#![expect(clippy::unwrap_used, reason = "a test stops where it is surprised")]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use lectern_tests::program;
use serde_json::Value;

/// The lines that were printed, and whether it succeeded.
fn probe(arguments: &[&str]) -> (Vec<Value>, bool) {
    let mut command = Command::new(program("lectern"));
    let output =
        command.args(["mcp", "probe", "--json", "--timeout", "30"]).args(arguments).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let lines =
        text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")));
    (lines.collect(), output.status.success())
}

fn kinds(lines: &[Value]) -> Vec<&str> {
    lines.iter().map(|line| line["type"].as_str().unwrap()).collect()
}

/// A fixture server behind an address. Dropping it kills it.
struct Remote(Child, String);

impl Remote {
    fn start(mode: &str) -> Self {
        let mut command = Command::new(program("fixture-server"));
        command.args(["--mode", mode, "--http", "127.0.0.1:0"]).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
        Self(child, url.trim().to_owned())
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_program_and_an_address_are_looked_at_in_the_same_way() {
    let calls = ["--call", "echo", r#"{"text":"hi"}"#, "--call", "slow", r#"{"steps":3,"delay_ms":5}"#];
    let fixture = program("fixture-server");
    let mut local = calls.to_vec();
    local.extend(["--", fixture.to_str().unwrap(), "--mode", "legacy"]);
    let remote = Remote::start("modern");
    let mut far = calls.to_vec();
    far.push(&remote.1);
    for (arguments, protocol) in [(local, "2025-11-25"), (far, "2026-07-28")] {
        let (lines, fine) = probe(&arguments);
        assert!(fine, "{lines:#?}");
        let expected = [
            "connected",
            "tools",
            "resources",
            "prompts",
            "result",
            "progress",
            "progress",
            "progress",
            "result",
        ];
        assert_eq!(kinds(&lines), expected, "{lines:#?}");
        assert_eq!(lines[0]["protocol"], protocol);
        assert!(lines[1]["tools"].as_array().unwrap().iter().any(|tool| tool["name"] == "echo"));
        assert_eq!((&lines[4]["call"], &lines[4]["text"]), (&"echo".into(), &"Echo: hi".into()));
        let told: Vec<_> =
            lines[5..8].iter().map(|line| (&line["call"], line["progress"].as_f64())).collect();
        let slow = Value::from("slow");
        assert_eq!(told, [(&slow, Some(1.0)), (&slow, Some(2.0)), (&slow, Some(3.0))]);
        assert_eq!(lines[8]["call"], "slow");
    }
}

#[test]
fn what_fails_is_an_error_line_and_the_exit_status() {
    let fixture = program("fixture-server");
    let fixture = fixture.to_str().unwrap();
    let (lines, fine) = probe(&["--", fixture, "--mode", "early-exit"]);
    assert!(!fine);
    assert_eq!(kinds(&lines), ["error"]);
    assert!(lines[0]["exit"].is_string() && lines[0]["hint"].is_string(), "{lines:#?}");

    let (lines, fine) = probe(&["http://127.0.0.1:1/mcp"]);
    assert!(!fine);
    assert!(lines[0]["message"].as_str().unwrap().contains("127.0.0.1:1"), "{lines:#?}");

    let (lines, fine) = probe(&["--call", "nothing", "{}", "--", fixture, "--mode", "legacy"]);
    assert!(!fine);
    let last = lines.last().unwrap();
    assert_eq!((&last["type"], &last["call"]), (&"error".into(), &"nothing".into()));
}
