//! What servers have to read and to say gets into a message by the menus of the composer, with the keys alone.

use lectern_tests::window::{Setting, Window};
use serde_json::json;

use crate::servers::installed;
use crate::{QUESTION, finished, write_settings};

const ENTER: &str = "\u{E007}";
const BACKSPACE: &str = "\u{E003}";
const TAB: &str = "\u{E004}";
const DOWN: &str = "\u{E015}";
const COMPOSER: &str = "[data-testid=composer]";
const OPTION: &str = "[data-testid=composer-menu] [role=option]";

#[tokio::test]
async fn a_prompt_of_a_server_is_filled_in_and_sent() {
    let window = with_everything().await;
    window.type_into(COMPOSER, "/team man").await;
    window.see_text(OPTION, "Team Management").await;
    window.picture("24-prompts").await;
    window.type_into(COMPOSER, ENTER).await;
    // Without what it needs it is not taken.
    window.click("[data-testid=fill-done]").await;
    window.see("[data-blank=department][aria-invalid=true]").await;
    window.type_into("[data-blank=department]", "S").await;
    window.see_text("[data-testid=fill] [role=option]", "Support").await;
    window.picture("25-prompt-form").await;
    choose(&window, "department", "Sales", "Support").await;
    // What the server suggests next hangs on what was chosen before.
    window.type_into("[data-blank=name]", "E").await;
    choose(&window, "name", "Eve", "Alice").await;
    window.type_into("[data-blank=name]", ENTER).await;
    window.see("[data-prompt='everything:completable-prompt']").await;
    window.see_no("[data-testid=fill]").await;
    window.type_into(COMPOSER, ENTER).await;
    window.see_text("[data-testid=message-user]", "Please promote Eve to the head of the Sales team.").await;
    window.see_no("[data-testid=chips]").await;
    // The model may want to call a tool now; what it says to the prompt is its own affair.
    over(&window).await;
}

#[tokio::test]
async fn a_resource_of_a_server_goes_along() {
    let window = with_everything().await;
    window.type_into(COMPOSER, "What is in @compost").await;
    window.see_text(OPTION, "notes · Garden/Compost.md").await;
    window.picture("26-resources").await;
    window.type_into(COMPOSER, TAB).await;
    window.see("[data-uri='note:///Garden/Compost.md']").await;
    window.type_into(COMPOSER, "and in @dynamic text").await;
    window.see_text(OPTION, "demo://resource/dynamic/text/{resourceId}").await;
    window.type_into(COMPOSER, ENTER).await;
    window.type_into("[data-blank=resourceId]", "1").await;
    window.click("[data-testid=fill-done]").await;
    window.see("[data-uri='demo://resource/dynamic/text/1']").await;
    window.picture("27-chips").await;
    // What goes along is kept with the words.
    window.reload().await;
    window.see("[data-uri='demo://resource/dynamic/text/1']").await;
    window.type_into(COMPOSER, "?").await;
    window.type_into(COMPOSER, ENTER).await;
    window.see_text("[data-testid=message-user]", "What is in and in ?").await;
    window.see_text("[data-testid=took]", "note:///Garden/Compost.md").await;
    window.run("document.querySelectorAll('[data-testid=took] details')[1].open = true", vec![]).await;
    window.see_text("[data-testid=took]", "Resource 1: This is a plaintext resource").await;
    window.picture("28-took").await;
    over(&window).await;
}

#[tokio::test]
async fn a_resource_that_is_gone_is_named_and_the_message_is_kept() {
    let window = with_everything().await;
    window.type_into(COMPOSER, "Read @dynamic text").await;
    window.see_text(OPTION, "demo://resource/dynamic/text/{resourceId}").await;
    window.type_into(COMPOSER, ENTER).await;
    window.type_into("[data-blank=resourceId]", "none").await;
    window.click("[data-testid=fill-done]").await;
    window.see("[data-uri='demo://resource/dynamic/text/none']").await;
    window.type_into(COMPOSER, ENTER).await;
    window.see_text("[data-testid=error]", "everything").await;
    window.picture("29-no-such-resource").await;
}

#[tokio::test]
async fn the_menus_fit_into_a_small_dark_window() {
    let window = with_everything_in(Setting::fresh().with("GTK_THEME", "Adwaita:dark")).await;
    window.resize(720, 600).await;
    let sticks_out = "
        const all = [document.documentElement, ...document.querySelectorAll('[data-testid=composer-menu], form')];
        return all.some((one) => one.scrollWidth > one.clientWidth + 1
            || one.getBoundingClientRect().right > innerWidth || one.getBoundingClientRect().top < 0);";
    for (typed, picture) in [("@", "30-small-resources"), ("/", "31-small-prompts")] {
        window.type_into(COMPOSER, typed).await;
        window.see_text(OPTION, if typed == "@" { "everything · " } else { "Team Management" }).await;
        window.picture(picture).await;
        assert_eq!(window.run(sticks_out, vec![]).await, false, "{typed}");
        window.type_into(COMPOSER, BACKSPACE).await;
        window.see_no("[data-testid=composer-menu]").await;
    }
    window.type_into(COMPOSER, "/team man").await;
    window.see_text(OPTION, "Team Management").await;
    window.type_into(COMPOSER, ENTER).await;
    window.see_text("[data-testid=fill] [role=option]", "Engineering").await;
    window.picture("32-small-form").await;
    assert_eq!(window.run(sticks_out, vec![]).await, false, "the form");
}

/// Ends the turn, if it has not ended by itself.
async fn over(window: &Window) {
    let script = "document.querySelector('[data-testid=stop]')?.click()";
    window.run(script, vec![]).await;
    finished(window).await;
}

/// A window in which the tests' notes and server-everything are ready.
async fn with_everything() -> Window {
    with_everything_in(Setting::fresh()).await
}

async fn with_everything_in(setting: Setting) -> Window {
    let everything = json!({ "command": installed("mcp-server-everything"), "args": ["stdio"] });
    write_settings(&setting, &json!({ "version": 1, "mcpServers": { "everything": everything } }));
    let window = Window::open(setting).await;
    window.see_text("button", QUESTION).await;
    window.click("[data-testid=servers-button]").await;
    for id in ["everything", "notes"] {
        window.see(&format!("[data-server={id}][data-state=ready]")).await;
    }
    window.click("[data-testid=servers-button]").await;
    window
}

/// Takes the server's first suggestion, once it is there and those for other words are gone.
async fn choose(window: &Window, blank: &str, wanted: &str, other: &str) {
    let field = format!("[data-blank={blank}]");
    let css = "[data-testid=fill] [role=option]";
    let text: String = wanted.chars().take(wanted.len() - 1).collect();
    let script = "
        const field = document.querySelector(arguments[0]);
        field.focus();
        field.value = arguments[1];
        field.dispatchEvent(new Event('input', { bubbles: true }));";
    window.run(script, vec![json!(field), json!(text)]).await;
    let narrowed = || async {
        let texts = window.texts(css).await;
        let has = |text: &str| texts.iter().any(|one| one.trim() == text);
        (has(wanted) && !has(other)).then_some(())
    };
    window.until(&format!("{wanted} is suggested"), narrowed).await;
    window.type_into(&field, DOWN).await;
    window.type_into(&field, ENTER).await;
    let script = "return document.querySelector(arguments[0]).value";
    let taken = || async { (window.run(script, vec![json!(field)]).await == wanted).then_some(()) };
    window.until(&format!("{wanted} is taken"), taken).await;
}
