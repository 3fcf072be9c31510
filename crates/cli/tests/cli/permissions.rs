use std::fs;

use lectern_core::{EventKind, ToolOutcome};

use crate::lectern::Lectern;

const WRITE: &str = "Create a note Lists/Shopping.md with the text: oats, lemons and candles";

#[test]
fn without_a_person_to_ask_nothing_is_written_and_it_is_said() {
    let lectern = Lectern::new();
    let asked = lectern.ask([WRITE]);
    assert!(asked.events.iter().any(|event| matches!(event.kind, EventKind::PermissionRequested { .. })));
    assert_eq!(asked.results()[0].outcome, ToolOutcome::Denied);
    let started: Vec<_> = asked.calls().into_iter().map(|call| call.tool.0).collect();
    assert!(!started.contains(&"notes__create_note".to_owned()), "a denied call never starts: {started:?}");
    assert!(asked.ran.err.contains("--allow notes__create_note"), "{:?}", asked.ran.err);
    assert!(!lectern.home().join("sample-vault/Lists/Shopping.md").exists());
}

#[test]
fn a_rule_or_a_yes_lets_it_run() {
    for permission in [&["--yes"][..], &["--allow", "server:notes"], &["--allow", "notes__create_note"]] {
        let lectern = Lectern::new();
        let asked = lectern.ask(permission.iter().chain(&[WRITE]));
        assert_eq!(asked.results()[0].outcome, ToolOutcome::Succeeded, "{permission:?}");
        let note = fs::read_to_string(lectern.home().join("sample-vault/Lists/Shopping.md")).unwrap();
        assert!(note.contains("oats, lemons and candles"), "{note}");
    }
}

#[test]
fn what_the_settings_forbid_stays_forbidden() {
    let lectern = Lectern::new();
    let rule = r#"{"matches":{"on":"tool","tool":"notes__create_note"},"effect":"deny"}"#;
    lectern.write("settings.json", &format!(r#"{{"rules":[{rule}]}}"#));
    let asked = lectern.ask(["--yes", WRITE]);
    assert_eq!(asked.results()[0].outcome, ToolOutcome::Denied);
    assert!(!asked.events.iter().any(|event| matches!(event.kind, EventKind::PermissionRequested { .. })));
}
