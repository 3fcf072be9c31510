//! Gemini at Vertex AI through the real window: a service account signs in, five steps call in parallel, and the server
//! of this test refuses whatever Google would refuse.

use lectern_fake_provider::vertex::{PRIVATE_KEY, Step, Vertex};
use lectern_tests::program;
use lectern_tests::window::{Setting, Window};
use serde_json::json;

use crate::remote::holds;
use crate::{answered, ask, card_states, tools};

const MODEL: &str = "gemini-3.5-flash";
const READ: &str = "House/Energy/Heat pump.md";

/// Five steps over the sample vault; three of them call in parallel, with ids and without.
fn five_steps() -> Vec<Step> {
    let search = |query: &str| json!({ "query": query });
    vec![
        Step::default().thinks("Where do the herons stand?").calls("notes__search_notes", &search("heron")),
        Step::default()
            .calls("notes__search_notes", &search("canal"))
            .calls("notes__read_note", &json!({ "path": READ }))
            .with_ids(),
        Step::says(&["Once ", "more. "])
            .calls("notes__search_notes", &search("E7"))
            .calls("notes__search_notes", &search("filter"))
            .calls("notes__list_notes", &json!({})),
        Step::default()
            .calls("notes__read_note", &json!({ "path": READ }))
            .calls("notes__search_notes", &search("walk")),
        Step::says(&["Nineteen herons, ", "says the note."]).signed_end(),
    ]
}

const CALLED: [&str; 8] = [
    "search_notes",
    "search_notes",
    "read_note",
    "search_notes",
    "search_notes",
    "list_notes",
    "read_note",
    "search_notes",
];

#[tokio::test]
async fn a_service_account_carries_five_steps_with_parallel_calls() {
    let fake = Vertex::start(five_steps()).await;
    let window = Window::open(Setting::fresh()).await;
    add_and_sign_in(&window, &fake).await;
    window.picture("25-vertex-signed-in").await;
    window.type_into("[data-testid=model-name]", MODEL).await;
    window.click("[data-testid=add-named]").await;
    window.click("[data-testid=use-model]").await;
    window.see_text("[data-testid=provider-models]", "In use").await;

    window.run("location.hash = '#/'", vec![]).await;
    ask(&window, "How many herons?").await;
    assert_eq!(fake.refusals(), Vec::<String>::new());
    as_played(&window).await;
    // 10 + 11 + 12 + 13 + 14 tokens were read, five times 5 and 2 of thoughts were written.
    window.see_text("[data-testid=turn-usage]", "60 read, 35 written").await;
    window.picture("26-vertex-answer").await;

    let seen = fake.server.seen();
    let tokens = seen.iter().filter(|seen| seen.path == "/token").count();
    assert_eq!((tokens, seen.len()), (1, 6), "one verified assertion carries five steps");
    assert!(seen.iter().all(|seen| !String::from_utf8_lossy(&seen.raw).contains("PRIVATE KEY")));

    // What is stored is what was seen.
    window.reload().await;
    window.see("[data-testid=message-assistant]").await;
    as_played(&window).await;
    nowhere(&window).await;
}

#[tokio::test]
async fn a_key_file_that_is_dragged_onto_the_form_adds_and_signs_in() {
    let fake = Vertex::start(vec![Step::says(&["Here."])]).await;
    let setting = Setting::fresh();
    let file = setting.home().with_file_name("key.json");
    std::fs::write(&file, fake.service_account().to_string()).unwrap();
    let window = Window::open(setting).await;
    window.run("location.hash = '#/settings/providers'", vec![]).await;
    window.click("[data-testid=add-provider]").await;
    window.click("[data-kind=vertex]").await;
    window.type_into("[data-testid=provider-address]", &fake.server.url()).await;
    let drag = window.drag(&file);
    window.see_text("[data-testid=drop-target][data-fits=true]", "key.json").await;
    window.picture("27-key-drag").await;
    drag.drop();
    window.see_text("[data-testid=login]", "Signed in").await;
    nowhere(&window).await;
}

#[tokio::test]
async fn what_the_command_line_changes_is_seen_in_an_open_window() {
    let fake = Vertex::start(vec![Step::says(&["Here."])]).await;
    let window = Window::open(Setting::fresh()).await;
    window.run("location.hash = '#/settings/providers'", vec![]).await;
    window.see("[data-testid=add-provider]").await;
    let lectern = |args: &[&str]| {
        let mut command = std::process::Command::new(program("lectern"));
        command.args(args).env("LECTERN_HOME", window.home()).env("LECTERN_KEYRING", "off");
        let ran = command.output().unwrap();
        assert!(ran.status.success(), "{ran:?}");
    };
    let provider = "[data-testid=provider-list] [data-provider]";
    let endpoint = format!("{}/v1", fake.server.url());
    lectern(&["models", "add-endpoint", &endpoint, "--name", "Terminal", "--model", "tiny"]);
    window.see_text(provider, "Terminal").await;
    lectern(&["models", "remove-provider", "terminal"]);
    window.see_no(provider).await;
}

/// With the key of a service account, pasted.
async fn add_and_sign_in(window: &Window, fake: &Vertex) {
    window.run("location.hash = '#/settings/providers'", vec![]).await;
    window.click("[data-testid=add-provider]").await;
    window.click("[data-kind=vertex]").await;
    window.type_into("[data-testid=provider-address]", &fake.server.url()).await;
    window.click("[data-testid=provider-save]").await;
    window.type_into("[data-testid=secret]", &fake.service_account().to_string()).await;
    window.click("[data-testid=keep-secret]").await;
    // Whether there is a keyring is the machine's; without one it is for this session.
    window.see_text("[data-testid=login]", "Signed in").await;
}

async fn as_played(window: &Window) {
    answered(window, "Nineteen herons, says the note.").await;
    assert_eq!(tools(window).await, CALLED);
    assert_eq!(card_states(window).await, vec!["done"; CALLED.len()]);
}

/// No line of the key, and no token, is in the page or in a file.
async fn nowhere(window: &Window) {
    let page = "return document.documentElement.outerHTML + JSON.stringify({...localStorage})";
    let page = window.run(page, vec![]).await.to_string();
    let lines = PRIVATE_KEY.lines().filter(|line| !line.starts_with("-----") && line.len() > 40);
    for secret in lines.chain(["ya29.test-"]) {
        assert!(!page.contains(secret), "{secret} is in the page");
        assert!(!holds(&window.home(), secret.as_bytes()), "{secret} is in a file");
    }
}
