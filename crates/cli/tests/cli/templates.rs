//! A template in place of the file's, presets and the like: what `lectern models set` takes and refuses.

use std::fs;

use lectern_test_gguf::Recipe;
use serde_json::Value;

use crate::lectern::{Lectern, Ran};

const TEMPLATE: &str = "{%- for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}\
                        {%- if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

fn with_model() -> Lectern {
    let lectern = Lectern::new();
    let path = lectern.write("tiny.gguf", "");
    fs::write(&path, Recipe::seeded(5).bytes()).unwrap();
    let added = lectern.run(["models", "add", path.to_str().unwrap()]);
    assert_eq!(added.code, Some(0), "{added:?}");
    lectern
}

fn set(lectern: &Lectern, settings: &[&str]) -> Ran {
    lectern.run(["models", "set", "tiny"].iter().chain(settings))
}

fn value(lectern: &Lectern, key: &str) -> Value {
    let shown = lectern.run(["models", "show", "tiny", "--json"]);
    let view: Value = serde_json::from_str(&shown.out).unwrap();
    let settings = view["settings"].as_array().unwrap();
    settings.iter().find(|setting| setting["key"] == key).unwrap()["value"].clone()
}

#[test]
fn a_template_s_file_is_read_and_its_text_is_kept() {
    let lectern = with_model();
    let file = lectern.write("chat_template.jinja", TEMPLATE).display().to_string();
    let config = serde_json::json!({ "chat_template": TEMPLATE, "eos_token": "x" }).to_string();
    let config = lectern.write("tokenizer_config.json", &config).display().to_string();
    for given in [file.clone(), format!("@{file}"), format!("@{config}")] {
        let ran = set(&lectern, &[&format!("template={given}")]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert_eq!(value(&lectern, "template"), TEMPLATE);
        assert_eq!(set(&lectern, &["template="]).code, Some(0));
        assert_eq!(value(&lectern, "template"), Value::Null);
    }
    let ran = set(&lectern, &[&format!("template={TEMPLATE}")]);
    assert_eq!((ran.code, value(&lectern, "template")), (Some(0), TEMPLATE.into()), "{ran:?}");
    // For one run too: its text is what the model is asked with.
    let other = lectern.write(
        "other.jinja",
        "{{ messages[0].content }}{% for m in messages %}<< {{ m.content }} >>{% endfor %}",
    );
    let asked = |template: &str| {
        let args = [
            "ask",
            "--model",
            "tiny",
            "--set",
            template,
            "--tools",
            "off",
            "--max-tokens",
            "4",
            "--json",
            "Hello",
        ];
        let ran = lectern.run(args);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let events = ran.out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let mut usage = events.filter_map(|event| event["stats"]["usage"]["prompt_tokens"].as_u64());
        usage.next().unwrap_or_else(|| panic!("{ran:?}"))
    };
    let (usual, twice) =
        (asked(&format!("template={file}")), asked(&format!("template=@{}", other.display())));
    assert!(usual > 100 && twice > usual, "{usual} {twice}");
}

#[test]
fn what_is_no_template_is_refused_and_changes_nothing() {
    let lectern = with_model();
    assert_eq!(set(&lectern, &[&format!("template={TEMPLATE}")]).code, Some(0));
    let text = lectern.write("notes.txt", "No template at all.").display().to_string();
    let raises = "{{ raise_exception('only for robots') }}";
    let cases = [
        (text.as_str(), "no chat template"),
        ("@/nowhere/chat.jinja", "/nowhere/chat.jinja"),
        ("/nowhere/chat.jinja", "{{ or {%"),
        ("You are a helpful assistant.", "{{ or {%"),
        ("{% for m in messages %}", "does not render a plain chat"),
        (raises, "only for robots"),
        ("{{ 'always the same' }}", "leaves out what the user says"),
    ];
    for (given, reason) in cases {
        let ran = set(&lectern, &[&format!("template={given}")]);
        assert_eq!(ran.code, Some(1), "{given}: {ran:?}");
        assert!(ran.err.contains(reason), "{given}: {ran:?}");
        assert_eq!(value(&lectern, "template"), TEMPLATE, "{given}");
    }
}

#[test]
fn presets_are_kept_used_and_forgotten_and_all_is_reset() {
    let lectern = with_model();
    let json = |args: &[&str]| -> Value {
        let ran = lectern.run(args);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        serde_json::from_str(&ran.out).unwrap()
    };
    let view = json(&["models", "set", "tiny", "temperature=0.3", "context_length=2048", "--json"]);
    assert_eq!(view["model"], "tiny");
    json(&["models", "presets", "save", "My own", "--from", "tiny", "top_k=7", "--json"]);
    let listed = json(&["models", "presets", "--json"]);
    let mine =
        listed["presets"].as_array().unwrap().iter().find(|preset| preset["name"] == "My own").unwrap();
    // The context decides how a model is loaded, so it is no part of a preset.
    assert_eq!(mine["settings"], serde_json::json!({ "temperature": 0.3, "top_k": 7 }));
    json(&["models", "set", "tiny", "--reset", "--json"]);
    assert_eq!(
        (value(&lectern, "temperature"), value(&lectern, "context_length")),
        (Value::Null, Value::Null)
    );
    assert_eq!(set(&lectern, &["preset=My own"]).code, Some(0));
    assert_eq!((value(&lectern, "temperature"), value(&lectern, "top_k")), (0.3.into(), 7.into()));
    assert_eq!(lectern.run(["models", "presets", "rm", "My own"]).code, Some(0));
    assert_eq!(value(&lectern, "top_k"), Value::Null);
    let built_in = lectern.run(["models", "presets", "rm", "precise"]);
    assert!(built_in.code == Some(1) && built_in.err.contains("came with Lectern"), "{built_in:?}");
}

#[test]
fn every_way_to_load_a_model_can_be_set_and_is_told_by_the_trace() {
    let lectern = with_model();
    let settings = [
        "loading=copied",
        "batch_threads=1",
        "threads=1",
        "guesses=3",
        "kv_keys=f16",
        "kv_values=q8_0",
        "waiting=asleep",
        "call_form=pythonic",
        "tool_mode=prompted",
        "tools=off",
        "max_tokens=4",
    ];
    let ran = set(&lectern, &settings);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(value(&lectern, "loading"), "copied");
    let wrong = set(&lectern, &["loading=floating"]);
    assert!(wrong.code == Some(1) && wrong.err.contains("mapped, locked, copied"), "{wrong:?}");
    let asked = lectern.run(["ask", "--json", "--model", "tiny", "--preset", "precise", "Hello"]);
    assert_eq!(asked.code, Some(0), "{asked:?}");
    let events: Vec<Value> = asked.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let others = events.iter().find_map(|event| event["settings"]["others"].as_object()).unwrap();
    for (key, expected) in [
        ("preset", Value::from("precise")),
        ("tool_mode", "prompted".into()),
        ("call_form", "pythonic".into()),
        ("kv_values", "q8_0".into()),
        ("threads", 1.into()),
        ("loading", "copied".into()),
    ] {
        assert_eq!(others[key], expected, "{others:?}");
    }
}

#[test]
fn layers_for_a_card_that_is_not_there_are_told() {
    let devices = with_model();
    let listed = devices.run(["models", "hardware", "--json"]);
    let hardware: Value = serde_json::from_str(&listed.out).unwrap();
    let has_card = hardware["devices"].as_array().unwrap().iter().any(|device| device["kind"] == "gpu");
    let asked = devices.run([
        "ask",
        "--json",
        "--model",
        "tiny",
        "--set",
        "gpu_layers=7",
        "--tools",
        "off",
        "--max-tokens",
        "4",
        "Hello",
    ]);
    assert_eq!(asked.code, Some(0), "{asked:?}");
    let told = asked.out.lines().any(|line| line.contains("\"notice\"") && line.contains("gpu_layers"));
    assert_eq!(told, !has_card, "{asked:?}");
}

#[test]
fn a_damaged_state_is_told_on_standard_error() {
    let lectern = with_model();
    let ask = || {
        let ran = lectern.run(["ask", "--model", "tiny", "--tools", "off", "--max-tokens", "4", "Hello"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ran.err
    };
    assert!(!ask().contains("was dropped"));
    let states = || walk(&lectern.home().join("data")).into_iter().chain(walk(lectern.home()));
    let files: Vec<_> =
        states().filter(|path| path.components().any(|part| part.as_os_str() == "kv")).collect();
    assert!(!files.is_empty(), "nothing was saved in {}", lectern.home().display());
    for file in files {
        fs::write(file, "no state").unwrap();
    }
    let told = ask();
    assert!(told.contains("WARN") && told.contains("was dropped"), "{told:?}");
    assert!(!ask().contains("was dropped"), "it is gone");
}

/// All files below a folder.
fn walk(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}
