use lectern_core::{ChatRequest, FinishReason, Sampling, ToolChoice, ToolMode};
use lectern_test_gguf::{CHATML, Recipe};
use serde_json::{Value, json};

use crate::support::{Fixture, ask, random_model, request, tool};

fn schemas() -> Vec<(&'static str, Value)> {
    vec![
        (
            "pick",
            json!({
                "type": "object",
                "properties": { "colour": { "enum": ["red", "green", "blue"] } },
                "required": ["colour"],
            }),
        ),
        (
            "count",
            json!({
                "type": "object",
                "properties": { "n": { "type": "integer", "minimum": 1, "maximum": 99 }, "exact": { "type": "boolean" } },
                "required": ["n"],
            }),
        ),
        (
            "place",
            json!({
                "type": "object",
                "properties": {
                    "at": {
                        "type": "object",
                        "properties": { "x": { "type": "number" }, "label": { "type": "string", "maxLength": 12 } },
                        "required": ["x", "label"],
                    },
                },
                "required": ["at"],
            }),
        ),
        (
            "tag",
            json!({
                "type": "object",
                "properties": {
                    "tags": { "type": "array", "items": { "enum": ["a", "b"] }, "minItems": 1, "maxItems": 3 },
                    "note": { "type": ["string", "null"], "maxLength": 8 },
                },
                "required": ["tags"],
            }),
        ),
        ("now", json!({ "type": "object", "properties": {} })),
    ]
}

fn forced(seed: u32, choice: ToolChoice) -> ChatRequest {
    ChatRequest {
        tools: schemas().into_iter().map(|(name, schema)| tool(name, schema)).collect(),
        tool_choice: choice,
        sampling: Sampling {
            seed: Some(seed),
            temperature: Some(1.2),
            max_tokens: Some(600),
            ..Sampling::default()
        },
        ..request("Do something")
    }
}

fn assert_valid(reply: &crate::support::Reply, seed: u32) -> String {
    assert_eq!(reply.error, None, "seed {seed}");
    assert_eq!(
        reply.finish,
        Some(FinishReason::ToolCalls),
        "seed {seed}: {:?} {:?}",
        reply.text,
        reply.calls
    );
    let calls = reply.tool_calls();
    assert_eq!(calls.len(), 1, "seed {seed}: {calls:?}");
    assert_eq!(calls[0].malformed, None, "seed {seed}");
    let (_, schema) =
        schemas().into_iter().find(|(name, _)| *name == calls[0].tool.as_str()).expect("a known tool");
    let arguments = Value::Object(calls[0].arguments.clone());
    assert!(jsonschema::is_valid(&schema, &arguments), "seed {seed}: {} {arguments}", calls[0].tool);
    calls[0].tool.0.clone()
}

async fn fixture(template: Option<&str>) -> Fixture {
    let recipe = Recipe { context: 8192, ..Recipe::default() };
    random_model(match template {
        Some(template) => recipe.template(template),
        None => recipe,
    })
    .await
}

#[tokio::test]
async fn random_weights_forced_to_call_give_valid_calls() {
    let fixture = fixture(None).await;
    let mut called = std::collections::BTreeSet::new();
    for seed in 0..40 {
        called.insert(assert_valid(&ask(&fixture.model, forced(seed, ToolChoice::Required)).await, seed));
    }
    assert!(called.len() >= 3, "only {called:?} were called");
}

#[tokio::test]
async fn a_named_tool_is_the_one_that_is_called() {
    let fixture = fixture(None).await;
    for (seed, (name, _)) in (0..).zip(schemas()) {
        let reply = ask(&fixture.model, forced(seed, ToolChoice::Tool(name.into()))).await;
        assert_eq!(assert_valid(&reply, seed), name);
    }
}

#[tokio::test]
async fn a_model_without_tools_in_its_template_can_be_forced_too() {
    let fixture = fixture(Some(CHATML)).await;
    for seed in 0..8 {
        let request = ChatRequest { tool_mode: ToolMode::Prompted, ..forced(seed, ToolChoice::Required) };
        assert_valid(&ask(&fixture.model, request).await, seed);
    }
}

#[tokio::test]
async fn no_tool_is_called_when_none_may_be() {
    let fixture = fixture(None).await;
    let mut with = forced(1, ToolChoice::None);
    with.sampling.max_tokens = Some(30);
    let reply = ask(&fixture.model, with.clone()).await;
    assert_eq!((reply.error, reply.calls.len()), (None, 0));
    let off = ask(&fixture.model, ChatRequest { tool_mode: ToolMode::Off, ..with }).await;
    assert!(off.usage.prompt_tokens < reply.usage.prompt_tokens, "the tools are not described");
}

#[tokio::test]
async fn special_tokens_in_a_tools_description_stay_text() {
    let fixture = fixture(None).await;
    let mut with = forced(3, ToolChoice::Tool("pick".into()));
    let plain = ask(&fixture.model, with.clone()).await;
    with.tools[0].description.push_str("<|im_end|>");
    let reply = ask(&fixture.model, with).await;
    assert_valid(&reply, 3);
    assert_eq!(reply.usage.prompt_tokens, plain.usage.prompt_tokens + "<|im_end|>".len() as u32);
}

#[tokio::test]
async fn a_schema_that_llama_does_not_take_is_no_hindrance() {
    let fixture = fixture(None).await;
    let odd = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {
            "id": { "type": "string", "pattern": "[a-z", "maxLength": 900_000 },
            "ref": { "$ref": "https://example.org/unknown.json" },
            "any": true,
        },
        "required": ["id"],
    });
    for choice in [ToolChoice::Auto, ToolChoice::Required, ToolChoice::Tool("odd".into())] {
        for seed in 0..3 {
            let mut with = forced(seed, choice.clone());
            with.tools.push(tool("odd", odd.clone()));
            with.sampling.max_tokens = Some(60);
            let reply = ask(&fixture.model, with).await;
            assert_eq!(reply.error, None, "{choice:?}");
        }
    }
}

#[tokio::test]
async fn what_a_grammar_cannot_hold_is_told() {
    let fixture = fixture(None).await;
    let schema = json!({
        "type": "object",
        "properties": { "kind": { "enum": ["a", "b"], "not": { "const": "b" } } },
        "required": ["kind"],
    });
    let none_fits = json!({ "type": "object", "properties": { "a": false }, "required": ["a"] });
    for (name, schema, told) in
        [("half", schema, "half"), ("none", none_fits, "no grammar"), ("fine", json!({}), "")]
    {
        let mut with = forced(5, ToolChoice::Tool(name.into()));
        with.tools = vec![tool(name, schema)];
        with.sampling.max_tokens = Some(200);
        let reply = ask(&fixture.model, with).await;
        assert_eq!(reply.error, None, "{name}");
        let notices: Vec<_> = reply.notices.iter().filter(|(code, _)| code == "loose_grammar").collect();
        assert_eq!(notices.is_empty(), told.is_empty(), "{name}: {:?}", reply.notices);
        assert!(notices.iter().all(|(_, message)| message.contains(told)), "{name}: {notices:?}");
    }
}
