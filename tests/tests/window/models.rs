//! More models: dragged in, downloaded from a mirror, used, removed, brought back.

use lectern_test_gguf::Recipe;
use lectern_tests::mirror::Mirror;
use lectern_tests::window::{Setting, Window};
use serde_json::json;

use crate::say;

const REPOSITORY: &str = "tests/Tiny-GGUF";
const FILE: &str = "tiny-Q4_K_M.gguf";

#[tokio::test]
async fn a_model_file_is_dragged_in_and_taken_off_the_list_again() {
    let setting = Setting::fresh();
    let file = setting.home().join("A tiny model.gguf");
    std::fs::write(&file, Recipe::default().bytes()).unwrap();
    let note = setting.home().join("note.md");
    std::fs::write(&note, "# A note").unwrap();
    let window = Window::open(setting).await;
    window.see("[data-testid=composer]").await;

    let drag = window.drag(&note);
    window.see("[data-testid=drop-target][data-fits=false]").await;
    drag.leave();
    window.see_no("[data-testid=drop-target]").await;

    let drag = window.drag(&file);
    window.see("[data-testid=drop-target][data-fits=true]").await;
    window.see_text("[data-testid=drop-target]", "A tiny model.gguf").await;
    window.picture("24-drag").await;
    drag.drop();
    window.see_text("[data-testid=toast]", "A tiny model.gguf was added").await;
    window.see_no("[data-testid=drop-target]").await;

    go(&window, "").await;
    window.see("[data-model=a-tiny-model][data-usable=true]").await;
    window.see("[data-testid=hardware] dl").await;
    window.picture("25-models").await;
    window.click("[data-model=a-tiny-model] [data-testid=remove-model]").await;
    window.see_text("[data-testid=toast]", "Its file stays").await;
    window.see_no("[data-model=a-tiny-model]").await;
    assert!(file.exists());
    window.press("[data-testid=toast] .btn", "Undo").await;
    window.see("[data-model=a-tiny-model]").await;
}

#[tokio::test]
async fn a_model_is_downloaded_over_a_restart_used_tested_removed_and_brought_back() {
    let bytes = Recipe { blocks: 4, width: 256, ..Recipe::default() }.bytes();
    let half = bytes.len() / 2;
    let mirror = Mirror::start(REPOSITORY, vec![(FILE.to_owned(), bytes.clone())]);
    mirror.hold_from(half);
    let window = Window::open(Setting::fresh().with("HF_ENDPOINT", &mirror.url)).await;

    go(&window, "get").await;
    window.see("[data-curated]").await;
    window.type_into("[data-testid=target]", REPOSITORY).await;
    window.click("[data-testid=look]").await;
    window.click(&format!("[data-file='{FILE}'] [data-testid=download]")).await;
    until_half_is_here(&window).await;
    window.picture("26-download").await;
    window.click("[data-testid=pause]").await;
    window.see(&format!("[data-download='{FILE}'][data-state=paused]")).await;

    // The app is killed; what came stays.
    let window = window.reopen().await;
    go(&window, "").await;
    window.see(&format!("[data-download='{FILE}'][data-state=paused]")).await;
    mirror.let_go();
    window.click("[data-testid=resume]").await;
    window.see("[data-model][data-usable=true] [data-testid=remove-model]").await;
    window.see_no(&format!("[data-download='{FILE}']")).await;
    let ranges = mirror.ranges();
    let from = ranges.last().and_then(|range| range.strip_prefix("bytes=")?.split('-').next()?.parse().ok());
    assert!(from.is_some_and(|from: usize| from > 0 && from <= half), "{ranges:?}");
    let file = window.home().join("models").join(FILE);
    assert_eq!(std::fs::read(&file).unwrap(), bytes);

    window.click("[data-testid=use-model][aria-label='Use Random bytes']").await;
    window.see("[data-model][data-chosen=true] [data-testid=remove-model]").await;
    chat(&window).await;
    test_its_speed(&window).await;

    go(&window, "").await;
    window.click("[data-testid=remove-model]").await;
    window.see_text("[data-testid=toast]", "its file deleted").await;
    window.see_no("[data-testid=remove-model]").await;
    window.until("the file is gone", || async { (!file.exists()).then_some(()) }).await;
    window.press("[data-testid=toast] .btn", "Undo").await;
    window.see("[data-model][data-usable=true] [data-testid=remove-model]").await;
    assert_eq!(std::fs::read(&file).unwrap(), bytes);
}

/// What a page says of a repository that is not there, and of an address that nobody answers at.
#[tokio::test]
async fn what_cannot_be_had_says_why() {
    let mirror = Mirror::start(REPOSITORY, Vec::new());
    let window = Window::open(Setting::fresh().with("HF_ENDPOINT", &mirror.url)).await;
    go(&window, "get").await;
    window.type_into("[data-testid=target]", "tests/Nothing-GGUF").await;
    window.click("[data-testid=look]").await;
    window.see_text("[data-testid=error]", "tests/Nothing-GGUF").await;
    window.picture("28-no-repository").await;
}

/// Everything that the mirror gives out has arrived: no less could be kept, no more can come.
async fn until_half_is_here(window: &Window) {
    let script = "
        const bar = document.querySelector('[data-download] [role=progressbar]');
        return Number(bar?.getAttribute('aria-valuenow') ?? 0);";
    let here = || async { window.run(script, vec![]).await.as_f64().filter(|share| *share >= 45.0) };
    window.until("half of it is here", here).await;
}

/// The model says something; what it says has no sense, so it is stopped.
async fn chat(window: &Window) {
    window.run("location.hash = '#/'", vec![]).await;
    window.see_text("[data-testid=model-picker]", "Random bytes").await;
    say(window, "Say something.").await;
    let begun = "
        const answer = document.querySelector('[data-testid=message-assistant]');
        return answer !== null && (answer.dataset.running === 'false' || answer.innerText.trim().length > 3);";
    let said = || async { (window.run(begun, vec![]).await == true).then_some(()) };
    window.until("the model says something", said).await;
    let stop = "document.querySelector('[data-testid=stop]')?.click()";
    window.run(stop, vec![]).await;
    window.see("[data-testid=message-assistant][data-running=false]").await;
    assert_eq!(window.texts("[data-testid=error]").await, Vec::<String>::new());
}

async fn test_its_speed(window: &Window) {
    go(window, "").await;
    window.click("[data-model][data-chosen=true] h2 a").await;
    window.see("[data-testid=memory-need]").await;
    window.click("[data-testid=bench-run]").await;
    window.see_text("[data-testid=bench-result]", "tokens/s").await;
    window.picture("27-model").await;
}

/// A page of the models' settings.
async fn go(window: &Window, place: &str) {
    let script = "location.hash = `#/settings/models/${arguments[0]}`";
    window.run(script, vec![json!(place)]).await;
    window.see("[data-testid=models-page]").await;
}
