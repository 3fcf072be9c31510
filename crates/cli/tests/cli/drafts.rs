//! Models that guess for others: only those whose tokens mean the same are offered, and others are refused by name.

use std::fs;
use std::path::PathBuf;

use lectern_test_gguf::Recipe;
use serde_json::json;

use crate::engine::Opened;
use crate::lectern::Lectern;

fn recipe(blocks: u32, more: &[&str]) -> Recipe {
    let more_tokens = more.iter().map(|token| (*token).to_owned()).collect();
    Recipe { blocks, more_tokens, ..Recipe::seeded(5) }
}

#[tokio::test]
async fn only_models_with_the_same_words_can_guess() {
    let opened = Opened::fresh();
    let engine = &opened.engine;
    let add = |name: &str, recipe: Recipe| {
        let path = opened.folder.path().join(name);
        fs::write(&path, recipe.bytes()).unwrap();
        (engine.add_model(&path).unwrap().id, path)
    };
    let (large, _) = add("large.gguf", recipe(6, &["<a>"]));
    let (middle, middle_path) = add("middle.gguf", recipe(2, &["<a>"]));
    let (_, small_path) = add("small.gguf", recipe(1, &["<a>"]));
    let (_, odd_path) = add("odd.gguf", recipe(1, &["<b>"]));
    let (_, short_path) = add("short.gguf", recipe(1, &[]));
    let offered = |of| -> Vec<PathBuf> {
        let view = engine.generation(Some(of), None).unwrap();
        view.drafts.into_iter().map(|draft| draft.path.into()).collect()
    };
    assert_eq!(offered(&large), [small_path.clone(), middle_path.clone()], "the smallest first");
    assert_eq!(offered(&middle), std::slice::from_ref(&small_path), "no larger one");

    let large = &large;
    let set = async |path: &PathBuf| {
        let changes = json!({ "draft": path });
        engine.set_model_generation(large, changes.as_object().unwrap()).await
    };
    for (path, reason) in
        [(&odd_path, "its tokens are other ones"), (&short_path, "tokens and that of the model")]
    {
        let problem = set(path).await.unwrap_err();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        assert_eq!(problem.code, "bad_setting");
        for told in [&*name, "large.gguf", reason] {
            assert!(problem.message.contains(told), "{problem:?}");
        }
    }
    let none = opened.folder.path().join("gone.gguf");
    assert!(set(&none).await.unwrap_err().message.contains("gone.gguf"));
    set(&small_path).await.unwrap();
    let view = engine.generation(Some(large), None).unwrap();
    let draft = view.settings.iter().find(|setting| setting.value == json!(small_path));
    assert!(draft.is_some(), "{:?}", view.settings);
    engine.shutdown().await;
}

#[test]
fn a_model_that_cannot_guess_is_refused_for_one_run_too() {
    let lectern = Lectern::new();
    let put = |name: &str, recipe: Recipe| {
        let path = lectern.write(name, "");
        fs::write(&path, recipe.bytes()).unwrap();
        path.display().to_string()
    };
    let (large, odd) = (put("large.gguf", recipe(6, &["<a>"])), put("odd.gguf", recipe(1, &["<b>"])));
    let ran = lectern.run(["ask", "--model", &large, "--set", &format!("draft={odd}"), "Hello"]);
    assert!(ran.code != Some(0) && ran.out.is_empty(), "{ran:?}");
    assert!(ran.err.contains("odd.gguf") && ran.err.contains("large.gguf"), "{ran:?}");
}
