//! A turn of five steps with parallel calls against llama.cpp's own server, through `lectern ask`.
//!
//! Invariant: the model's words are a script's; the server, its chat format, its grammar and its parser of calls are real.

use lectern_core::ToolOutcome;
use lectern_fake_provider::real::LlamaServer;
use serde_json::{Value, json};

use crate::lectern::{ANSWER, Lectern};

const NOTE: &str = "House/Energy/Heat pump.md";
const LAST: &str = "Nineteen herons, and the filter was blocked: größer, 漢字.";

fn call(tool: &str, arguments: &Value) -> String {
    format!("<tool_call>\n{{\"name\": \"notes__{tool}\", \"arguments\": {arguments}}}\n</tool_call>")
}

fn five_steps() -> Vec<String> {
    let search = |query: &str| call("search_notes", &json!({ "query": query }));
    let read = || call("read_note", &json!({ "path": NOTE }));
    vec![
        format!("Let me look. {}", search("heron")),
        format!("{}\n{}", search("canal"), read()),
        search("E7"),
        format!("{}\n{}\n{}", read(), search("walk"), call("list_notes", &json!({}))),
        LAST.to_owned(),
    ]
}

#[test]
fn llama_cpps_own_server_carries_a_turn_of_five_steps() {
    let lectern = Lectern::new();
    let steps = five_steps();
    let replies: Vec<&str> = steps.iter().map(String::as_str).collect();
    let file = lectern.scripted(&replies);
    let Some(real) = LlamaServer::start(&file, "scripted") else { return };

    let added = lectern.run(["models", "add-endpoint", real.url(), "--name", "real", "--json"]);
    assert_eq!(added.code, Some(0), "{added:?}");
    let added: Value = serde_json::from_str(&added.out).unwrap();
    assert_eq!(added["models"][0]["id"], "scripted");
    assert_eq!(added["models"][0]["remote"]["leaves_machine"], false);

    let asked = lectern.ask(["--yes", "--model", "scripted", "How many herons?"]);
    assert_eq!(asked.answer(), LAST, "{:?}", asked.ran);
    let results = asked.results();
    assert_eq!(results.len(), 7);
    assert!(results.iter().all(|result| result.outcome == ToolOutcome::Succeeded), "{results:?}");
    let told = serde_json::to_string(&results).unwrap();
    assert!(told.contains(ANSWER), "the note was not read: {told}");
    let usages = asked.usages();
    assert_eq!(usages.len(), 5);
    // Each step reads all that came before; the server had most of it already.
    assert!(usages.windows(2).all(|two| two[0].prompt_tokens < two[1].prompt_tokens), "{usages:?}");
    assert!(usages[1].reused_tokens > 0, "{usages:?}");
    assert!(usages.iter().all(|usage| usage.generated_tokens > 0), "{usages:?}");
}
