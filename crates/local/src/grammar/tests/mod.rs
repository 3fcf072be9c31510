//! What the grammars write is valid, what is valid is mostly taken, and odd schemas do no harm.

mod hostile;
mod pythonic;
mod random;
mod reader;

use jsonschema::is_valid;
use serde_json::{Value, json};

use super::*;
use reader::{Grammar, Random};

fn grammar(schema: &Value) -> (Compiled, Grammar) {
    let mut rules = Rules::default();
    let compiled = compile(schema, &mut rules).unwrap_or_else(|| panic!("no grammar for {schema}"));
    (compiled, Grammar::read(&rules.text()))
}

/// Everything that the grammar of a schema writes fits the schema.
fn assert_sound(schema: &Value) {
    let (compiled, grammar) = grammar(schema);
    assert!(compiled.open.is_empty(), "{:?} of {schema}", compiled.open);
    let validator = jsonschema::options().should_validate_formats(true).build(schema).unwrap();
    for seed in 0..300 {
        let text = grammar.write(&compiled.rule, &mut Random(seed));
        let value: Value =
            serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text:?} of {schema}"));
        assert!(validator.is_valid(&value), "{value} is no {schema}");
    }
}

fn of(property: Value) -> Value {
    json!({ "type": "object", "properties": { "x": property }, "required": ["x"], "additionalProperties": false })
}

fn takes(schema: &Value, value: &Value) -> bool {
    let (compiled, grammar) = grammar(schema);
    grammar.takes(&compiled.rule, &value.to_string())
}

#[test]
fn what_is_written_is_valid() {
    for property in [
        json!({ "type": "string", "minLength": 2, "maxLength": 5 }),
        json!({ "type": "string", "maxLength": 1000 }),
        json!({ "type": "string", "minLength": 300 }),
        json!({ "type": "string", "pattern": "^[a-z]{2,4}-\\d+$" }),
        json!({ "type": "string", "pattern": "[A-Z]" }),
        json!({ "type": "string", "pattern": "^(\"|\\\\|\\n)+$" }),
        json!({ "type": "string", "pattern": "^\\S+@\\S+\\.\\w+$" }),
        json!({ "type": "string", "pattern": "^a|b$" }),
        json!({ "type": "string", "pattern": "^[^/]+$", "minLength": 3, "maxLength": 6 }),
        json!({ "type": "string", "pattern": "^[\\s\\S]*$" }),
        json!({ "type": "string", "format": "date-time" }),
        json!({ "type": "string", "format": "uuid" }),
        json!({ "type": "string", "format": "date" }),
        json!({ "type": "string", "format": "time" }),
        json!({ "type": "string", "format": "uri" }),
        json!({ "type": "string", "format": "uri-reference" }),
        json!({ "type": "string", "format": "email" }),
        json!({ "type": "string", "format": "hostname" }),
        json!({ "type": "string", "format": "ipv4" }),
        json!({ "type": "integer", "minimum": -17, "maximum": 4032 }),
        json!({ "type": "integer", "exclusiveMinimum": 0 }),
        json!({ "type": "integer", "minimum": -9_007_199_254_740_991_i64, "maximum": 9_007_199_254_740_991_i64 }),
        json!({ "type": "integer", "minimum": 3, "maximum": 50, "multipleOf": 5 }),
        json!({ "type": "integer", "maximum": -100 }),
        json!({ "type": "number", "minimum": 0, "maximum": 1 }),
        json!({ "type": "number", "minimum": 0.25, "maximum": 0.75 }),
        json!({ "type": "number", "exclusiveMinimum": 0, "maximum": 2.5 }),
        json!({ "type": "number", "minimum": -1.5, "exclusiveMaximum": 1.05 }),
        json!({ "type": "number", "minimum": -90, "maximum": 90 }),
        json!({ "type": "number", "exclusiveMinimum": 1.5, "exclusiveMaximum": 1.75 }),
        json!({ "type": "number", "minimum": 100.125 }),
        json!({ "type": "number" }),
        json!({ "enum": ["a", "b", 1, null, { "k": [1, "z"] }] }),
        json!({ "type": "string", "enum": ["a", "ab", "abc", "b", 4] }),
        json!({ "const": { "deep": ["x", 1.5] } }),
        json!({ "type": ["string", "null"], "maxLength": 3 }),
        json!({ "type": "array", "items": { "type": "integer", "minimum": 1 }, "minItems": 2, "maxItems": 4 }),
        json!({ "type": "array", "items": { "enum": ["r", "w", "x"] }, "uniqueItems": true }),
        json!({ "type": "array", "items": { "enum": ["r", "w", "x"] }, "uniqueItems": true, "minItems": 1 }),
        json!({ "type": "array", "maxItems": 0 }),
        json!({ "type": "array", "prefixItems": [{ "type": "string" }, { "type": "integer" }], "items": false }),
        json!({ "type": "array", "prefixItems": [{ "type": "string" }], "items": { "type": "null" }, "minItems": 3 }),
        json!({ "anyOf": [{ "type": "string", "maxLength": 4 }, { "type": "array", "items": { "type": "string" } }] }),
        json!({ "oneOf": [{ "type": "integer" }, { "type": "string" }] }),
        json!({ "oneOf": [
            { "type": "object", "properties": { "kind": { "const": "a" }, "v": { "type": "integer" } }, "required": ["kind", "v"] },
            { "type": "object", "properties": { "kind": { "const": "b" }, "w": { "type": "string" } }, "required": ["kind"] },
        ] }),
        json!({ "allOf": [{ "type": "integer", "minimum": 3 }, { "maximum": 9 }] }),
        json!({ "type": "object" }),
        json!({ "type": "object", "additionalProperties": { "type": "integer" } }),
        json!({ "type": "object", "additionalProperties": { "type": "integer" }, "minProperties": 1, "maxProperties": 1 }),
        json!({ "type": "object", "additionalProperties": false }),
        json!({ "type": "object", "properties": { "a": { "type": "string" }, "ab": { "type": "null" } }, "additionalProperties": { "type": "boolean" } }),
        json!({ "type": "object", "properties": { "a": {}, "b": {} }, "minProperties": 1, "additionalProperties": false }),
        json!({ "type": "object", "propertyNames": { "pattern": "^[a-z]+$" }, "additionalProperties": { "type": "null" } }),
        json!({ "type": "object", "patternProperties": { "^x-": { "type": "integer" } }, "additionalProperties": false }),
        json!({ "type": "object", "required": ["missing"] }),
        json!({ "properties": { "näme \"q\" \\": { "const": 1 } }, "required": ["näme \"q\" \\"] }),
        json!({ "minimum": 3 }),
        json!(true),
        json!({}),
        json!({ "type": "object", "properties": { "never": false, "ok": { "type": "null" } }, "unevaluatedProperties": false }),
        json!({ "anyOf": [{ "required": ["a"] }, { "required": ["b"] }], "type": "object",
                "properties": { "a": { "type": "integer" }, "b": { "type": "integer" } } }),
        json!({ "type": "object", "properties": { "a": { "type": "integer" } },
                "oneOf": [{ "properties": { "k": { "const": 1 } }, "required": ["k"] },
                          { "properties": { "k": { "const": 2 } }, "required": ["k"] }] }),
    ] {
        assert_sound(&of(property));
    }
}

#[test]
fn references_are_followed_and_end() {
    let tree = json!({
        "type": "object",
        "properties": { "root": { "$ref": "#/$defs/node" }, "extra": { "$ref": "#tag", "description": "x" } },
        "required": ["root"],
        "$defs": {
            "node": {
                "type": "object",
                "properties": {
                    "name": { "type": "string", "maxLength": 3 },
                    "children": { "type": "array", "items": { "$ref": "#/$defs/node" } },
                    "next": { "anyOf": [{ "$ref": "#/$defs/node" }, { "type": "null" }] },
                },
                "required": ["name", "children"],
            },
            "tagged": { "$anchor": "tag", "enum": ["t"] },
        },
    });
    assert_sound(&tree);
    assert!(takes(
        &tree,
        &json!({ "root": { "name": "a", "children": [{ "name": "b", "children": [] }], "next": null } })
    ));
    // Endless values do not exist.
    let endless = json!({ "type": "object", "properties": { "a": { "$ref": "#" } }, "required": ["a"] });
    assert_eq!(compile(&endless, &mut Rules::default()), None);
    let circle = json!({ "type": "object", "properties": { "a": { "$ref": "#/$defs/a" } }, "$defs": {
        "a": { "$ref": "#/$defs/b" }, "b": { "$ref": "#/$defs/a" } } });
    assert!(takes(&circle, &json!({})));
}

#[test]
fn what_a_grammar_cannot_say_is_named() {
    for (property, keyword) in [
        (json!({ "type": "string", "pattern": "(?=a)b" }), "pattern"),
        (json!({ "type": "string", "pattern": "\\bword\\b" }), "pattern"),
        (json!({ "not": { "type": "string" } }), "not"),
        (json!({ "type": "number", "multipleOf": 0.01 }), "multipleOf"),
        (json!({ "type": "array", "items": { "type": "string" }, "uniqueItems": true }), "uniqueItems"),
        (json!({ "if": { "type": "string" }, "then": { "maxLength": 3 } }), "if"),
        (json!({ "oneOf": [{ "type": "integer" }, { "type": "number" }] }), "oneOf"),
        (json!({ "$ref": "https://example.org/schema.json" }), "$ref https://example.org/schema.json"),
        (json!({ "type": "object", "dependentRequired": { "a": ["b"] } }), "dependentRequired"),
    ] {
        let (compiled, _) = grammar(&of(property.clone()));
        let expected = format!("x: {keyword}");
        assert!(compiled.open.contains(&expected), "{property}: {:?}", compiled.open);
    }
}

#[test]
fn usual_values_are_taken() {
    let schema = json!({
        "type": "object",
        "properties": {
            "path": { "type": "string" },
            "head": { "type": "number" },
            "when": { "type": "string", "format": "date-time" },
            "edits": { "type": "array", "items": {
                "type": "object",
                "properties": { "oldText": { "type": "string" }, "newText": { "type": "string" } },
                "required": ["oldText", "newText"],
            } },
            "any": {},
        },
        "required": ["path"],
    });
    for value in [
        json!({ "path": "a/b c.md" }),
        json!({ "path": "né \"q\"\\ \n", "head": -1.5e3 }),
        json!({ "path": "", "when": "2026-12-31T23:59:59.5+01:00" }),
        json!({ "path": "x", "edits": [{ "oldText": "", "newText": "{}" }], "any": { "a": [null, 1, "x"] } }),
    ] {
        assert!(takes(&schema, &value), "{value}");
    }
    let (compiled, grammar) = grammar(&schema);
    let spaced = "{\n  \"path\": \"a\",\n  \"edits\": [\n    {\"oldText\": \"\\ud83e\\udd80\", \"newText\": \"\\u00e9\"}\n  ]\n}";
    assert!(grammar.takes(&compiled.rule, spaced));
    for bad in [
        "{}",
        "{\"path\": 1}",
        "{\"path\": \"a\", \"other\": 1}",
        "{\"path\": \"\\ud83e\"}",
        "{\"path\": \"a\",}",
    ] {
        assert!(!grammar.takes(&compiled.rule, bad), "{bad}");
    }
}

#[test]
fn numbers_at_the_bounds() {
    let bounded = of(json!({ "type": "number", "minimum": -0.5, "maximum": 12.75 }));
    for (number, fits) in [
        ("-0.5", true),
        ("12.75", true),
        ("12.7", true),
        ("0", true),
        ("5", true),
        ("12.76", false),
        ("-0.6", false),
        ("13", false),
        ("-1", false),
        ("12.0", true),
        ("3.999", true),
    ] {
        let (compiled, grammar) = grammar(&bounded);
        assert_eq!(grammar.takes(&compiled.rule, &format!("{{\"x\": {number}}}")), fits, "{number}");
    }
    for (low, high) in [(0, 9), (1, 10), (-5, 5), (7, 1234), (99, 100), (-1000, -999), (0, 0)] {
        let schema = of(json!({ "type": "integer", "minimum": low, "maximum": high }));
        let (compiled, grammar) = grammar(&schema);
        for number in low - 3..=high + 3 {
            let fits = (low..=high).contains(&number);
            assert_eq!(grammar.takes(&compiled.rule, &format!("{{\"x\":{number}}}")), fits, "{number}");
        }
    }
}

#[test]
fn odd_schemas_do_no_harm() {
    let many: Vec<String> = (0..5000).map(|place| format!("value {place}")).collect();
    let deep =
        (0..300).fold(json!({ "type": "string" }), |inner, _| json!({ "type": "array", "items": inner }));
    for schema in [
        json!({}),
        json!(true),
        json!(null),
        json!({ "type": "object", "properties": [] }),
        json!({ "type": 4, "properties": { "a": { "type": "madeup" } } }),
        json!({ "properties": { "": { "type": "integer" }, "a\u{0}b": {}, "🦀": { "const": "🦀" } } }),
        of(json!({ "enum": many })),
        of(deep),
        of(json!({ "type": "string", "minLength": 1e18, "maxLength": 1e19 })),
        of(json!({ "type": "string", "pattern": "^(((a{1,999}){1,999}){1,999})$" })),
        of(json!({ "type": "string", "pattern": "[" })),
        of(json!({ "type": "integer", "multipleOf": 0 })),
        of(json!({ "allOf": [{ "anyOf": [{ "minimum": 1 }, {}] }, { "anyOf": [{ "maximum": 5 }, {}] }] })),
    ] {
        let mut rules = Rules::default();
        let compiled = compile(&schema, &mut rules);
        let text = rules.text();
        let grammar = Grammar::read(&text);
        if let Some(compiled) = compiled {
            let written = grammar.write(&compiled.rule, &mut Random(1));
            assert!(serde_json::from_str::<Value>(&written).is_ok(), "{written} of {schema}");
        }
        assert!(text.len() < 400_000, "{} bytes", text.len());
    }
    for never in [json!(false), json!({ "type": "string" }), of(json!(false)), of(json!({ "enum": [] }))] {
        let compiled = compile(&never, &mut Rules::default());
        assert!(compiled.is_none() || !never.is_object(), "{never}");
    }
}

#[test]
fn every_tool_of_a_kind_shares_its_rules() {
    let schema = of(json!({ "type": "string", "maxLength": 20 }));
    let mut rules = Rules::default();
    compile(&schema, &mut rules).unwrap();
    let once = rules.size();
    compile(&schema, &mut rules).unwrap();
    assert_eq!(rules.size(), once);
    assert!(is_valid(&schema, &json!({ "x": "" })));
}
