//! Whether a whole question finds the passage that answers it, in the sample vault and in one that nothing was tuned on.
//! Invariant: the floors are shares of the questions, so that one new question never breaks the build.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking, and says what was missed"
)]

use std::collections::BTreeMap;
use std::path::Path;

use lectern_vault::index::{Index, Prepared};
use lectern_vault::search::{Hit, search};
use lectern_vault::vault::Vault;
use serde_json::Value;

mod support;

fn indexed(folder: &Path) -> (Vault, Index) {
    let vault = Vault::open(folder).unwrap();
    let index = Index::new().unwrap();
    let read = |entry: lectern_vault::vault::Entry| {
        let text = vault.read(&entry.path, u64::MAX).unwrap();
        Prepared::new(entry, &text)
    };
    index.put(&vault.walk("").into_iter().map(read).collect::<Vec<_>>()).unwrap();
    (vault, index)
}

#[derive(Default)]
struct Score {
    asked: usize,
    right_note: usize,
    right_quote: usize,
}

/// Asks each question as it stands and counts first hits.
fn score(index: &Index, questions: &[(String, String, String, String)]) -> BTreeMap<String, Score> {
    let mut scores: BTreeMap<String, Score> = BTreeMap::new();
    for (language, question, path, quote) in questions {
        let hits = search(index, question, "", 3).unwrap();
        let score = scores.entry(language.clone()).or_default();
        let right = |test: &dyn Fn(&Hit) -> bool| usize::from(hits.first().is_some_and(test));
        let note = right(&|hit| hit.path.as_str() == path);
        let quoted = right(&|hit| hit.passage.contains(quote.as_str()));
        if note + quoted < 2 {
            println!("missed: {question}\n  wanted {path}: {quote}");
            hits.iter().for_each(|hit| println!("  {:.2} {} {}", hit.score, hit.path, hit.passage));
        }
        score.asked += 1;
        score.right_note += note;
        score.right_quote += quoted;
    }
    for (language, Score { asked, right_note, right_quote }) in &scores {
        println!("FIGURE search, {language}: {right_note} notes and {right_quote} quotes of {asked}");
    }
    scores
}

fn assert_floor(scores: &BTreeMap<String, Score>, notes: f64, quotes: f64) {
    let sum = |count: fn(&Score) -> usize| scores.values().map(count).sum::<usize>() as f64;
    let asked = sum(|score| score.asked);
    assert!(asked >= 20.0, "too few questions were asked");
    assert!(sum(|score| score.right_note) / asked >= notes, "right notes");
    assert!(sum(|score| score.right_quote) / asked >= quotes, "right quotes");
}

fn sample_questions(kind: &str) -> Vec<Value> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples/questions.jsonl");
    let lines = std::fs::read_to_string(file).unwrap();
    lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .filter(|q: &Value| q["kind"] == kind)
        .collect()
}

fn sample_vault() -> (Vault, Index) {
    indexed(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples/vault"))
}

#[test]
fn questions_over_the_sample_vault_are_answered() {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let questions: Vec<_> = sample_questions("ask")
        .iter()
        .map(|q| (text(&q["lang"]), text(&q["question"]), text(&q["path"]), text(&q["quote"])))
        .collect();
    let (_, index) = sample_vault();
    assert_floor(&score(&index, &questions), 0.95, 0.92);
}

#[test]
fn questions_over_another_vault_are_answered() {
    let folder = support::second_vault();
    let (_, index) = indexed(folder.path());
    let questions: Vec<_> = support::SECOND_QUESTIONS
        .iter()
        .map(|(language, question, path, quote)| {
            let text = std::fs::read_to_string(folder.path().join(path)).unwrap();
            assert!(text.contains(quote), "{path} does not say `{quote}`");
            ((*language).to_owned(), (*question).to_owned(), (*path).to_owned(), (*quote).to_owned())
        })
        .collect();
    assert_floor(&score(&index, &questions), 0.88, 0.84);
}

#[test]
fn what_is_not_in_the_notes_is_not_found() {
    let (_, index) = sample_vault();
    for question in sample_questions("none") {
        let hits = search(&index, question["question"].as_str().unwrap(), "", 3).unwrap();
        assert_eq!(hits, [], "{question}");
    }
    for question in support::UNKNOWN {
        assert_eq!(search(&index, question, "", 3).unwrap(), [], "{question}");
    }
}

#[test]
fn a_named_note_comes_first() {
    let (_, index) = sample_vault();
    for (named, path) in [
        ("packing list", "Travel/Packing list.md"),
        ("Révision du vélo", "Vélo/Révision du vélo.md"),
        ("films to watch", "Lists/Films to watch.md"),
        ("云南之行", "旅行/云南之行.md"),
    ] {
        let hits = search(&index, named, "", 3).unwrap();
        assert_eq!(hits[0].path.as_str(), path, "{named}");
    }
}

#[test]
fn every_passage_is_the_notes_own_text_at_its_lines() {
    let (vault, index) = sample_vault();
    let collapse = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    for question in sample_questions("ask") {
        for hit in search(&index, question["question"].as_str().unwrap(), "", 5).unwrap() {
            let text = vault.read(&hit.path, u64::MAX).unwrap();
            let lines: Vec<&str> = text.lines().collect();
            let (first, last) = hit.lines;
            let passage = collapse(hit.passage.trim_matches('…'));
            assert!(collapse(&lines[first - 1..last].join("\n")).contains(&passage), "{hit:?}");
            assert!(hit.passage.chars().count() <= 404, "{hit:?}");
        }
    }
}

#[test]
fn slips_and_beginnings_of_words_are_forgiven() {
    let (_, index) = sample_vault();
    for (question, path) in [
        ("strawberrys", "Garden/Garden log 2023.md"),
        ("violonc", "Musique/Cours de violoncelle.md"),
        ("blanquete", "Cuisine/Blanquette de veau de Mamie.md"),
    ] {
        let hits = search(&index, question, "", 3).unwrap();
        assert!(hits.iter().any(|hit| hit.path.as_str() == path), "{question}: {hits:?}");
    }
}

#[test]
fn signs_of_the_search_engine_mean_nothing() {
    let (_, index) = sample_vault();
    for question in [
        "\"",
        "\"\"\"",
        "heron OR",
        "NEAR(heron canal, 2)",
        "title:heron",
        "heron*",
        "(heron",
        "heron)",
        "^heron",
        "-heron",
        "NOT",
        "AND AND",
        "{title heading}: heron",
        "heron' OR 1=1 --",
        "%",
        "_",
        "\u{0}heron",
        "\\",
        "*",
        "heron + canal",
        "words MATCH 'x'",
        "'; DROP TABLE notes; --",
    ] {
        let hits = search(&index, question, "", 3).unwrap();
        if question.contains("heron") {
            assert!(hits.iter().any(|hit| hit.passage.contains("heron")), "{question}: {hits:?}");
        }
    }
    let long = "heron canal ".repeat(20_000);
    assert!(!search(&index, &long, "", 3).unwrap().is_empty());
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(200))]
    #[test]
    fn no_question_fails(question in "\\PC{0,80}|[a-z\"*:^(){}+ -]{0,40}") {
        thread_local! {
            static VAULT: (Vault, Index) = sample_vault();
        }
        VAULT.with(|(_, index)| search(index, &question, "", 3)).unwrap();
    }
}
