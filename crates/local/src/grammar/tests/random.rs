//! Schemas at random: whatever is written under a grammar that holds all of a schema is valid.

use serde_json::{Map, Value, json};

use super::reader::{Grammar, Random};
use super::{Rules, compile};

fn pick<'a, T>(random: &mut Random, all: &'a [T]) -> &'a T {
    &all[random.below(all.len())]
}

fn chance(random: &mut Random, one_in: usize) -> bool {
    random.below(one_in) == 0
}

fn text(random: &mut Random) -> Value {
    let mut out = json!({ "type": "string" });
    let patterns = [
        "^[a-z]+$",
        "a|b",
        "^(foo|bar)-[0-9]{2,3}$",
        "^$",
        "^\\w{2,}\\s\\d*$",
        "[^x]$",
        "^(a+b)+$",
        "^é{1,3}[🦀-🦅]?$",
        "^/(?:[^/]+/)*$",
        "^\\{\"k\": .*\\}$",
        "^[\\]\\[\\\\-]+$",
        "^.{3}$",
        "(?:)",
        "^(?:a|)b$",
        "\\.md$",
        "^[^\\n\"]*$",
        "^a{0}b$",
        "^(\\d{1,3}\\.){3}\\d{1,3}$",
    ];
    let formats =
        ["date", "date-time", "time", "email", "uri", "uuid", "ipv4", "hostname", "made-up", "uri-reference"];
    match random.below(6) {
        0 => out["pattern"] = json!(pick(random, &patterns)),
        1 => out["format"] = json!(pick(random, &formats)),
        2 => out["maxLength"] = json!(random.below(7)),
        3 => out["minLength"] = json!(random.below(300)),
        4 => {
            out["minLength"] = json!(random.below(4));
            out["maxLength"] = json!(3 + random.below(1000));
        }
        _ => {}
    }
    if chance(random, 8) {
        out["maxLength"] = json!(5 + random.below(9));
    }
    out
}

fn number(random: &mut Random) -> Value {
    let whole = random.below(2) == 0;
    let mut out = json!({ "type": if whole { "integer" } else { "number" } });
    let bounds = [-1e6, -1000.5, -37.0, -1.0, -0.25, 0.0, 0.001, 0.5, 1.0, 9.99, 10.0, 99.0, 1234.5, 1e7];
    let low = random.below(bounds.len());
    let high = low + random.below(bounds.len() - low);
    if !chance(random, 3) {
        out[*pick(random, &["minimum", "exclusiveMinimum"])] = json!(bounds[low]);
    }
    if !chance(random, 3) {
        out[*pick(random, &["maximum", "exclusiveMaximum"])] = json!(bounds[high]);
    }
    if chance(random, 5) {
        out["multipleOf"] = json!(*pick(random, &[1.0, 2.0, 5.0, 0.5, 10.0, 250.0]));
    }
    out
}

fn literal(random: &mut Random) -> Value {
    let all = [
        json!("a"),
        json!("ab"),
        json!(""),
        json!("größe 🦀"),
        json!("q\"\\\n"),
        json!(1),
        json!(-2.5),
        json!(0),
        json!(true),
        json!(null),
        json!([]),
        json!({}),
        json!([1, "x"]),
        json!({ "k": { "é": null } }),
        json!("\u{7f}\u{1}"),
        json!(1e20),
    ];
    pick(random, &all).clone()
}

fn list(random: &mut Random, depth: usize) -> Value {
    let mut out = json!({ "type": "array" });
    if !chance(random, 4) {
        out["items"] = schema(random, depth - 1);
    }
    if chance(random, 3) {
        out["minItems"] = json!(random.below(4));
    }
    if chance(random, 3) {
        out["maxItems"] = json!(random.below(5));
    }
    if chance(random, 5) {
        out["prefixItems"] = (0..random.below(3)).map(|_| schema(random, depth - 1)).collect();
    }
    if chance(random, 8) {
        out["uniqueItems"] = json!(true);
    }
    out
}

fn object(random: &mut Random, depth: usize) -> Value {
    let names = ["a", "ab", "b", "größe", "$x", "q\"", "", "a b"];
    let mut out = json!({ "type": "object" });
    let mut properties = Map::new();
    for _ in 0..random.below(4) {
        properties.insert((*pick(random, &names)).to_owned(), schema(random, depth - 1));
    }
    let mut required: Vec<&str> =
        properties.keys().map(String::as_str).filter(|_| chance(random, 2)).collect();
    if chance(random, 9) {
        required.push("undeclared");
    }
    out["required"] = json!(required);
    if !chance(random, 5) {
        out["properties"] = Value::Object(properties);
    }
    match random.below(5) {
        0 => out["additionalProperties"] = json!(false),
        1 => out["additionalProperties"] = schema(random, depth - 1),
        2 => out["additionalProperties"] = json!(true),
        _ => {}
    }
    if chance(random, 6) {
        out["minProperties"] = json!(random.below(3));
    }
    if chance(random, 6) {
        out["maxProperties"] = json!(random.below(4));
    }
    if chance(random, 9) {
        out["patternProperties"] = json!({ "^x": schema(random, depth - 1) });
    }
    if chance(random, 9) {
        out["propertyNames"] = json!({ "pattern": "^[a-z]{1,3}$" });
    }
    out
}

/// A schema of any kind.
pub(super) fn schema_at_random(random: &mut Random) -> Value {
    schema(random, 2)
}

fn schema(random: &mut Random, depth: usize) -> Value {
    let several = |random: &mut Random| -> Value {
        (0..1 + random.below(3)).map(|_| schema(random, depth - 1)).collect()
    };
    let mut out = match random.below(if depth == 0 { 8 } else { 16 }) {
        0 | 1 => text(random),
        2 | 3 => number(random),
        4 => json!({ "enum": (0..1 + random.below(5)).map(|_| literal(random)).collect::<Vec<_>>() }),
        5 => json!({ "const": literal(random) }),
        6 => pick(
            random,
            &[json!({}), json!(true), json!({ "type": "boolean" }), json!({ "type": "null" }), json!(false)],
        )
        .clone(),
        7 => {
            json!({ "$ref": *pick(random, &["#/$defs/leaf", "#/$defs/tree", "#named", "#/$defs/none", "other.json#/x"]) })
        }
        8 | 9 => list(random, depth),
        10..=12 => object(random, depth),
        13 => json!({ "anyOf": several(random) }),
        14 => json!({ "oneOf": several(random) }),
        _ => json!({ "allOf": several(random) }),
    };
    if let Value::Object(fields) = &mut out {
        if chance(random, 6) {
            fields.insert("description".to_owned(), json!("Some words"));
        }
        if chance(random, 12) {
            fields.insert("type".to_owned(), json!(["string", "integer", "null"]));
        }
        if chance(random, 30) {
            fields.insert("not".to_owned(), json!({ "const": 1 }));
        }
    }
    out
}

fn root(random: &mut Random) -> Value {
    json!({
        "type": "object",
        "properties": { "x": schema(random, 3), "y": schema(random, 1) },
        "required": ["x"],
        "additionalProperties": false,
        "$defs": {
            "leaf": { "type": "integer", "minimum": 1, "maximum": 5 },
            "tree": {
                "type": "object",
                "properties": { "of": { "type": "array", "items": { "$ref": "#/$defs/tree" } }, "n": { "$ref": "#/$defs/leaf" } },
                "required": ["of"],
            },
            "named": { "$anchor": "named", "type": ["string", "null"], "maxLength": 2 },
        },
    })
}

#[test]
fn what_random_schemas_let_write_is_valid() {
    let count = if std::env::var_os("LECTERN_ALL_CALLS").is_some() { 60_000 } else { 3000 };
    let (mut held, mut open, mut none) = (0, 0, 0);
    for seed in 0..count {
        let mut random = Random(seed);
        random.below(2);
        let schema = root(&mut random);
        let mut rules = Rules::default();
        let Some(compiled) = compile(&schema, &mut rules) else {
            none += 1;
            continue;
        };
        let grammar = Grammar::read(&rules.text());
        let whole = compiled.open.is_empty();
        // One that leads nowhere cannot be asked.
        let build = || jsonschema::options().should_validate_formats(true).build(&schema).ok();
        let validator = whole.then(build).flatten();
        held += usize::from(whole);
        open += usize::from(!whole);
        for _ in 0..12 {
            let text = grammar.write(&compiled.rule, &mut random);
            let value: Value = serde_json::from_str(&text)
                .unwrap_or_else(|error| panic!("{seed}: {error}: {text:?} of {schema}"));
            if let Some(validator) = &validator {
                let errors: Vec<String> =
                    validator.iter_errors(&value).map(|error| error.to_string()).collect();
                assert!(errors.is_empty(), "{seed}: {errors:?}\n{value}\n{schema}");
            }
        }
    }
    println!("{held} held, {open} in parts, {none} that nothing fits");
    assert!(held * 2 > count as usize);
}
