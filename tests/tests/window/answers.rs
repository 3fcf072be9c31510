//! The main job: a question, calls that are seen while they run, an answer that quotes the note.

use lectern_tests::window::{Setting, Window};
use serde_json::json;

use crate::{QUESTION, QUOTE, SOURCE, answered, ask, card_states, finished, say, slow_notes, tools};

#[tokio::test]
async fn the_first_question_is_answered_from_the_sample_notes() {
    let window = Window::open(Setting::fresh()).await;
    window.see("[data-testid=composer]").await;
    window.picture("01-first-start").await;
    // The question is one of those that an empty conversation offers.
    window.see_text("button", QUESTION).await;
    ask(&window, QUESTION).await;
    answered(&window, QUOTE).await;
    answered(&window, SOURCE).await;
    let tools = tools(&window).await;
    assert!(tools.contains(&"search_notes".to_owned()), "{tools:?}");
    assert!(tools.contains(&"read_note".to_owned()), "{tools:?}");
    assert!(card_states(&window).await.iter().all(|state| state == "done"));
    window.picture("02-answer").await;
}

#[tokio::test]
async fn the_trace_shows_every_step_and_call() {
    let window = Window::open(Setting::fresh()).await;
    ask(&window, QUESTION).await;
    if window.count("[data-testid=trace-panel]").await == 0 {
        window.click("[data-testid=trace-toggle]").await;
    }
    window.see("[data-testid=trace-panel]").await;
    window.see_text("[data-testid=trace-row]", "search_notes").await;
    window.see_text("[data-testid=trace-row]", "read_note").await;
    // Two calls and at least three model steps: search, read, answer.
    assert!(window.count("[data-testid=trace-row]").await >= 5);
    window.picture("03-trace").await;
}

#[tokio::test]
async fn a_call_is_shown_while_it_runs() {
    let setting = Setting::fresh();
    slow_notes(&setting, 1500);
    let window = Window::open(setting).await;
    watch_cards(&window).await;
    say(&window, QUESTION).await;
    window.see("[data-testid=tool-card][data-state=running]").await;
    window.picture("04-running").await;
    finished(&window).await;
    answered(&window, QUOTE).await;
    let seen = window.run("return window.seen", vec![]).await;
    for states in seen.as_object().unwrap().values() {
        let at = |state: &str| states.as_array().unwrap().iter().position(|seen| seen == &json!(state));
        assert!(at("running") < at("done") && at("running").is_some(), "{seen}");
    }
    assert!(seen.as_object().unwrap().len() >= 2, "{seen}");
}

#[tokio::test]
async fn a_turn_can_be_stopped_while_a_tool_runs() {
    let setting = Setting::fresh();
    slow_notes(&setting, 600_000);
    let window = Window::open(setting).await;
    say(&window, QUESTION).await;
    window.see("[data-testid=tool-card][data-state=running]").await;
    window.click("[data-testid=stop]").await;
    finished(&window).await;
    assert_eq!(card_states(&window).await, ["cancelled"]);
    window.picture("05-stopped").await;
}

#[tokio::test]
async fn a_page_that_is_loaded_anew_follows_the_running_turn() {
    let setting = Setting::fresh();
    slow_notes(&setting, 4000);
    let window = Window::open(setting).await;
    say(&window, QUESTION).await;
    window.see("[data-testid=tool-card][data-state=running]").await;
    window.reload().await;
    if window.count("[data-testid=message-user]").await == 0 {
        window.click("[data-testid=conversation-list] [data-row]").await;
    }
    window.see("[data-testid=stop]").await;
    finished(&window).await;
    answered(&window, QUOTE).await;
}

#[tokio::test]
async fn conversations_survive_a_restart() {
    let window = Window::open(Setting::fresh()).await;
    ask(&window, QUESTION).await;
    answered(&window, QUOTE).await;
    let before = window.texts("[data-testid=message-assistant]").await;
    let window = window.reopen().await;
    window.click("[data-testid=conversation-list] [data-row]").await;
    finished(&window).await;
    answered(&window, QUOTE).await;
    assert_eq!(window.texts("[data-testid=message-assistant]").await, before);
    assert!(card_states(&window).await.len() >= 2);
    // The old conversation goes on. (How well the starter understands a second question is not for this test.)
    let calls = card_states(&window).await.len();
    ask(&window, "Where did Thomas lose his hat in Norway?").await;
    assert!(card_states(&window).await.len() > calls);
    assert_eq!(window.count("[data-testid=error]").await, 0);
    window.picture("06-after-restart").await;
}

/// Remembers each state that a card ever shows, under the call's id.
async fn watch_cards(window: &Window) {
    let script = "
        window.seen = {};
        const note = () => {
            for (const card of document.querySelectorAll('[data-testid=tool-card]')) {
                const states = (window.seen[card.dataset.call] ??= []);
                if (states.at(-1) !== card.dataset.state) states.push(card.dataset.state);
            }
        };
        new MutationObserver(note).observe(document.body, { subtree: true, childList: true, attributes: true });";
    window.run(script, vec![]).await;
}
