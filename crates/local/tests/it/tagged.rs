//! Formats that write arguments between tags: the values are held to their schemas, and their types come back.

use std::collections::BTreeMap;

use lectern_core::{ChatRequest, FinishReason, Sampling, ToolChoice, ToolSpec};
use lectern_test_gguf::Recipe;
use serde_json::{Value, json};

use crate::support::{ask, random_model, request, tool};
use crate::templates::templates;

/// Templates of this kind, by the beginning of their file's name.
const TAGGED: [&str; 12] = [
    "Qwen3-Coder",
    "Qwen3.5",
    "GLM-4.6",
    "GLM-4.7",
    "MiniMax-M2",
    "MiniMax-M3",
    "ByteDance-Seed-OSS",
    "NVIDIA-Nemotron-3",
    "StepFun3.5",
    "deepseek-ai-DeepSeek-V3.2",
    "poolside-Laguna-S",
    "tencent-Hy3",
];

/// No argument is free text: random weights do not come to its end.
fn tools() -> Vec<ToolSpec> {
    let shapes = [
        ("colour", json!({ "enum": ["red", "dark green", "42", "true", "größe"] })),
        ("mixed", json!({ "enum": ["one", 2, null] })),
        ("whole", json!({ "type": "integer", "minimum": -3, "maximum": 1200 })),
        ("part", json!({ "type": "number", "exclusiveMinimum": 0, "maximum": 1 })),
        ("yes", json!({ "type": "boolean" })),
        ("maybe", json!({ "type": ["integer", "null"], "maximum": 9, "minimum": 0 })),
        ("sort_by", json!({ "$ref": "#/$defs/order" })),
        ("code", json!({ "type": "string", "pattern": "^[A-Z]{2}[0-9]{3}$" })),
        ("day", json!({ "type": "string", "format": "date" })),
        (
            "list",
            json!({ "type": "array", "items": { "$ref": "#/$defs/order" }, "minItems": 1, "maxItems": 3 }),
        ),
        (
            "place",
            json!({
                "type": "object",
                "properties": { "x": { "type": "number" }, "deep": { "type": "boolean" } },
                "required": ["x", "deep"],
                "additionalProperties": false,
            }),
        ),
        ("either", json!({ "anyOf": [{ "const": "all" }, { "enum": ["none", "some"] }] })),
        ("numbers", json!({ "oneOf": [{ "const": 1 }, { "const": 2 }] })),
    ];
    let each = |(place, shape): (usize, &[(&str, Value)])| {
        let properties: serde_json::Map<String, Value> =
            shape.iter().map(|(name, schema)| ((*name).to_owned(), schema.clone())).collect();
        let required: Vec<&str> = shape.iter().map(|(name, _)| *name).collect();
        let schema = json!({
            "type": "object",
            "properties": properties,
            "required": required[..1 + place % required.len()],
            "additionalProperties": false,
            "$defs": { "order": { "type": "string", "enum": ["up", "down"] } },
        });
        tool(&format!("notes__tool_{place}"), schema)
    };
    shapes.chunks(3).enumerate().map(each).chain([tool("notes__now", json!({ "type": "object" }))]).collect()
}

/// How many calls were valid, how many were cut off, and whether all had the template's form; the first that is neither.
async fn calls_of(template: &str, count: u32) -> Result<(u32, u32, bool), String> {
    let ends = ["<|eot_id|>", "</s>", "<end_of_turn>", "<|end|>", "<|call|>", "<|end_of_text|>", "<EOT>"];
    let more_tokens = ends.map(str::to_owned).to_vec();
    let fixture =
        random_model(Recipe { context: 16384, more_tokens, ..Recipe::default() }.template(template)).await;
    let tools = tools();
    let (mut valid, mut cut, mut own) = (0, 0, true);
    for seed in 0..count {
        let reply = ask(
            &fixture.model,
            ChatRequest {
                tools: tools.clone(),
                tool_choice: ToolChoice::Tool(tools[seed as usize % tools.len()].name.clone()),
                sampling: Sampling {
                    seed: Some(seed),
                    temperature: Some(1.2),
                    max_tokens: Some(700),
                    ..Sampling::default()
                },
                ..request("Do something")
            },
        )
        .await;
        if let Some(error) = reply.error {
            return Err(error.to_string());
        }
        let raw =
            reply.data.as_ref().map(|data| data["lectern_local"]["raw"].to_string()).unwrap_or_default();
        own &= !raw.starts_with("\"{");
        if reply.finish == Some(FinishReason::Length) {
            cut += 1;
            continue;
        }
        for call in reply.tool_calls() {
            let tool = tools.iter().find(|tool| tool.name == call.tool).ok_or("an unknown tool")?;
            let arguments = Value::Object(call.arguments.clone());
            if call.malformed.is_some() || !jsonschema::is_valid(&tool.input_schema, &arguments) {
                return Err(format!("{} {arguments} from {raw}", call.tool));
            }
            valid += 1;
        }
    }
    Ok((valid, cut, own))
}

#[tokio::test(flavor = "multi_thread")]
async fn values_between_tags_are_held_to_their_schemas() {
    let Some(files) = templates() else {
        println!("SKIPPED: no chat templates here (run crates/local/tests/fetch-chat-templates)");
        return;
    };
    let count = if std::env::var_os("LECTERN_ALL_CALLS").is_some() { 100 } else { 12 };
    let (mut counts, mut failed) = (BTreeMap::new(), Vec::new());
    for file in files {
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        if TAGGED.iter().any(|tagged| name.starts_with(tagged)) {
            match calls_of(&std::fs::read_to_string(&file).unwrap(), count).await {
                Ok(counted) => _ = counts.insert(name, counted),
                Err(error) => failed.push(format!("{name}: {error}")),
            }
        }
    }
    println!("valid and cut off: {counts:?}");
    assert_eq!(failed, [] as [String; 0], "{}", failed.join("\n"));
    assert!(counts.values().all(|(valid, ..)| *valid >= count / 2), "{counts:?}");
    // Where a reply begins with thinking it is forced as JSON.
    let own = counts.values().filter(|(.., own)| *own).count();
    assert!(own >= counts.len().min(5), "{counts:?}");
}
