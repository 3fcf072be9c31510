//! Tools that write ask first, and do what the answer says.

use std::fs;

use lectern_tests::window::{Setting, Window};

use crate::{ask, card_states, finished, say, tools};

const CREATE: &str = "Create a note Lists/Shopping.md with the text: oats, lemons and candles";
const APPEND: &str = "Add to the note Garden/Compost.md: turned again on 3 November";

#[tokio::test]
async fn what_is_allowed_once_happens_once() {
    let window = Window::open(Setting::fresh()).await;
    let note = window.home().join("sample-vault/Lists/Shopping.md");
    say(&window, CREATE).await;
    window.see("[data-testid=tool-card][data-state=waiting]").await;
    assert!(!note.exists(), "written before it was allowed");
    window.see_text("[data-testid=tool-card]", "oats, lemons and candles").await;
    window.picture("07-permission").await;
    window.click("[data-testid=permission-allow-once]").await;
    finished(&window).await;
    assert!(fs::read_to_string(&note).unwrap().contains("oats, lemons and candles"));
    window.picture("08-allowed").await;

    say(&window, APPEND).await;
    window.see("[data-testid=permission-deny]").await;
    window.click("[data-testid=stop]").await;
}

#[tokio::test]
async fn what_is_denied_does_not_happen() {
    let window = Window::open(Setting::fresh()).await;
    say(&window, APPEND).await;
    window.see("[data-testid=permission-deny]").await;
    let note = window.home().join("sample-vault/Garden/Compost.md");
    let before = fs::read_to_string(&note).unwrap();
    window.click("[data-testid=permission-deny]").await;
    finished(&window).await;
    assert_eq!(fs::read_to_string(&note).unwrap(), before);
    assert_eq!(card_states(&window).await.first().map(String::as_str), Some("denied"));
    window.picture("09-denied").await;
}

#[tokio::test]
async fn what_is_always_allowed_is_not_asked_again_after_a_restart() {
    let window = Window::open(Setting::fresh()).await;
    say(&window, CREATE).await;
    window.click("[data-testid=permission-allow-always]").await;
    finished(&window).await;
    let note = window.home().join("sample-vault/Lists/Shopping.md");
    fs::remove_file(&note).unwrap();
    let window = window.reopen().await;
    ask(&window, CREATE).await;
    assert_eq!(tools(&window).await.first().map(String::as_str), Some("create_note"));
    let written = || async {
        let text = fs::read_to_string(&note).unwrap_or_default();
        text.contains("oats, lemons and candles").then_some(())
    };
    window.until("the note is written without a question", written).await;
}

#[tokio::test]
async fn a_question_about_a_permission_can_be_stopped() {
    let window = Window::open(Setting::fresh()).await;
    say(&window, CREATE).await;
    window.see("[data-testid=permission-allow-once]").await;
    window.click("[data-testid=stop]").await;
    finished(&window).await;
    assert!(!window.home().join("sample-vault/Lists/Shopping.md").exists());
    assert_eq!(card_states(&window).await, ["cancelled"]);
}
