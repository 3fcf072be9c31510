//! What a person sees of a provider that fails: a countdown that can be ended, an answer that broke off, a page in place
//! of an answer, a stall.

use std::time::Duration;

use lectern_fake_provider::{Answer, Piece, Server};
use lectern_tests::window::{Setting, Window};
use serde_json::{Value, json};

use crate::{answered, ask, finished, say, write_settings};

const REPLY: &str = "Here it is, whole.";
const ERROR: &str = "[data-testid=error]";

/// An open window whose model is asked at a server that answers like this, one answer for each request.
async fn with(answers: Vec<Answer>) -> (Server, Window) {
    let server = Server::script(answers).await;
    let setting = Setting::fresh();
    let provider = json!({ "id": "p", "kind": "openai_compatible", "sign_in": "none", "base_url": server.url(),
        "stall_seconds": 1 });
    let model = json!({ "id": "m", "remote": { "provider": "p", "model": "m" } });
    let settings = json!({ "version": 1, "model": "m", "providers": [provider], "models": [model] });
    write_settings(&setting, &settings);
    (server, Window::open(setting).await)
}

fn chunk(text: &str, finish: Option<&str>) -> Value {
    json!({ "id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m",
        "choices": [{ "index": 0, "delta": { "content": text }, "finish_reason": finish }] })
}

fn good() -> Answer {
    Answer::events([&chunk(REPLY, Some("stop"))])
}

/// Asks for a pause that nobody wants to sit out.
fn busy() -> Answer {
    let info = json!({ "@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "100s" });
    Answer::json(
        429,
        &json!({ "error": { "code": 429, "status": "RESOURCE_EXHAUSTED", "message": "x", "details": [info] } }),
    )
}

fn half() -> Answer {
    Answer::events(&["one ", "two ", "three"].map(|text| chunk(text, None)))
}

/// The seconds of the countdown.
async fn seconds_left(window: &Window) -> Option<u32> {
    let words = window.texts("[data-testid=retrying]").await.concat();
    let (before, _) = words.split_once(" s (attempt 2)")?;
    before.rsplit(' ').next()?.parse().ok()
}

#[tokio::test]
async fn a_wait_is_counted_down_and_ended_and_a_cut_answer_stays_until_it_is_whole() {
    let cut = half().then(Piece::Pause(Duration::from_millis(100))).then(Piece::Cut);
    let (server, window) = with(vec![busy(), cut, good()]).await;

    say(&window, "First?").await;
    window.see_text("[data-testid=retrying]", "asks to wait").await;
    let first = window.until("it says how long", || seconds_left(&window)).await;
    assert!((90..=101).contains(&first), "{first}");
    let fewer = || async { seconds_left(&window).await.filter(|now| *now < first) };
    window.until("it counts down", fewer).await;
    window.picture("50-waiting-for-a-provider").await;
    window.press("[data-testid=message-assistant] button", "Stop waiting").await;
    finished(&window).await;
    answered(&window, "Stopped").await;
    assert_eq!((server.seen().len(), window.count(ERROR).await), (1, 0), "it is not asked again");

    ask(&window, "Second?").await;
    answered(&window, "one two three").await;
    answered(&window, "This answer is incomplete.").await;
    window.see_text(ERROR, "The answer broke off").await;
    window.picture("51-cut-answer").await;
    assert_eq!(server.seen().len(), 2, "it is never begun anew by itself");

    window.press(&format!("{ERROR} button"), "Try again").await;
    let more = || async { (window.count("[data-testid=message-user]").await == 3).then_some(()) };
    window.until("the question is there again", more).await;
    finished(&window).await;
    answered(&window, REPLY).await;
    let last = window.texts("[data-testid=message-assistant]").await.pop().unwrap_or_default();
    assert!(!last.contains("incomplete"), "{last}");
    assert_eq!(server.seen().len(), 3);

    // What came before the cut is kept, too, and is still told as a part.
    window.reload().await;
    let all = || async {
        let all = window.texts("[data-testid=message-assistant]").await;
        (all.len() == 3).then_some(all)
    };
    let [_, cut, whole] = &window.until("the conversation is there", all).await[..] else { unreachable!() };
    assert!(cut.contains("one two three") && cut.contains("This answer is incomplete."), "{cut}");
    assert!(whole.contains(REPLY), "{whole}");
}

#[tokio::test]
async fn a_page_a_refusal_and_a_stall_are_told_apart_with_their_ways_out() {
    let page = Answer::of(200, "text/html", "<!DOCTYPE html>\n<title>Sign in to the network</title>");
    let refused = Answer::json(401, &json!({ "error": { "message": "x", "code": "invalid_api_key" } }));
    let (server, window) = with(vec![page, refused, half().then(Piece::Stall), good()]).await;

    ask(&window, "First?").await;
    answered(&window, "a page of HTML came from").await;
    ask(&window, "Second?").await;
    answered(&window, "did not accept the key").await;
    window.press(&format!("{ERROR} button"), "Settings of the provider").await;
    window.see("[data-provider=p]").await;
    window.run("history.back()", vec![]).await;
    ask(&window, "Third?").await;
    answered(&window, "one two three").await;
    answered(&window, "The answer broke off").await;
    assert_eq!(server.seen().len(), 3);
    ask(&window, "Fourth?").await;
    answered(&window, REPLY).await;
}
