use std::path::PathBuf;

use lectern_core::{ChatRequest, FinishReason, Message, Sampling, ToolChoice};
use lectern_local::{ParsedText, parse_text};
use lectern_test_gguf::Recipe;
use serde_json::{Value, json};

use crate::support::{ask, random_model, repository, request, result_of, tool};

/// The templates of real models, as llama.cpp collects them. They are not part of the repository: a folder in
/// `LECTERN_CHAT_TEMPLATES`, or `target/chat-templates` (`tests/fetch-chat-templates` fetches them).
pub fn templates() -> Option<Vec<PathBuf>> {
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
        println!("SKIPPED: no chat templates here (run crates/local/tests/fetch-chat-templates)");
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
    println!("FIGURE chat templates of real models: {} rendered with tools", files.len());
    assert_eq!(failed, [] as [String; 0]);
}

/// One model for each template, with random weights: forced to call, it calls validly, and goes on from the result.
#[tokio::test(flavor = "multi_thread")]
async fn every_template_can_be_forced_and_continued() {
    let Some(files) = templates() else {
        println!("SKIPPED: no chat templates here (run crates/local/tests/fetch-chat-templates)");
        return;
    };
    let (mut failed, mut rendered_anew) = (Vec::new(), Vec::new());
    for file in &files {
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        match force_and_continue(&std::fs::read_to_string(file).unwrap()).await {
            Ok(true) => {}
            Ok(false) => rendered_anew.push(name),
            Err(error) => failed.push(format!("{name}: {error}")),
        }
    }
    println!(
        "FIGURE chat templates: {} of {} continue the cache after a call; these do not: {rendered_anew:?}",
        files.len() - rendered_anew.len(),
        files.len()
    );
    assert_eq!(failed, [] as [String; 0], "{}", failed.join("\n"));
}

/// True when the second step evaluated only what is new.
async fn force_and_continue(template: &str) -> Result<bool, String> {
    let schema = json!({
        "type": "object",
        "properties": { "colour": { "enum": ["red", "green", "blue"] }, "n": { "type": "integer" } },
        "required": ["colour", "n"],
    });
    // The tokens with which real models of these templates end a message.
    let ends = ["<|eot_id|>", "</s>", "<end_of_turn>", "<|end|>", "<|call|>", "<|end_of_text|>", "<EOT>"];
    let more_tokens = ends.map(str::to_owned).to_vec();
    let fixture =
        random_model(Recipe { context: 16384, more_tokens, ..Recipe::default() }.template(template)).await;
    let mut ask_for = ChatRequest {
        system: Some("Be good.".into()),
        tools: vec![tool("pick", schema.clone()), tool("drop", schema.clone())],
        tool_choice: ToolChoice::Required,
        sampling: Sampling {
            seed: Some(4),
            temperature: Some(1.0),
            max_tokens: Some(900),
            ..Sampling::default()
        },
        ..request("Pick one")
    };
    let first = ask(&fixture.model, ask_for.clone()).await;
    if let Some(error) = first.error {
        return Err(error.to_string());
    }
    let calls = first.tool_calls();
    let valid = |call: &lectern_core::ToolCall| {
        call.malformed.is_none() && jsonschema::is_valid(&schema, &Value::Object(call.arguments.clone()))
    };
    if first.finish == Some(FinishReason::Length) {
        // A format may leave the id of a call to the model, and random weights do not come to an end.
        return Ok(false);
    }
    if first.finish != Some(FinishReason::ToolCalls) || calls.len() != 1 || !calls.iter().all(valid) {
        let raw: String = first.data.unwrap_or_default().to_string().chars().take(160).collect();
        return Err(format!("{:?} {} calls, {raw}", first.finish, calls.len()));
    }
    ask_for.messages.push(Message::Assistant(first.message()));
    ask_for.messages.extend(calls.iter().map(|call| result_of(call, "done")));
    ask_for.sampling.max_tokens = Some(5);
    let second = ask(&fixture.model, ask_for).await;
    match second.error {
        Some(error) => Err(format!("second step: {error}")),
        None => {
            let before = first.usage.prompt_tokens + first.usage.generated_tokens;
            Ok(second.usage.reused_tokens + 2 >= before)
        }
    }
}
