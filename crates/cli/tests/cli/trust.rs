//! Approvals and the audit log from the terminal.

use std::io::BufRead;

use serde_json::{Value, json};

use crate::lectern::Lectern;

const WRITE: &str = "Create a note Lists/Shopping.md with the text: oats, lemons and candles";

fn with_fixture(lectern: &Lectern, args: &[&str]) {
    let server = json!({"command": lectern_fixture_server::binary(), "args": args});
    lectern.write("settings.json", &json!({"mcpServers": {"fx": server}}).to_string());
}

fn state(lectern: &Lectern) -> String {
    let listed = lectern.run(["mcp", "list", "--json"]);
    let value: Value = serde_json::from_str(&listed.out).unwrap();
    let servers = value["servers"].as_array().unwrap();
    let fixture = servers.iter().find(|server| server["id"] == "fx").unwrap();
    fixture["state"]["type"].as_str().unwrap().to_owned()
}

fn audit(lectern: &Lectern, args: &[&str]) -> Vec<Value> {
    let ran = lectern.run(["audit", "--json"].iter().chain(args));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_server_of_hand_written_settings_waits_for_a_yes() {
    let lectern = Lectern::new();
    let echo = lectern.write("echo", "Says it.");
    let args = ["--echo-file", echo.to_str().unwrap()];
    with_fixture(&lectern, &args);
    assert_eq!(state(&lectern), "needs_approval");
    let asked = lectern.run(["mcp", "approve", "fx"]);
    assert_eq!(asked.code, Some(1), "{asked:?}");
    assert!(asked.out.contains("fx would run: ") && asked.err.contains("nobody to ask"), "{asked:?}");
    assert_eq!(state(&lectern), "needs_approval");
    assert_eq!(lectern.run(["mcp", "approve", "fx", "--yes"]).code, Some(0));
    assert_eq!(state(&lectern), "ready");

    lectern.write("echo", "Says it.\u{e0041}");
    assert_eq!(state(&lectern), "degraded");
    let shown = lectern.run(["mcp", "approve", "fx"]);
    assert!(
        shown.out.contains("fx__echo (switched off)") && shown.out.contains("Says it.⟦U+E0041⟧"),
        "{shown:?}"
    );
    assert_eq!(state(&lectern), "degraded", "looking accepts nothing");
    assert_eq!(lectern.run(["mcp", "approve", "fx", "--yes", "--tool", "fx__nothing"]).code, Some(1));
    assert_eq!(lectern.run(["mcp", "approve", "fx", "--yes", "--tool", "fx__echo"]).code, Some(0));
    assert_eq!(state(&lectern), "ready");

    with_fixture(&lectern, &[&args[..], &["--tools", "1"]].concat());
    assert_eq!(state(&lectern), "needs_approval");
    let about: Vec<(Value, Value)> = audit(&lectern, &["--server", "fx"])
        .into_iter()
        .map(|entry| (entry["about"].clone(), entry["tool"].clone()))
        .collect();
    assert_eq!(about, [(json!("approval"), json!(null)), (json!("approval"), json!("fx__echo"))]);
}

#[test]
fn what_is_added_by_hand_at_the_terminal_is_approved() {
    let lectern = Lectern::new();
    let fixture = lectern_fixture_server::binary().to_str().unwrap();
    let added = lectern.run(["mcp", "add", "fx", "--", fixture, "--mode", "ok"]);
    assert_eq!(added.code, Some(0), "{added:?}");
    assert_eq!(state(&lectern), "ready");
    let removed = lectern.run(["mcp", "remove", "fx"]);
    assert_eq!(removed.code, Some(0), "{removed:?}");
    let said: Vec<Value> = audit(&lectern, &[]).into_iter().map(|entry| entry["rule"].clone()).collect();
    assert!(said.contains(&json!("saved")) && said.contains(&json!("removed")), "{said:?}");
}

#[test]
fn the_audit_log_tells_of_calls_that_were_allowed_denied_and_failed() {
    let lectern = Lectern::new();
    lectern.ask([WRITE]);
    lectern.ask(["--yes", WRITE]);
    lectern.ask(["--yes", WRITE]);
    let writes = audit(&lectern, &["--tool", "notes__create_note"]);
    let told: Vec<[&Value; 3]> =
        writes.iter().map(|entry| [&entry["decision"], &entry["rule"], &entry["outcome"]]).collect();
    assert_eq!(told[0], [&json!("denied"), &json!("user: denied"), &json!(null)]);
    assert_eq!(told[1], [&json!("allowed"), &json!("rule: everything (this run)"), &json!("succeeded")]);
    assert!(told[2..].iter().any(|call| call[2] == &json!("failed")), "the note is there already: {told:?}");
    let allowed = &writes[1];
    assert_eq!((&allowed["who"], &allowed["server"]), (&json!("cli"), &json!("notes")));
    assert_eq!(allowed["arguments"]["path"], "Lists/Shopping.md");
    assert_eq!(allowed["result_hash"].as_str().unwrap().len(), 64);
    assert!(allowed["result_bytes"].as_u64().unwrap() > 0 && allowed["duration_ms"].is_u64());
    assert!(allowed["conversation"].is_string());

    assert_eq!(audit(&lectern, &["--server", "nobody"]), Vec::<Value>::new());
    assert_eq!(audit(&lectern, &["--since", "1h", "--limit", "1"]).len(), 1);
    assert_eq!(audit(&lectern, &["--since", "2099-01-01T00:00:00Z"]).len(), 0);
    let lines = lectern.run(["audit", "--tool", "notes__create_note"]).out;
    assert!(lines.lines().next().unwrap().contains("denied (user: denied)"), "{lines}");
    assert_eq!(lectern.run(["audit", "--since", "yesterday"]).code, Some(2));
}

#[test]
fn the_log_can_be_followed() {
    let lectern = Lectern::new();
    lectern.ask([WRITE]);
    let before = audit(&lectern, &["--limit", "0"]).len();
    let mut child = lectern.start(["audit", "--json", "--follow", "--limit", "0"]);
    let mut lines = std::io::BufReader::new(child.stdout.take().unwrap()).lines();
    for _ in 0..before {
        lines.next().unwrap().unwrap();
    }
    lectern.ask(["--yes", WRITE]);
    let ended = lines
        .map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap())
        .find(|entry| entry["tool"] == "notes__create_note" && entry["outcome"] == "succeeded");
    assert!(ended.is_some());
    child.kill().unwrap();
    child.wait().unwrap();
}
