//! Schemas that describe more than can be written down: they are cut short and named, in bounded work.

use serde_json::{Map, Value, json};

use super::reader::{Grammar, Random};
use super::{Rules, bind_tagged, compile, of, one_json_call, with_plain_types};

/// Bytes of the largest grammar that one of these gives: the bound, and what was begun when it was reached.
const LARGEST: usize = 6_000_000;

fn chain(levels: usize, kind: &str, times: usize) -> Value {
    let mut definitions = Map::new();
    for level in 0..levels {
        let next = json!({ "$ref": format!("#/$defs/d{}", level + 1) });
        definitions.insert(format!("d{level}"), json!({ kind: vec![next; times] }));
    }
    definitions.insert(format!("d{levels}"), json!({ "type": "string" }));
    json!({ "type": "object", "properties": { "x": { "$ref": "#/$defs/d0" } }, "required": ["x"], "$defs": definitions })
}

fn hostile() -> Vec<(&'static str, Value)> {
    let many = |count: usize, one: &dyn Fn(usize) -> Value| -> Vec<Value> { (0..count).map(one).collect() };
    let fields: Map<String, Value> = (0..8)
        .map(|place| {
            (format!("f{place}"), json!({ "$ref": "#/$defs/n", "minProperties": 0, "description": "n" }))
        })
        .collect();
    let bushy = json!({ "type": "object", "properties": { "x": { "$ref": "#/$defs/n" } }, "$defs": { "n": { "type": "object", "properties": fields } } });
    let wide: Map<String, Value> =
        (0..20_000).map(|place| (format!("p{place}"), json!({ "type": "integer" }))).collect();
    let names: Map<String, Value> =
        (0..400).map(|place| (format!("{place}{}", "n".repeat(50)), json!({}))).collect();
    let deep = |depth: usize, keyword: &str| {
        (0..depth).fold(json!({ "type": "string" }), |inner, _| match keyword {
            "properties" => json!({ "type": "object", "properties": { "a": inner }, "required": ["a"] }),
            "anyOf" => json!({ "anyOf": [inner, { "type": "null" }] }),
            "allOf" => json!({ "allOf": [inner, { "maxLength": 9 }] }),
            keyword => json!({ "type": "array", keyword: inner }),
        })
    };
    let pairs = many(40, &|place| json!({ "anyOf": [{ "minimum": place }, { "maximum": 90 + place }] }));
    vec![
        ("references with notes", bushy),
        ("allOf doubled", chain(30, "allOf", 2)),
        ("anyOf doubled", chain(30, "anyOf", 2)),
        ("oneOf of many", chain(6, "oneOf", 50)),
        ("itself twice", json!({ "allOf": [{ "$ref": "#" }, { "$ref": "#" }] })),
        ("itself in choices", json!({ "anyOf": [{ "$ref": "#" }, { "$ref": "#" }, { "type": "object" }] })),
        ("choices of choices", of(json!({ "type": "integer", "allOf": pairs }))),
        ("long enumeration", of(json!({ "enum": many(10_000, &|place| json!(format!("value {place} é"))) }))),
        ("nested beginnings", of(json!({ "enum": many(2000, &|place| json!("a".repeat(place))) }))),
        (
            "mixed enumeration",
            of(
                json!({ "enum": many(10_000, &|place| if place % 2 == 0 { json!(place) } else { json!([place]) }) }),
            ),
        ),
        (
            "constants in choices",
            of(
                json!({ "oneOf": many(10_000, &|place| json!({ "const": format!("c{place}"), "title": "t" })) }),
            ),
        ),
        (
            "objects in choices",
            of(
                json!({ "anyOf": many(5000, &|place| json!({ "type": "object", "properties": { "k": { "const": place } }, "required": ["k"] })) }),
            ),
        ),
        ("many properties", json!({ "type": "object", "properties": wide })),
        (
            "many required properties",
            json!({ "type": "object", "properties": wide, "required": wide.keys().take(1500).collect::<Vec<_>>() }),
        ),
        (
            "many names and others",
            json!({ "type": "object", "properties": names, "additionalProperties": { "type": "null" } }),
        ),
        (
            "a long name and others",
            json!({ "properties": { "n".repeat(100_000): {} }, "additionalProperties": {} }),
        ),
        ("a deep list", of(deep(100, "items"))),
        ("a deep object", of(deep(100, "properties"))),
        ("deep choices", of(deep(100, "anyOf"))),
        ("deep conjunctions", of(deep(100, "allOf"))),
        ("deep tuples", of((0..100).fold(json!({}), |inner, _| json!({ "prefixItems": [inner, {}] })))),
        ("a long pattern", of(json!({ "pattern": "a".repeat(1_000_000) }))),
        ("a repeated pattern", of(json!({ "pattern": "^(((a{1,200}){1,200}){1,200})$" }))),
        ("a pattern of nothing", of(json!({ "pattern": "^((a*)*|(b?){9})*$" }))),
        ("a pattern of all letters", of(json!({ "pattern": "^(\\p{L}|\\p{N}){1,500}$" }))),
        ("deep groups", of(json!({ "pattern": format!("{}a{}", "(".repeat(1000), ")".repeat(1000)) }))),
        (
            "many alternatives",
            of(
                json!({ "pattern": many(900, &|place| json!(place.to_string())).iter().filter_map(Value::as_str).collect::<Vec<_>>().join("|") }),
            ),
        ),
        ("long texts", of(json!({ "type": "string", "minLength": 1e9, "maxLength": 1e18 }))),
        (
            "long lists",
            of(json!({ "type": "array", "minItems": 1e9, "items": { "type": "array", "minItems": 300 } })),
        ),
        (
            "large numbers",
            of(json!({ "type": "integer", "minimum": -1e300, "maximum": 1e300, "multipleOf": 1e200 })),
        ),
        ("small numbers", of(json!({ "type": "number", "exclusiveMinimum": 0, "maximum": 1e-300 }))),
        (
            "not a schema",
            json!({ "type": [1, { "a": [] }], "properties": 3, "required": { "a": 1 }, "enum": "x", "allOf": {}, "$ref": 5 }),
        ),
        (
            "an older draft",
            json!({ "id": "http://x/y#", "type": "object", "properties": { "x": { "$ref": "#item" } }, "definitions": { "i": { "id": "#item", "enum": ["ok"] } } }),
        ),
    ]
}

#[test]
fn hostile_schemas_are_cut_short() {
    for (name, schema) in hostile() {
        let began = std::time::Instant::now();
        let mut rules = Rules::default();
        let compiled = compile(&schema, &mut rules);
        assert!(rules.size() < LARGEST, "{name}: {} bytes", rules.size());
        if let Some(compiled) = compiled {
            let grammar = Grammar::read(&rules.text());
            for seed in 0..3 {
                let text = grammar.write(&compiled.rule, &mut Random(seed));
                let read = serde_json::from_str::<Value>(&text);
                assert!(read.is_ok_and(|value| value.is_object()), "{name}: {text:.200}");
            }
        }
        let tools = [json!({ "type": "function", "function": { "name": "t", "parameters": schema } })];
        assert!(one_json_call(&tools).unwrap().text.len() < LARGEST, "{name}");
        let plain = with_plain_types(&tools, false);
        assert_eq!(plain.len(), 1, "{name}");
        let _ = bind_tagged("root ::= tool-t\ntool-t ::= \"x\"\n", "", &tools);
        println!("{name}: {} bytes, {:?}", rules.size(), began.elapsed());
    }
}

#[test]
fn what_is_cut_short_is_named() {
    for (name, keyword) in [
        ("references with notes", "can be followed"),
        ("objects in choices", "anyOf"),
        ("a deep list", "this deep"),
        ("a repeated pattern", "pattern"),
        ("a pattern of nothing", "pattern"),
        ("long texts", "minLength"),
        ("many names and others", "additionalProperties"),
    ] {
        let (_, schema) = hostile().into_iter().find(|(known, _)| *known == name).unwrap();
        let compiled = compile(&schema, &mut Rules::default()).unwrap();
        assert!(compiled.open.iter().any(|open| open.contains(keyword)), "{name}: {:?}", compiled.open);
    }
    let older = hostile().pop().unwrap().1;
    assert!(compile(&older, &mut Rules::default()).unwrap().open.is_empty());
}

#[test]
fn one_tool_does_not_cost_all_others_their_grammar() {
    let tool = |name: &str, schema: Value| json!({ "type": "function", "function": { "name": name, "parameters": schema } });
    let mut tools: Vec<Value> = hostile().into_iter().map(|(name, schema)| tool(name, schema)).collect();
    tools.insert(0, tool("first", of(json!({ "enum": ["only this"] }))));
    let bound = one_json_call(&tools).unwrap();
    assert!(bound.text.len() < LARGEST && bound.text.contains("only this"));
    assert!(!bound.open.contains_key("first") && !bound.loose.contains("first"));
}
