//! Tools and arguments whose names a format cannot write, or that fall on each other: called by random weights, read by
//! their true names, and written again into the history.

use lectern_core::{ChatRequest, FinishReason, Message, Sampling, ToolCall, ToolChoice, ToolMode, ToolSpec};
use lectern_local::{CallForm, FormatOptions, LocalOptions};
use lectern_test_gguf::{CHATML_TOOLS, Recipe};
use serde_json::{Value, json};

use crate::support::{Reply, ask, random_model_with, request, result_of, tool, worker};
use crate::templates::templates;

/// One template of each kind, by the beginning of its file's name.
const KINDS: [&str; 14] = [
    "Qwen3-Coder",
    "GLM-4.6",
    "ByteDance-Seed-OSS",
    "MiniMax-M2",
    "meta-llama-Llama-3.1",
    "mistralai-Mistral-Nemo",
    "Mistral-Small-3.2",
    "openai-gpt-oss",
    "Kimi-K2-Instruct",
    "deepseek-ai-DeepSeek-V3.1",
    "LFM2-8B",
    "google-gemma-4-31B-it",
    "meetkai-functionary-medium-v3.2",
    "ibm-granite-granite-3.3",
];

fn tools() -> Vec<ToolSpec> {
    let long = "search_".repeat(20);
    let names = [
        "a_b",
        "a-b",
        "a.b",
        "a/b",
        "größe",
        "日本",
        "say \"it\"",
        "<x>",
        "call",
        "x",
        "x-schema",
        "7zip",
        "in {braces}",
        &long,
    ];
    let fields =
        [["x_y", "x-y"], ["filter[name]", "q"], ["<b>", "b"], ["größe", "\"quoted\""], ["a: b", "a=b"]];
    let one = |(place, name): (usize, &&str)| {
        let [first, second] = fields[place % fields.len()];
        let schema = json!({
            "type": "object",
            "properties": { first: { "type": "integer", "minimum": 0, "maximum": 99 }, second: { "enum": [true, null] } },
            "required": [first, second],
            "additionalProperties": false,
        });
        tool(name, schema)
    };
    names.iter().enumerate().map(one).collect()
}

fn forced(tools: &[ToolSpec], name: &str, mode: ToolMode) -> ChatRequest {
    ChatRequest {
        tools: tools.to_vec(),
        tool_choice: ToolChoice::Tool(name.into()),
        tool_mode: mode,
        sampling: Sampling {
            seed: Some(3),
            temperature: Some(1.1),
            max_tokens: Some(500),
            ..Sampling::default()
        },
        ..request("Do something")
    }
}

/// What is wrong with a reply that was to call this tool.
fn fault(reply: &Reply, tool: &ToolSpec) -> Option<String> {
    if let Some(error) = &reply.error {
        return Some(error.to_string());
    }
    let calls = reply.tool_calls();
    if calls.is_empty() {
        return Some(format!("no call, {:?}, {:?}", reply.finish, reply.data));
    }
    let wrong = |call: &&ToolCall| {
        let arguments = Value::Object(call.arguments.clone());
        call.tool != tool.name || !jsonschema::is_valid(&tool.input_schema, &arguments)
    };
    let wrong = calls.iter().find(wrong)?;
    Some(format!("{wrong:?} in place of {} {}", tool.name, tool.input_schema))
}

/// Calls each of these tools, with all of them offered, and goes on from each call. Gives how many second steps had the first one in the cache.
async fn call_each(
    recipe: Recipe,
    options: LocalOptions,
    mode: ToolMode,
    each: usize,
) -> Result<usize, String> {
    let ends = ["<|eot_id|>", "</s>", "<end_of_turn>", "<|end|>", "<|call|>", "<|end_of_text|>", "<EOT>"];
    let more_tokens = ends.map(str::to_owned).to_vec();
    let fixture =
        random_model_with(Recipe { context: 32768, more_tokens, ..recipe }, options, worker()).await;
    let tools = tools();
    let mut reused = 0;
    for tool in tools.iter().step_by(each) {
        let mut ask_for = forced(&tools, tool.name.as_str(), mode);
        let first = ask(&fixture.model, ask_for.clone()).await;
        if first.finish == Some(FinishReason::Length) {
            // A format may leave the id of a call to the model.
            continue;
        }
        if let Some(fault) = fault(&first, tool) {
            return Err(format!("{}: {fault}", tool.name));
        }
        ask_for.messages.push(Message::Assistant(first.message()));
        ask_for.messages.extend(first.tool_calls().iter().map(|call| result_of(call, "done")));
        ask_for.sampling.max_tokens = Some(3);
        ask_for.tool_choice = ToolChoice::Auto;
        let second = ask(&fixture.model, ask_for).await;
        if let Some(error) = second.error {
            return Err(format!("after {}: {error}", tool.name));
        }
        let before = first.usage.prompt_tokens + first.usage.generated_tokens;
        reused += usize::from(second.usage.reused_tokens + 2 >= before);
    }
    Ok(reused)
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_with_odd_names_are_called_in_forms_of_our_own() {
    let count = tools().len();
    for form in [CallForm::Json, CallForm::Pythonic] {
        let format = FormatOptions { call_form: Some(form), ..FormatOptions::default() };
        let options = LocalOptions { format, context: Some(32768), ..LocalOptions::default() };
        call_each(Recipe::default(), options, ToolMode::Prompted, 1).await.unwrap();
    }
    let options = LocalOptions { context: Some(32768), ..LocalOptions::default() };
    let reused =
        call_each(Recipe::default().template(CHATML_TOOLS), options, ToolMode::Native, 1).await.unwrap();
    assert_eq!(reused, count, "the history is written as the calls were");
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_with_odd_names_are_called_in_the_forms_of_real_templates() {
    let Some(files) = templates() else {
        println!("SKIPPED: no chat templates here (run crates/local/tests/fetch-chat-templates)");
        return;
    };
    let each = if std::env::var_os("LECTERN_ALL_CALLS").is_some() { 1 } else { 4 };
    let mut failed = Vec::new();
    for file in files {
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        if !KINDS.iter().any(|kind| name.starts_with(kind)) {
            continue;
        }
        let recipe = Recipe::default().template(&std::fs::read_to_string(&file).unwrap());
        let options = LocalOptions { context: Some(32768), ..LocalOptions::default() };
        match call_each(recipe, options, ToolMode::Native, each).await {
            Ok(reused) => println!("{name}: {reused} went on in the cache"),
            Err(error) => failed.push(format!("{name}: {error}")),
        }
    }
    assert_eq!(failed, [] as [String; 0], "{}", failed.join("\n"));
}
