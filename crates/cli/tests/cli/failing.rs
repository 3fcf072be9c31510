use lectern_core::{ModelErrorCode, TurnErrorCode, TurnOutcome};

use crate::lectern::{Lectern, QUESTION};

#[test]
fn a_model_file_that_is_no_model_is_named_with_the_reason() {
    let lectern = Lectern::new();
    let missing = lectern.run(["ask", "--model", "/no/such/model.gguf", QUESTION]);
    assert_eq!(missing.code, Some(1), "{missing:?}");
    assert!(missing.err.contains("/no/such/model.gguf") && missing.err.contains("hint: "), "{missing:?}");

    let path = lectern.write("broken.gguf", "GGUF, or so it says");
    let asked = lectern.ask(["--model", path.to_str().unwrap(), QUESTION]);
    assert_eq!(asked.ran.code, Some(1));
    let TurnOutcome::Failed { error } = asked.outcome() else { panic!("{:?}", asked.outcome()) };
    assert_eq!(error.code, TurnErrorCode::Model(ModelErrorCode::BadModelFile));
    assert!(error.message.contains("broken.gguf"), "{error}");
    let added = lectern.run(["models", "add", path.to_str().unwrap()]);
    assert_eq!(added.code, Some(1), "{added:?}");
    assert!(!lectern.run(["models", "list"]).out.contains("broken"));
}

#[test]
fn mistakes_in_what_was_typed_are_told_apart_from_failures() {
    let lectern = Lectern::new();
    let cases: &[&[&str]] = &[
        &["ask"],
        &["ask", ""],
        &["ask", "--modle", "x", "hi"],
        &["ask", "--model", "nobody", "hi"],
        &["ask", "--vault", "/no/such/folder", "hi"],
        &["ask", "--mcp-config", "/no/such/file", "hi"],
        &["ask", "--allow", "everything!", "hi"],
        &["ask", "--conversation", "none", "hi"],
        &["ask", "--temperature", "hot", "hi"],
        &["ask", "--max-steps", "0", "hi"],
        &["models", "rm", "starter"],
        &["debug", "parse"],
        &["no-such-command"],
    ];
    for args in cases {
        let ran = lectern.run(*args);
        assert_eq!(ran.code, Some(2), "{args:?}: {ran:?}");
        assert!(ran.out.is_empty() && ran.err.starts_with("error: "), "{args:?}: {ran:?}");
    }
}

#[test]
fn the_limit_of_steps_is_a_failure_that_says_so() {
    let lectern = Lectern::new();
    let asked = lectern.ask(["--max-steps", "1", QUESTION]);
    assert_eq!((asked.outcome(), asked.ran.code), (&TurnOutcome::StepLimit, Some(1)));
    let ran = lectern.run(["ask", "--max-steps", "1", QUESTION]);
    assert!(ran.err.contains("--max-steps"), "{ran:?}");
}

#[test]
fn models_are_listed_added_inspected_chosen_and_removed() {
    let lectern = Lectern::new();
    let list = || -> serde_json::Value {
        serde_json::from_str(&lectern.run(["models", "list", "--json"]).out).unwrap()
    };
    assert_eq!(list()["model"], "starter");
    let starter = std::fs::read_dir(lectern.home().join("models")).unwrap().next().unwrap().unwrap().path();
    let copy = lectern.home().join("My Model.gguf");
    std::fs::copy(starter, &copy).unwrap();
    let copy = copy.to_str().unwrap();

    let inspected = lectern.run(["models", "inspect", copy, "--json"]);
    let info: serde_json::Value = serde_json::from_str(&inspected.out).unwrap();
    assert!(info["parameters"].as_u64().unwrap() > 1_000_000, "{info}");
    assert_eq!(lectern.run(["models", "add", copy]).code, Some(0));
    assert_eq!(lectern.run(["models", "add", copy]).code, Some(0), "adding twice adds once");
    assert_eq!(lectern.run(["models", "use", "my-model"]).code, Some(0));
    let listed = list();
    assert_eq!(listed["model"], "my-model");
    assert_eq!(listed["models"].as_array().unwrap().len(), 2, "{listed}");

    std::fs::remove_file(copy).unwrap();
    assert!(list()["models"][1]["problem"]["message"].as_str().unwrap().contains("My Model.gguf"));
    assert_eq!(lectern.run(["models", "rm", "my-model"]).code, Some(0));
    assert_eq!(list()["model"], "starter");
}
