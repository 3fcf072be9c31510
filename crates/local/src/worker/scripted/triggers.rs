//! Calls that a model makes by itself, through the templates of real models: after words, after words about calls, at
//! once, after thinking, several at a time; written rightly and wrongly.

use serde_json::{Value, json};

use super::{Scene, Spelling, Written, asked, tool};
use crate::native::Templates;
use crate::native::samples::{Sample, real_templates, sample};
use crate::protocol::{Finish, Generate};
use crate::worker::calls::is_held;

/// One template of each kind, by the beginning of its file's name. `LECTERN_TEMPLATE` names another one; empty, all.
const KINDS: [&str; 11] = [
    "deepseek-ai-DeepSeek-V3.2",
    "Qwen-Qwen3-0.6B",
    "Qwen3.5",
    "Qwen3-Coder",
    "meta-llama-Llama-3.1",
    "GLM-4.6",
    "GLM-4.7",
    "MiniMax-M2",
    "NVIDIA-Nemotron-3",
    "NousResearch-Hermes-3",
    "Kimi-K2-Instruct",
];

const WORDS: &str = "Let me look it up.";

fn tools() -> Vec<Value> {
    let schema = json!({
        "type": "object",
        "properties": { "kind": { "enum": ["a", "b"] }, "n": { "type": "integer", "minimum": 1, "maximum": 9 } },
        "required": ["kind", "n"],
        "additionalProperties": false,
    });
    let other = json!({ "type": "object", "properties": { "n": { "const": 7 } }, "required": ["n"], "additionalProperties": false });
    vec![tool("notes__find", schema), tool("notes__count", other)]
}

fn right() -> Value {
    json!({ "kind": "b", "n": 7 })
}

/// What the model wants to write, and what is to come of it when it may.
struct Wish {
    name: &'static str,
    text: String,
    said: &'static str,
    thought: &'static str,
    calls: Vec<(String, Value)>,
}

/// A thought, in the form of the template; none where it knows none.
fn thought(sample: &Sample, text: &str) -> Option<String> {
    let start = sample.applied.thinking_start_tag.trim();
    let end = sample.applied.thinking_end_tags.first()?.trim();
    let open = if sample.begins_thinking() { "" } else { start };
    (!start.is_empty()).then(|| format!("{open}\n{text}\n{end}\n\n"))
}

fn wishes(sample: &Sample, two: Option<&Sample>) -> Vec<Wish> {
    let calls = &sample.calls;
    let expected = || vec![("notes__find".to_owned(), right())];
    // Where the reply begins with a thought, that has to end first.
    let open =
        if sample.begins_thinking() { thought(sample, "Hm.").unwrap_or_default() } else { String::new() };
    let hm = if open.is_empty() { "" } else { "Hm." };
    let wish = |name, text: String, said, thought, calls| Wish { name, text, said, thought, calls };
    let mut out = vec![
        wish("at once", format!("{open}{calls}"), "", hm, expected()),
        wish("after words", format!("{open}{WORDS}\n{calls}"), WORDS, hm, expected()),
        wish("no call", format!("{open}{WORDS}"), WORDS, hm, Vec::new()),
    ];
    if let Some(thought) = thought(sample, "I need notes__find, {\"name\": 1}.") {
        let told = "I need notes__find, {\"name\": 1}.";
        out.push(wish("after thinking", format!("{thought}{calls}"), "", told, expected()));
    }
    if calls.starts_with('{') {
        // Llama writes a tag before it now and then.
        out.push(wish("behind a tag", format!("<|python_tag|>{calls}"), "", hm, expected()));
        let typed = calls.replacen('{', "{\"type\": \"function\", ", 1);
        out.push(wish("with a type", typed, "", hm, expected()));
    }
    if let Some(two) = two {
        let both = vec![("notes__find".to_owned(), right()), ("notes__count".to_owned(), json!({ "n": 7 }))];
        out.push(wish("two", format!("{open}{}", two.calls), "", hm, both));
    }
    out
}

/// Whether every whole call that was written is one of the tools' and fits its schema.
fn fault(written: &Written) -> Option<String> {
    let whole = written.finish == Some(Finish::Stop);
    let count = written.calls.len();
    for (place, (name, arguments)) in written.calls.iter().enumerate() {
        if !whole && place + 1 == count {
            continue;
        }
        let tools = tools();
        let schema = tools.iter().find(|tool| tool["function"]["name"] == name.as_str());
        let Some(schema) = schema.map(|tool| &tool["function"]["parameters"]) else {
            return Some(format!("a call of {name}: {:?}", written.raw));
        };
        if !jsonschema::is_valid(schema, arguments) {
            return Some(format!("{name} {arguments}: {:?}", written.raw));
        }
    }
    None
}

fn with_parallel(templates: &Templates, right: &(&str, Value)) -> Option<Sample> {
    let both = [right.clone(), ("notes__count", json!({ "n": 7 }))];
    templates.knows_parallel_calls().then(|| sample(templates, &tools(), &both)).flatten()
}

/// What went otherwise than wished, and what was wrong.
#[derive(Default)]
struct Tally {
    as_wished: usize,
    otherwise: Vec<String>,
    faults: Vec<String>,
}

impl Tally {
    fn run(&mut self, template: &str, source: &str) {
        let templates = Templates::of_text(source, "", "").unwrap();
        let call = ("notes__find", right());
        let Some(sample) = templates
            .knows_tools()
            .then(|| sample(&templates, &tools(), std::slice::from_ref(&call)))
            .flatten()
        else {
            return;
        };
        let two = with_parallel(&templates, &call);
        let scene = Scene::new(source);
        let request = asked(&tools());
        let held = is_held(source) == Some(true);
        for wish in wishes(&sample, two.as_ref()) {
            for spelling in [Spelling::Special, Spelling::Letters] {
                let what = format!("{template}, {}, {spelling:?}", wish.name);
                match scene.write(&request, &wish.text, spelling) {
                    Ok(written) => self.judge(&what, &wish, spelling, &written, held),
                    Err(error) => self.faults.push(format!("{what}: {error}")),
                }
            }
        }
        self.run_wrong(template, &scene, &request, &sample, held);
    }

    fn judge(&mut self, what: &str, wish: &Wish, spelling: Spelling, written: &Written, held: bool) {
        // Spelt by letters, the tag of a call is text, and a call behind it is left to the core.
        if let Some(fault) = fault(written).filter(|_| held && spelling == Spelling::Special) {
            self.faults.push(format!("{what}: {fault}"));
        }
        let same = written.text.trim() == wish.said
            && written.thinking.trim() == wish.thought
            && written.calls == wish.calls;
        if same {
            self.as_wished += 1;
        } else if spelling == Spelling::Special {
            let end = if written.followed { "" } else { " (not followed)" };
            self.otherwise.push(format!(
                "{what}{end}: said {:?}, thought {:?}, called {:?}, wrote {:?}",
                written.text, written.thinking, written.calls, written.raw
            ));
        }
    }

    /// Calls of tools that do not exist and with arguments that do not fit, and words about calls.
    fn run_wrong(&mut self, template: &str, scene: &Scene, request: &Generate, sample: &Sample, held: bool) {
        let open =
            if sample.begins_thinking() { thought(sample, "Hm.").unwrap_or_default() } else { String::new() };
        let first = sample.calls.split(['{', '\n', ' ']).next().unwrap_or_default();
        let before = sample.calls.split("notes__find").next().unwrap_or_default();
        for text in [
            sample.calls.replace("notes__find", "notes__lose"),
            sample.calls.replace("notes__find", "notes__find_all"),
            sample.calls.replace('7', "70"),
            sample.calls.replace('b', "c"),
            sample.calls.replace("kind", "sort"),
            format!("A call begins with {first} and so on."),
            format!("A call begins with {before}"),
            format!("{first}{first}{first}"),
            sample.calls.chars().take(sample.calls.chars().count() / 2).collect(),
            format!("{}{}", sample.calls, sample.calls),
        ] {
            for spelling in [Spelling::Special, Spelling::Letters] {
                let text = format!("{open}{text}");
                match scene.write(request, &text, spelling) {
                    Ok(written) => self.faults.extend(
                        fault(&written)
                            .filter(|_| held && spelling == Spelling::Special)
                            .map(|fault| format!("{template}, {text:?}, {spelling:?}: {fault}")),
                    ),
                    Err(error) => self.faults.push(format!("{template}, {text:?}: {error}")),
                }
            }
        }
    }
}

#[test]
fn calls_by_themselves_come_through_and_are_valid() {
    let mut tally = Tally::default();
    let only = std::env::var("LECTERN_TEMPLATE").ok();
    for (name, source) in real_templates() {
        let wanted = match &only {
            Some(only) => name.contains(only),
            None => KINDS.iter().any(|kind| name.starts_with(kind)),
        };
        if wanted {
            tally.run(&name, &source);
        }
    }
    println!("{} as wished; otherwise:\n{}", tally.as_wished, tally.otherwise.join("\n"));
    assert_eq!(tally.faults, [] as [String; 0], "{}", tally.faults.join("\n"));
    assert!(tally.otherwise.len() * 4 <= tally.as_wished);
}
