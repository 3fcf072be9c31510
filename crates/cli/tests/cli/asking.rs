use lectern_core::{EventKind, ToolOutcome};

use crate::lectern::{ANSWER, Lectern, QUESTION};

#[test]
fn the_answer_is_on_standard_output_and_the_calls_are_beside_it() {
    let lectern = Lectern::new();
    let ran = lectern.run_with(QUESTION, ["ask", "-"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.contains(ANSWER), "{ran:?}");
    assert!(!ran.out.contains("search_notes"), "{ran:?}");
    assert!(
        ran.err.contains("→ notes__search_notes {") && ran.err.contains("✓ notes__read_note: "),
        "{ran:?}"
    );
    assert!(!ran.err.contains('\u{1b}'), "colours without a terminal: {ran:?}");
}

#[test]
fn every_line_of_json_is_an_event_and_the_last_one_ends_the_turn() {
    let lectern = Lectern::new();
    let asked = lectern.ask([QUESTION]);
    assert!(asked.answer().contains(ANSWER));
    assert!(matches!(asked.events[0].kind, EventKind::TurnStarted { .. }));
    assert!(asked.events.iter().enumerate().all(|(place, event)| event.seq == place as u64));
    let tools: Vec<_> = asked.calls().into_iter().map(|call| call.tool.0).collect();
    assert_eq!(tools, ["notes__search_notes", "notes__read_note"]);
    let read = asked.results().pop().unwrap();
    assert_eq!(read.outcome, ToolOutcome::Succeeded);
    assert_eq!(read.sources[0].path, "House/Energy/Heat pump.md");
    assert_eq!(asked.ran.err, "");
}

#[test]
fn later_steps_evaluate_only_what_is_new() {
    let lectern = Lectern::new();
    let usages = lectern.ask([QUESTION]).usages();
    assert!(usages.len() >= 2, "{usages:?}");
    for pair in usages.windows(2) {
        let known = pair[0].prompt_tokens + pair[0].generated_tokens;
        assert!(f64::from(pair[1].reused_tokens) >= 0.95 * f64::from(known), "{pair:?}");
    }
}

#[test]
fn a_conversation_goes_on_in_another_process() {
    let lectern = Lectern::new();
    let first = lectern.ask([QUESTION]);
    let id = first.events[0].conversation.clone();
    let second = lectern.ask([
        "--conversation",
        id.as_str(),
        "How many herons did we count on the walk along the canal?",
    ]);
    assert_eq!(second.events[0].conversation, id);
    assert!(second.answer().contains("counted nineteen herons"), "{}", second.answer());
}

#[test]
fn a_vault_of_the_users_own_is_searched_in_place_of_the_sample() {
    let lectern = Lectern::new();
    lectern.write(
        "mine/Clock.md",
        "# Clock\n\nThe grandfather clock in the hall loses four minutes each week.\n",
    );
    let vault = lectern.home().join("mine");
    let asked = lectern.ask([
        "--vault".as_ref(),
        vault.as_os_str(),
        "How much does the grandfather clock lose?".as_ref(),
    ]);
    assert!(asked.answer().contains("loses four minutes each week"), "{}", asked.answer());
    let sources: Vec<_> =
        asked.results().into_iter().flat_map(|result| result.sources).map(|source| source.path).collect();
    assert!(sources.iter().all(|path| path == "Clock.md"), "{sources:?}");
}

#[test]
fn chat_talks_until_the_user_has_enough() {
    let lectern = Lectern::new();
    let ran = lectern.run_with(&format!("/help\n{QUESTION}\n/model nobody\n/x\nnever asked\n"), ["chat"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.contains(ANSWER) && ran.err.contains("/new"), "{ran:?}");
    assert!(ran.err.contains("there is no model `nobody`") && !ran.err.contains("never asked"), "{ran:?}");
}

#[test]
fn the_score_counts_right_and_wrong_answers() {
    let lectern = Lectern::new();
    let right = r#"{"id":"a","lang":"en","question":"What does error E7 on the heat pump mean?","kind":"ask","path":"House/Energy/Heat pump.md","quote":"Error E7 means that the filter in the return is blocked","tools":["search_notes","read_note"]}"#;
    let wrong = right.replace("is blocked", "is open").replace(r#""a""#, r#""b""#);
    let questions = lectern.write("questions.jsonl", &format!("{right}\n{wrong}\n"));
    let score = |floor: &str| {
        let questions = questions.to_str().unwrap();
        lectern.run(["debug", "score", "--json", "--questions", questions, "--floor", floor])
    };
    let ran = score("1");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let report: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((&report["right"], &report["asked"]), (&1.into(), &2.into()));
    assert!(report["questions"][1]["reason"].as_str().unwrap().contains("is open"), "{report}");
    assert_eq!(score("2").code, Some(1));
}
