//! Arguments against schemas: a set of real tools with right and wrong calls, and schemas that mean harm.

use std::path::Path;

use lectern_core::validate::{MAX_ERRORS, ValidationError, validate};
use serde_json::{Value, json};

/// Set to a file of more cases to check them too; else one that may lie beside the repository is.
const MORE: &str = "LECTERN_TOOL_CASES";

fn cases() -> Vec<Value> {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let ours = crate_folder.join("tests/fixtures/tool-calls.jsonl");
    let beside = crate_folder.join("../../../shared/fixtures/tool-calls/cases.jsonl");
    let more = std::env::var_os(MORE).map(Into::into).or_else(|| beside.is_file().then_some(beside));
    let mut files = vec![ours];
    files.extend(more);
    let text: String = files.iter().map(|file| std::fs::read_to_string(file).unwrap()).collect();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn schema<'a>(case: &'a Value, call: &Value) -> &'a Value {
    let tools = case["tools"].as_array().unwrap();
    let tool = tools.iter().find(|tool| tool["function"]["name"] == call["name"]);
    &tool.unwrap_or_else(|| panic!("{}: no tool {}", case["id"], call["name"]))["function"]["parameters"]
}

#[test]
fn right_calls_pass_and_wrong_ones_do_not() {
    let (mut right, mut wrong) = (0, 0);
    for case in cases() {
        for call in case["expect"].as_array().unwrap() {
            let errors = validate(schema(&case, call), &call["arguments"]).unwrap();
            assert_eq!(errors, [], "{}: {call}", case["id"]);
            right += 1;
        }
        for call in case["bad"].as_array().unwrap() {
            let errors = validate(schema(&case, call), &call["arguments"]).unwrap();
            assert!(names(&errors, field(call)), "{}: {call}: {errors:?}", case["id"]);
            wrong += 1;
        }
    }
    assert!(right > 60 && wrong > 60, "{right} right and {wrong} wrong calls");
}

/// The field that is wrong: `required FIELD missing`, `FIELD has the wrong type`.
fn field(call: &Value) -> &str {
    let why = call["why"].as_str().unwrap();
    let missing = why.strip_prefix("required ").and_then(|rest| rest.strip_suffix(" missing"));
    missing.or_else(|| why.strip_suffix(" has the wrong type")).unwrap_or_else(|| panic!("{why}"))
}

/// Whether the words for the model name the field.
fn names(errors: &[ValidationError], field: &str) -> bool {
    errors.iter().any(|error| {
        let told = error.to_string();
        told.contains(&format!("/{field}:")) || told.contains(&format!("\"{field}\""))
    })
}

fn told(schema: Value, arguments: Value) -> Vec<String> {
    validate(&schema, &arguments).unwrap().iter().map(ValidationError::to_string).collect()
}

#[test]
fn an_error_says_where_what_and_instead_of_what() {
    let schema = json!({
        "type": "object",
        "properties": {
            "path": {"type": "string", "minLength": 1},
            "limit": {"type": "integer", "minimum": 1, "maximum": 50},
            "mode": {"enum": ["all", "any"]},
            "tags": {"type": "array", "items": {"type": ["string", "null"]}}
        },
        "required": ["path"],
        "additionalProperties": false
    });
    let wrong = json!({"path": "", "limit": "many", "mode": "some", "tags": ["a", 7]});
    assert_eq!(
        told(schema.clone(), wrong),
        [
            "/path: expected at least 1 characters, got \"\"",
            "/limit: expected integer, got string \"many\"",
            "/mode: expected one of [\"all\",\"any\"], got \"some\"",
            "/tags/1: expected null or string, got number 7",
        ]
    );
    let mut both = told(schema.clone(), json!({"pfad": "a", "limit": 99}));
    both.sort();
    assert_eq!(
        both,
        [
            "/limit: expected at most 50, got 99",
            "the arguments: expected no other properties than the schema's, got also `pfad`",
            "the arguments: expected the required property \"path\", got only `pfad`, `limit`",
        ]
    );
    assert_eq!(told(schema, json!([])), ["the arguments: expected object, got array []"]);
}

#[test]
fn the_draft_is_the_one_that_the_schema_names() {
    let tuple = |draft: Option<&str>| {
        let mut schema = json!({"properties": {"at": {"items": [{"type": "number"}]}}});
        if let Some(draft) = draft {
            schema["$schema"] = draft.into();
        }
        validate(&schema, &json!({"at": ["x"]}))
    };
    for draft in ["http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2019-09/schema"] {
        assert_eq!(tuple(Some(draft)).unwrap().len(), 1, "{draft}");
    }
    let prefix = json!({"properties": {"at": {"prefixItems": [{"type": "number"}]}}});
    assert_eq!(validate(&prefix, &json!({"at": ["x"]})).unwrap().len(), 1, "no draft means 2020-12");
    let unknown = json!({"$schema": "https://example.com/own", "required": ["a"]});
    assert_eq!(validate(&unknown, &json!({})).map(|errors| errors.len()), Ok(1), "an unknown one too");
}

#[test]
fn no_more_errors_are_told_than_a_model_can_use() {
    let required: Vec<String> = (0..100).map(|n| format!("p{n}")).collect();
    let errors = validate(&json!({"required": required}), &json!({})).unwrap();
    assert_eq!(errors.len(), MAX_ERRORS);
    let long = "x".repeat(100_000);
    let told = told(json!({"properties": {"a": {"enum": ["b"]}}}), json!({"a": long}));
    assert!(told[0].len() < 500, "a long value is shortened");
}

#[test]
fn broken_schemas_are_told_apart_from_wrong_arguments() {
    let broken = [
        json!({"type": "nonsense"}),
        json!({"properties": []}),
        json!({"$ref": "https://example.com/schema.json"}),
        json!({"$ref": "file:///etc/hostname"}),
        json!({"$ref": "#/$defs/missing"}),
        json!({"properties": {"a": {"pattern": "("}}}),
        json!("schema"),
        json!(null),
    ];
    for schema in broken {
        assert!(validate(&schema, &json!({"a": "b"})).is_err(), "{schema}");
    }
}

#[test]
fn schemas_that_mean_harm_come_back() {
    let mut wide = json!({"$defs": {"x0": {"type": "object"}}, "$ref": "#/$defs/x24"});
    for n in 0..24 {
        let twice = json!({"$ref": format!("#/$defs/x{n}")});
        wide["$defs"][format!("x{}", n + 1)] = json!({"allOf": [twice, twice]});
    }
    let harmful = [
        json!({"$ref": "#"}),
        json!({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}),
        json!({"allOf": [{"$ref": "#"}]}),
        json!({"$dynamicAnchor": "a", "allOf": [{"$dynamicRef": "#a"}]}),
        json!({"properties": {"a": {"pattern": "^(a+)+$"}}}),
        json!({"properties": {"a": {"pattern": "^(a|aa)+\\1$"}}}),
        wide,
    ];
    let arguments = json!({"a": format!("{}!", "a".repeat(60))});
    for schema in harmful {
        // What comes of it does not matter; that it comes does.
        let _ = validate(&schema, &arguments);
    }
}

#[test]
fn endless_depth_is_refused_before_it_is_walked() {
    // Not by `json!`, which walks by recursion itself.
    let wrap = |key: &str, inner: Value| Value::Object([(key.to_owned(), inner)].into_iter().collect());
    let deep =
        |depth| (0..depth).fold(json!({"type": "string"}), |inner, _| wrap("properties", wrap("a", inner)));
    let value = |depth| (0..depth).fold(json!(1), |inner, _| wrap("a", inner));
    assert_eq!(validate(&deep(50), &value(50)).unwrap().len(), 1);
    assert!(validate(&deep(2_000), &value(2_000)).is_err());
    assert_eq!(validate(&json!({"type": "object"}), &value(2_000)).unwrap().len(), 1);
}
