use std::path::PathBuf;

use lectern_local::{ParsedText, parse_text};
use serde_json::json;

use crate::support::repository;

/// The templates of real models, as llama.cpp collects them. They are not part of the repository: a folder in
/// `LECTERN_CHAT_TEMPLATES`, or `target/chat-templates` (see the tests' README).
fn templates() -> Option<Vec<PathBuf>> {
    let folder = std::env::var_os("LECTERN_CHAT_TEMPLATES")
        .map_or_else(|| repository().join("target/chat-templates"), PathBuf::from);
    let mut files: Vec<_> = std::fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|ending| ending == "jinja"));
    files.sort();
    (!files.is_empty()).then_some(files)
}

#[test]
fn every_template_reads_a_plain_answer() {
    let Some(files) = templates() else {
        println!("SKIPPED: no chat templates here (set LECTERN_CHAT_TEMPLATES)");
        return;
    };
    let tools = [json!({
        "type": "function",
        "function": {
            "name": "search",
            "description": "Searches",
            "parameters": { "type": "object", "properties": { "q": { "type": "string" } }, "required": ["q"] },
        },
    })];
    let mut failed = Vec::new();
    for file in &files {
        let source = std::fs::read_to_string(file).unwrap();
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        match parse_text(
            Some(&source),
            &tools,
            "{\"name\": \"search\", \"parameters\": {\"q\": \"a\"}}",
            false,
        ) {
            Ok(ParsedText { .. }) => {}
            Err(error) => failed.push(format!("{name}: {error}")),
        }
    }
    println!("{} templates", files.len());
    assert_eq!(failed, [] as [String; 0]);
}
