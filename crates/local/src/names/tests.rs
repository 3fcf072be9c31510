use std::sync::Arc;

use lectern_core::{Delta, ServerId, ToolAnnotations, ToolName};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use serde_json::json;

use super::*;
use crate::deltas::Deltas;
use crate::format::CallForm;
use crate::messages::Form;
use crate::native::Templates;
use crate::native::samples::{real_templates, sample};
use crate::prompted::written_calls;
use crate::protocol::Piece;

fn spec(name: &str, schema: Value) -> ToolSpec {
    ToolSpec {
        name: ToolName::from(name),
        server: ServerId::from("test"),
        original_name: name.to_owned(),
        title: None,
        description: String::new(),
        input_schema: schema,
        output_schema: None,
        annotations: ToolAnnotations::default(),
        trusted: false,
    }
}

fn plain(names: &[&str]) -> Names {
    let specs: Vec<ToolSpec> = names.iter().map(|name| spec(name, json!({ "type": "object" }))).collect();
    Names::new(&specs, &[], Writing::Json)
}

/// Names that are hard to write in one form or another, and usual ones.
fn odd_name() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z_]{1,8}",
        "[ab][-_.]{1,2}[ab](-schema|-arg-[ab])?",
        Just("call".to_owned()),
        Just("calls".to_owned()),
        "[a-z]{60,90}",
        "[./<>\"'\\\\`{}\\[\\]()=:,| a-c]{1,12}",
        "[a-zäöß日本🦀\\n\\t]{1,6}",
        "[0-9-][a-z0-9-]{0,5}",
        any::<String>().prop_filter("a name", |name| !name.is_empty()),
    ]
}

#[test]
fn usual_names_stay() {
    let usual = ["notes__read", "notes__get-sum", "_x", "functions_search"];
    let names = plain(&usual);
    for name in usual {
        assert_eq!((names.alias(name), names.tool(name)), (name, name));
    }
}

#[test]
fn one_of_two_names_on_one_rule_gets_an_alias() {
    for pair in [["a_b", "a-b"], ["a__b", "a_b"], ["x", "x-schema"], ["x-schema", "x"], ["x", "x_arg_y"]] {
        let names = plain(&pair);
        let kept = pair.iter().filter(|name| names.alias(name) == **name).count();
        assert_eq!(kept, 1, "{pair:?}");
        assert_ne!(names.alias(pair[0]), names.alias(pair[1]));
    }
    assert_ne!(plain(&["call"]).alias("call"), "call");
}

#[test]
fn nobody_takes_over_an_alias() {
    let alias = plain(&["größe"]).alias("größe").to_owned();
    let names = plain(&["größe", &alias]);
    assert_eq!((names.alias(&alias), names.tool(&alias)), (alias.as_str(), alias.as_str()));
    assert_ne!(names.alias("größe"), alias);
    assert_eq!(names.tool(names.alias("größe")), "größe");
}

#[test]
fn a_call_changes_no_name() {
    let call = lectern_core::ToolCall {
        id: "1".into(),
        tool: "a_b".into(),
        arguments: Map::new(),
        malformed: None,
        provider_data: None,
    };
    let reply = lectern_core::AssistantMessage {
        parts: vec![lectern_core::Part::ToolCall(call)],
        ..Default::default()
    };
    let specs = [spec("a-b", json!({})), spec("a_b", json!({}))];
    let before = Names::new(&specs, &[], Writing::Json);
    let later = Names::new(&specs, &[Message::Assistant(reply.clone())], Writing::Json);
    let alone = Names::new(&specs[..1], &[Message::Assistant(reply)], Writing::Json);
    for name in ["a-b", "a_b"] {
        assert_eq!(later.alias(name), before.alias(name));
        assert_eq!(alone.alias(name), before.alias(name), "what was called is known, offered or not");
    }
}

#[test]
fn arguments_are_renamed_wherever_a_schema_speaks_of_them() {
    let schema = json!({
        "type": "object",
        "properties": { "a b": { "type": "object", "properties": { "a b": {} } }, "filter[x]": {}, "q": {} },
        "required": ["filter[x]"],
        "anyOf": [{ "required": ["filter[x]"] }, { "properties": { "<y>": {} } }],
        "dependentRequired": { "q": ["filter[x]"] },
    });
    let names = Names::new(&[spec("t", schema.clone())], &[], Writing::Apart);
    let renamed = names.schema("t", &schema);
    assert!(!renamed.to_string().contains("filter[x]") && !renamed.to_string().contains("<y>"), "{renamed}");
    assert_eq!(renamed["properties"]["a b"], schema["properties"]["a b"]);
    let given = json!({ "filter[x]": 1, "<y>": 2, "q": { "<y>": 3 } });
    let given = given.as_object().unwrap().clone();
    let written = names.written("t", &given);
    assert!(!written.contains_key("filter[x]"));
    assert_eq!(written["q"], given["q"]);
    assert_eq!(names.read("t", written), given);
    assert_eq!(Names::new(&[spec("t", schema.clone())], &[], Writing::Json).schema("t", &schema), schema);
}

/// The call that comes out of a text that arrives in pieces.
fn read(form: Form, tools: &[String], names: &Arc<Names>, pieces: Vec<Piece>) -> Vec<(String, Value)> {
    let mut deltas = Deltas::new(form, tools.to_vec(), Arc::clone(names));
    let mut out: Vec<(String, String)> = Vec::new();
    let mut all: Vec<Delta> = pieces.into_iter().flat_map(|piece| deltas.piece(piece)).collect();
    all.extend(deltas.finish(None));
    for delta in all {
        match delta {
            Delta::ToolCallStarted { tool, .. } => out.push((tool.0, String::new())),
            Delta::ToolCallArguments { index, fragment } => out[index as usize].1.push_str(&fragment),
            Delta::Text(text) => panic!("{text:?} is no call"),
            _ => {}
        }
    }
    out.into_iter().map(|(name, text)| (name, serde_json::from_str(&text).unwrap())).collect()
}

fn in_pieces(text: &str, size: usize) -> Vec<Piece> {
    let letters: Vec<char> = text.chars().collect();
    letters.chunks(size).map(|piece| Piece::Text(piece.iter().collect())).collect()
}

proptest! {
    #[test]
    fn aliases_can_be_written_and_come_back(all in prop::collection::vec(odd_name(), 1..12)) {
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        let names = plain(&all);
        let mut rules = HashSet::new();
        for name in all.iter().collect::<HashSet<_>>() {
            let alias = names.alias(name);
            prop_assert!(is_plain(alias), "{:?}", alias);
            prop_assert_eq!(names.tool(alias), *name);
            prop_assert!(rules.insert(crate::grammar::rule_name(alias)), "two rules of {:?}", alias);
        }
        let mut turned = all.clone();
        turned.reverse();
        let again = plain(&turned);
        for name in all {
            prop_assert_eq!(again.alias(name), names.alias(name));
        }
    }

    /// Each form in which calls are read out of text, and the pieces of a template's own parser.
    #[test]
    fn calls_come_back_by_their_true_names(
        tools in prop::collection::vec((odd_name(), prop::collection::vec(odd_name(), 0..4)), 1..5),
        which in any::<prop::sample::Index>(),
        value in any::<String>(),
        size in 1usize..9,
    ) {
        let mut seen = HashSet::new();
        let tools: Vec<_> = tools.into_iter().filter(|(name, _)| seen.insert(name.clone())).collect();
        let schema = |fields: &[String]| {
            let fields: Map<String, Value> = fields.iter().map(|name| (name.clone(), json!({}))).collect();
            json!({ "type": "object", "properties": fields })
        };
        let specs: Vec<ToolSpec> = tools.iter().map(|(name, fields)| spec(name, schema(fields))).collect();
        let called: Vec<String> = tools.iter().map(|(name, _)| name.clone()).collect();
        let (name, fields) = which.get(&tools);
        let arguments: Map<String, Value> =
            fields.iter().map(|field| (field.clone(), json!([value, 1, null]))).collect();
        let expected = vec![(name.clone(), Value::Object(arguments.clone()))];
        for (form, writing) in [
            (Form::Prompted(CallForm::Json), Writing::Json),
            (Form::Prompted(CallForm::Pythonic), Writing::Pythonic),
            (Form::Native, Writing::Apart),
            (Form::Native, Writing::Json),
        ] {
            let names = Arc::new(Names::new(&specs, &[], writing));
            let (alias, written) = (names.alias(name), names.written(name, &arguments));
            let pieces = match form {
                Form::Prompted(call) => in_pieces(&written_calls(&[(alias, &written)], call), size),
                Form::Native => {
                    let text = Value::Object(written.clone()).to_string();
                    let letters: Vec<char> = text.chars().collect();
                    let call = Piece::Call { index: 0, name: alias.to_owned() };
                    let fragments = letters.chunks(size).map(|letters| Piece::Arguments {
                        index: 0,
                        fragment: letters.iter().collect(),
                    });
                    std::iter::once(call).chain(fragments).collect()
                }
            };
            prop_assert_eq!(&read(form, &called, &names, pieces), &expected, "{:?} {:?}", form, writing);
            // Llama's JSON, without a tag.
            let bare = json!({ "name": alias, "parameters": written }).to_string();
            prop_assert_eq!(&read(form, &called, &names, in_pieces(&bare, size)), &expected, "{:?}", form);
        }
    }
}

/// Whether a call that a template writes comes back from its parser: the text, and what came in its place otherwise.
fn comes_back(
    templates: &Templates,
    tools: &[(String, Vec<String>)],
    which: usize,
) -> Option<Result<(), String>> {
    let schema = |fields: &[String]| {
        let properties: Map<String, Value> =
            fields.iter().map(|name| (name.clone(), json!({ "type": "integer" }))).collect();
        json!({ "type": "object", "properties": properties, "required": fields })
    };
    let specs: Vec<ToolSpec> = tools.iter().map(|(name, fields)| spec(name, schema(fields))).collect();
    let names = Names::new(&specs, &[], crate::worker::writing(templates));
    let told = crate::messages::tools_of(&specs, &names);
    let (name, fields) = &tools[which];
    let arguments: Map<String, Value> =
        fields.iter().zip(1..).map(|(field, number)| (field.clone(), json!(number))).collect();
    let written = Value::Object(names.written(name, &arguments));
    let sample = sample(templates, &told, &[(names.alias(name), written)])?;
    // Where thinking has begun already, it has to end.
    let end = sample.applied.thinking_end_tags.first().filter(|_| sample.begins_thinking());
    let text = format!("{}{}", end.map_or("", String::as_str), sample.calls);
    let parsed = sample.format.parse(&text, false).map(|message| message.tool_calls).unwrap_or_default();
    let back = parsed.into_iter().map(|call| {
        let arguments = serde_json::from_str(&call.arguments).unwrap_or_default();
        let tool = names.tool(&call.name).to_owned();
        let arguments = names.read(&tool, arguments);
        (tool, arguments)
    });
    let back: Vec<_> = back.collect();
    let same = back == [(name.clone(), arguments)];
    Some(if same { Ok(()) } else { Err(format!("{name:?} {fields:?} as {text:?}: {back:?}")) })
}

/// Sets of tools with odd names.
fn odd_tools(seed: u8) -> Vec<(String, Vec<String>)> {
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[seed; 32]);
    let mut runner = TestRunner::new_with_rng(Default::default(), rng);
    let mut draw = || odd_name().new_tree(&mut runner).unwrap().current();
    let colliding = [("a_b", vec!["x_y"]), ("a-b", vec!["x_y", "x-y"])];
    let colliding =
        colliding.map(|(name, fields)| (name.to_owned(), fields.into_iter().map(str::to_owned).collect()));
    let mut seen: HashSet<String> = HashSet::new();
    let drawn: Vec<_> = (0..4).map(|_| (draw(), vec![draw(), draw()])).collect();
    drawn.into_iter().chain(colliding).filter(|(name, _)| seen.insert(name.clone())).collect()
}

#[test]
fn real_templates_give_every_name_back() {
    let (mut good, mut bad, mut unread) = (0, Vec::new(), Vec::new());
    for (name, source) in real_templates() {
        let templates = Templates::of_text(&source, "", "").unwrap();
        let usual = [("notes__read".to_owned(), vec!["path".to_owned(), "head".to_owned()])];
        // What is not read with usual names has other reasons.
        if !templates.knows_tools() || comes_back(&templates, &usual, 0) != Some(Ok(())) {
            unread.push(name);
            continue;
        }
        let seeds = if std::env::var_os("LECTERN_ALL_CALLS").is_some() { 3 } else { 1 };
        for tools in (0..seeds).map(odd_tools) {
            for which in 0..tools.len() {
                match comes_back(&templates, &tools, which) {
                    Some(Ok(())) => good += 1,
                    Some(Err(error)) => bad.push(format!("{name}: {error}")),
                    None => bad.push(format!("{name}: {:?} is not written", tools[which])),
                }
            }
        }
    }
    println!("{good} calls came back by their names; not tried with {unread:?}");
    assert_eq!(bad, [] as [String; 0], "{}", bad.join("\n"));
}
