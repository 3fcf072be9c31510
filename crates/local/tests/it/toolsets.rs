//! The tools of real servers, and sets that are larger than any: random weights call them, and every call is valid.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use lectern_core::{ChatRequest, FinishReason, Sampling, ToolChoice, ToolSpec};
use lectern_local::LocalOptions;
use lectern_test_gguf::{CHATML_TOOLS, Recipe};
use serde_json::{Value, json};

use crate::support::{Fixture, ask, random_model_with, repository, request, tool, worker};

/// Lists of tools as servers gave them: files in `LECTERN_TOOL_LISTS`, or `target/tool-lists`
/// (`tests/fetch-tool-lists` asks the servers that the other tests install).
fn tool_lists() -> Option<Vec<(String, Vec<Value>)>> {
    let folder = std::env::var_os("LECTERN_TOOL_LISTS")
        .map_or_else(|| repository().join("target/tool-lists"), PathBuf::from);
    let mut files: Vec<_> = std::fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|ending| ending == "json"));
    files.sort();
    let read = |path: &PathBuf| {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let tools: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        (name, tools)
    };
    (!files.is_empty()).then(|| files.iter().map(read).collect())
}

fn spec(server: &str, listed: &Value) -> ToolSpec {
    let name = format!("{server}__{}", listed["name"].as_str().unwrap());
    ToolSpec {
        description: listed["description"].as_str().unwrap_or_default().to_owned(),
        ..tool(&name, listed["inputSchema"].clone())
    }
}

/// What came of many calls.
#[derive(Default)]
struct Tally {
    calls: BTreeMap<String, u32>,
    cut: u32,
    tokens: u64,
    milliseconds: u64,
}

impl Tally {
    async fn call(&mut self, fixture: &Fixture, tools: &[ToolSpec], choice: ToolChoice, seed: u32) {
        let reply = ask(
            &fixture.model,
            ChatRequest {
                tools: tools.to_vec(),
                tool_choice: choice,
                sampling: Sampling {
                    seed: Some(seed),
                    temperature: Some(1.3),
                    max_tokens: Some(1500),
                    ..Sampling::default()
                },
                ..request("Do something")
            },
        )
        .await;
        assert_eq!(reply.error, None, "seed {seed}");
        self.tokens += u64::from(reply.usage.generated_tokens);
        self.milliseconds += u64::from(reply.usage.generation_ms.unwrap_or(0));
        if reply.finish == Some(FinishReason::Length) {
            // Random weights may go on inside a string for ever.
            self.cut += 1;
            return;
        }
        let calls = reply.tool_calls();
        assert_eq!(calls.len(), 1, "seed {seed}: {:?} {:?}", reply.text, reply.finish);
        let tool = tools.iter().find(|tool| tool.name == calls[0].tool).expect("a tool that exists");
        assert_eq!(calls[0].malformed, None, "seed {seed}: {}", calls[0].tool);
        let arguments = Value::Object(calls[0].arguments.clone());
        let errors: Vec<String> = jsonschema::validator_for(&tool.input_schema)
            .unwrap()
            .iter_errors(&arguments)
            .map(|error| error.to_string())
            .collect();
        assert_eq!(errors, [] as [String; 0], "seed {seed}: {} {arguments}", tool.name);
        *self.calls.entry(tool.name.0.clone()).or_default() += 1;
    }

    fn valid(&self) -> u32 {
        self.calls.values().sum()
    }

    fn told(&self, what: &str) -> String {
        let per_token = self.milliseconds as f64 / self.tokens.max(1) as f64;
        format!(
            "{what}: {} valid calls of {} tools, {} cut off; {} tokens, {per_token:.2} ms each",
            self.valid(),
            self.calls.len(),
            self.cut,
            self.tokens,
        )
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_calls_of_real_tools_are_valid() {
    let Some(lists) = tool_lists() else {
        println!("SKIPPED: no lists of tools here (run crates/local/tests/fetch-tool-lists)");
        return;
    };
    let fixture = told_names().await;
    let (mut tally, mut seed) = (Tally::default(), 0);
    let tools: Vec<Vec<ToolSpec>> =
        lists.iter().map(|(name, tools)| tools.iter().map(|tool| spec(name, tool)).collect()).collect();
    let began = Instant::now();
    // On a busy machine a part of the thousand has to do; `LECTERN_ALL_CALLS` takes the time that it takes.
    let patient = std::env::var_os("LECTERN_ALL_CALLS").is_some();
    while tally.valid() < 1000
        && (patient || tally.valid() < 100 || began.elapsed() < Duration::from_secs(60))
    {
        let of_server = &tools[seed as usize % tools.len()];
        let visit = seed as usize / tools.len();
        // Each tool gets its turn, and now and then the model chooses.
        let choice = match visit % 4 {
            0 => ToolChoice::Required,
            _ => ToolChoice::Tool(of_server[visit * 3 / 4 % of_server.len()].name.clone()),
        };
        tally.call(&fixture, of_server, choice, seed).await;
        seed += 1;
        assert!(seed < 1500, "too many replies are cut off: {}", tally.cut);
    }
    println!("FIGURE {}", tally.told("grammar, real servers"));
    let all: usize = tools.iter().map(Vec::len).sum();
    let called = tally.calls.len();
    assert!(tally.valid() < 1000 || called * 10 >= all * 9, "only {called} of {all} tools were called");
}

/// Tools with schemas of many shapes, so many and so large.
fn many_tools(count: usize, bytes: usize) -> Vec<ToolSpec> {
    let shapes = [
        json!({ "type": "string", "maxLength": 12 }),
        json!({ "type": "integer", "minimum": 1, "maximum": 500 }),
        json!({ "enum": ["up", "down", "left", "right"] }),
        json!({ "type": "array", "items": { "type": "number", "minimum": 0, "maximum": 1 }, "maxItems": 3 }),
        json!({ "type": ["boolean", "null"] }),
        json!({ "type": "string", "pattern": "^[a-z]{2,5}-[0-9]{3}$" }),
    ];
    let each = bytes / count;
    let one = |place: usize| {
        let mut properties = serde_json::Map::new();
        let mut field = 0;
        while Value::Object(properties.clone()).to_string().len() + 120 < each {
            let mut shape = shapes[(place + field) % shapes.len()].clone();
            shape["description"] = Value::String(format!("What field {field} of tool {place} is about."));
            properties.insert(format!("field_{place}_{field}"), shape);
            field += 1;
        }
        let required: Vec<String> = properties.keys().step_by(2).cloned().collect();
        let schema = json!({ "type": "object", "properties": properties, "required": required });
        tool(&format!("server_{}__tool_{place}", place % 7), schema)
    };
    (0..count).map(one).collect()
}

/// A model that is told the names of tools only: the prompt of 150 kB of schemas is not what is tested.
async fn told_names() -> Fixture {
    let template = CHATML_TOOLS.replace("tool | tojson", "tool.function.name | tojson");
    assert_ne!(template, CHATML_TOOLS);
    let recipe = Recipe { context: 32768, ..Recipe::default() }.template(&template);
    let options = LocalOptions { context: Some(32768), ..LocalOptions::default() };
    random_model_with(recipe, options, worker()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn three_hundred_tools_are_no_hindrance() {
    let tools = many_tools(300, 150_000);
    let bytes: usize = tools.iter().map(|tool| tool.input_schema.to_string().len()).sum();
    assert!(bytes > 130_000, "{bytes} bytes");
    let fixture = told_names().await;
    let mut tally = Tally::default();
    let began = Instant::now();
    for seed in 0..12 {
        tally.call(&fixture, &tools, ToolChoice::Required, seed).await;
    }
    println!(
        "FIGURE {}",
        tally.told(&format!("grammar, 300 tools, {bytes} bytes, {:?} in all", began.elapsed()))
    );
    assert!(tally.valid() >= 8);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_grammar_of_many_tools_costs_little() {
    let fixture = told_names().await;
    let mut each = Vec::new();
    for count in [2, 300] {
        let tools = many_tools(count, count * 500);
        let mut tally = Tally::default();
        for seed in 0..8 {
            tally.call(&fixture, &tools, ToolChoice::Required, seed).await;
        }
        println!("FIGURE {}", tally.told(&format!("grammar, {count} tools")));
        each.push(tally.milliseconds as f64 / tally.tokens.max(1) as f64);
    }
    println!("FIGURE grammar: a token with 300 tools takes {:.2} times as long as with 2", each[1] / each[0]);
}
