//! After the window is closed nothing is left; what dies behind it comes back.

use std::collections::BTreeSet;

use lectern_tests::process::{Process, descendants};
use lectern_tests::window::{Setting, Window};

use crate::{QUESTION, ask, say, slow_notes};

#[tokio::test]
async fn closing_the_window_ends_every_process() {
    let window = Window::open(Setting::fresh()).await;
    ask(&window, QUESTION).await;
    let all = everything(&window);
    assert!(all.iter().any(|process| process.command.contains("__local-worker")), "{all:?}");
    assert!(all.iter().any(|process| process.command.contains(" vault ")), "{all:?}");
    window.close();
    all_gone(&window, all).await;
}

#[tokio::test]
async fn closing_the_window_in_the_middle_of_a_call_ends_every_process() {
    let setting = Setting::fresh();
    slow_notes(&setting, 600_000);
    let window = Window::open(setting).await;
    say(&window, QUESTION).await;
    window.see("[data-testid=tool-card][data-state=running]").await;
    let all = everything(&window);
    assert!(all.iter().any(|process| process.command.contains("slow.mjs")), "{all:?}");
    window.close();
    all_gone(&window, all).await;
}

#[tokio::test]
async fn ending_the_app_by_a_signal_ends_every_process() {
    let window = Window::open(Setting::fresh()).await;
    ask(&window, QUESTION).await;
    let all = everything(&window);
    window.app().signal(libc::SIGTERM);
    all_gone(&window, all).await;
}

#[tokio::test]
async fn killing_the_app_leaves_no_worker_and_no_server() {
    let window = Window::open(Setting::fresh()).await;
    ask(&window, QUESTION).await;
    let all = everything(&window);
    window.app().signal(libc::SIGKILL);
    all_gone(&window, all).await;
}

#[tokio::test]
async fn a_worker_that_dies_is_replaced() {
    let window = Window::open(Setting::fresh()).await;
    ask(&window, QUESTION).await;
    let workers = || everything(&window).into_iter().filter(|p| p.command.contains("__local-worker"));
    let before: Vec<_> = workers().collect();
    before.iter().for_each(|worker| worker.signal(libc::SIGKILL));
    ask(&window, QUESTION).await;
    assert_eq!(window.count("[data-testid=message-assistant]").await, 2);
    assert_eq!(window.count("[data-testid=error]").await, 0);
    assert!(workers().all(|worker| !before.contains(&worker)) && workers().count() > 0);
}

/// The app and all below it.
fn everything(window: &Window) -> BTreeSet<Process> {
    let app = window.app();
    let mut all = descendants(app.id);
    all.insert(app);
    all
}

async fn all_gone(window: &Window, all: BTreeSet<Process>) {
    let left = || all.iter().filter(|process| process.runs()).collect::<Vec<_>>();
    window.until("no process is left", || async { left().is_empty().then_some(()) }).await;
}
