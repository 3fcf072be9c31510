//! Servers that ask without measure, and results that come in rounds or later.

mod support;

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use lectern_core::{Asker, CallNews, Question, QuestionAnswer, Reply, ServerId, ToolOutcome, form};
use lectern_mcp::{Answers, Host, HostOptions, ServerConfig};
use serde_json::{Value, json};
use support::*;
use tokio_util::sync::CancellationToken;

/// Takes the defaults of every form, or waits for ever.
#[derive(Debug, Default)]
struct Person {
    asked: Mutex<Vec<String>>,
    open: Arc<AtomicUsize>,
    most_open: Arc<AtomicUsize>,
    silent: bool,
}

impl Person {
    fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("never poisoned").clone()
    }
}

/// A question that is open, until it is answered or withdrawn.
struct Open(Arc<AtomicUsize>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Asker for Person {
    fn ask(&self, _: ServerId, question: Question, cancel: CancellationToken) -> BoxFuture<'static, Reply> {
        let Question::Form { message, fields, .. } = question else { panic!("no form") };
        self.asked.lock().expect("never poisoned").push(message);
        let now = self.open.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_open.fetch_max(now, Ordering::SeqCst);
        let (open, silent) = (Open(Arc::clone(&self.open)), self.silent);
        async move {
            let _open = open;
            if silent {
                cancel.cancelled().await;
            }
            Reply::Answer(QuestionAnswer::Accepted { content: Some(form::defaults(&fields)) })
        }
        .boxed()
    }
}

fn server(id: &str, era: &str) -> ServerConfig {
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/servers/asks.mjs");
    ServerConfig::new(id, "node", [script.to_str().expect("a path of text"), era])
}

fn asking() -> HostOptions {
    HostOptions { answers: Answers { elicitation: true, sampling: false }, ..quick() }
}

async fn host(era: &str) -> Host {
    started([server("s", era)], asking()).await
}

async fn ask(host: &Host, tool: &str, person: &Arc<Person>) -> Called {
    start_asking_call(host, tool, json!({}), Arc::clone(person) as Arc<dyn Asker>).finish().await
}

fn json_of(called: &Called) -> Value {
    serde_json::from_str(&called.text()).expect("JSON")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn input_is_given_round_by_round() {
    let host = host("modern").await;
    let person = Arc::new(Person::default());
    let called = ask(&host, "s__rounds", &person).await;
    assert_eq!(person.asked(), ["What is first?", "What is second?"]);
    let answer = json!({"last": {"second": {"action": "accept", "content": {"second": "bread"}}}});
    assert_eq!(json_of(&called), answer);
    let calls: Vec<Value> = called
        .wire()
        .into_iter()
        .filter(|(_, message)| message["method"] == "tools/call")
        .map(|(_, message)| message.clone())
        .collect();
    assert_eq!(calls.len(), 3);
    assert_eq!(
        (&calls[1]["params"]["requestState"], &calls[2]["params"]["requestState"]),
        (&json!("first"), &json!("second"))
    );
    assert!(calls[0]["id"] != calls[1]["id"] && calls[1]["params"]["inputResponses"]["second"].is_null());

    assert_eq!(ask(&host, "s__state-only", &person).await.text(), "resumed");
    let nonsense = ask(&host, "s__input-nonsense", &person).await;
    assert_eq!(nonsense.result.outcome, ToolOutcome::Failed, "{}", nonsense.text());
    host.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rounds_without_end_are_ended() {
    let host = host("modern").await;
    let person = Arc::new(Person::default());
    let called = ask(&host, "s__rounds-forever", &person).await;
    assert_eq!(called.result.outcome, ToolOutcome::Failed);
    assert!(called.text().contains("more than 10"), "{}", called.text());
    assert!(person.asked().len() <= 11, "{}", person.asked().len());
    host.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_asks_and_ends() {
    let host = host("modern").await;
    let person = Arc::new(Person::default());
    let called = ask(&host, "s__task", &person).await;
    assert_eq!(json_of(&called)["spice"]["content"]["spice"], "bread");
    assert_eq!(person.asked(), ["What is spice?"]);
    assert!(called.logs().contains(&"[task] working: begun"), "{:?}", called.logs());
    let failed = ask(&host, "s__task-failed", &person).await;
    assert_eq!(failed.result.outcome, ToolOutcome::Failed);
    assert!(failed.text().contains("the oven is cold"), "{}", failed.text());
    host.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_without_end_is_given_up_and_cancelled() {
    let mut config = server("s", "modern");
    config.timeout_s = Some(5);
    config.total_timeout_s = Some(1);
    let host = started([config], asking()).await;
    let called = ask(&host, "s__task-never", &Arc::new(Person::default())).await;
    assert_eq!(called.result.outcome, ToolOutcome::Failed);
    let answers = json_of(&call_plain(&host, "s__answers").await);
    assert_eq!(answers, json!([{"cancelled": "n"}]));
    host.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_questions_is_bounded() {
    let host = host("legacy").await;
    let person = Arc::new(Person { silent: true, ..Person::default() });
    let called = ask(&host, "s__flood", &person).await;
    let refused = json_of(&called)["answers"].as_u64().expect("a number");
    assert_eq!(refused, 1_000 - 16, "all but those that wait are refused at once");
    assert!(person.most_open.load(Ordering::SeqCst) <= 16);
    // The call is over: nobody is asked any more, and the server still answers.
    assert_eq!(call_plain(&host, "s__sleep").await.text(), "slept");
    assert_eq!(person.open.load(Ordering::SeqCst), 0, "questions of a call end with it");
    host.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn questions_with_bad_ids_are_refused_and_those_taken_back_get_no_answer() {
    let host = host("legacy").await;
    let person = Arc::new(Person { silent: true, ..Person::default() });
    let called = ask(&host, "s__bad-ids", &person).await;
    let answers = json_of(&called);
    let of =
        |id: Value| answers.as_array().expect("a list").iter().filter(|answer| answer["id"] == id).count();
    assert_eq!(of(json!("gone")), 0, "{answers}");
    assert_eq!(of(json!("twice")), 1, "the second one is refused: {answers}");
    assert_eq!(of(Value::Null), 2, "{answers}");
    host.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_outside_of_any_call_goes_to_the_host_or_to_nobody() {
    async fn later(host: &Host, person: &Person) -> Value {
        call_plain(host, "s__asks-later").await;
        // No call runs while it asks, as far as somebody notices.
        for _ in 0..40 {
            if person.asked().is_empty() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
        for _ in 0..200 {
            let answers = json_of(&call_plain(host, "s__answers").await);
            if answers.as_array().is_some_and(|answers| !answers.is_empty()) {
                return answers[0]["result"]["action"].clone();
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("no answer")
    }
    let person = Arc::new(Person::default());
    let nobody = host("legacy").await;
    assert_eq!(later(&nobody, &person).await, "decline");
    nobody.close().await;
    let asker = Some(Arc::clone(&person) as Arc<dyn Asker>);
    let host = started([server("s", "legacy")], HostOptions { asker, ..asking() }).await;
    assert_eq!(later(&host, &person).await, "accept");
    assert_eq!(person.asked(), ["What is later?"]);
    host.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_said_to_hold_is_not_asked_again_when_the_tool_only_reads() {
    let mut config = server("s", "modern");
    config.trusted = true;
    let host = started([config, server("t", "modern")], asking()).await;
    let first = call_plain(&host, "s__counter").await;
    let again = call_plain(&host, "s__counter").await;
    assert_eq!((first.text(), again.text()), ("1".to_owned(), "1".to_owned()));
    assert!(again.wire().is_empty() && again.logs()[0].contains("not asked again"), "{:?}", again.news);
    let other = call(&host, "s__counter", json!({"a": 1})).await;
    assert_eq!(other.text(), "2", "other arguments are another question");
    assert_eq!(call_plain(&host, "s__counter-write").await.text(), "3");
    assert_eq!(
        call_plain(&host, "s__counter-write").await.text(),
        "4",
        "a tool that writes is always called"
    );
    call_plain(&host, "t__counter").await;
    assert_eq!(
        call_plain(&host, "t__counter").await.text(),
        "2",
        "who is not trusted is not believed to only read"
    );
    host.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_wait_for_their_turn_and_can_be_stopped_while_they_do() {
    let mut config = server("s", "legacy");
    config.max_concurrent = Some(1);
    let host = started([config], asking()).await;
    let mut first = start_call(&host, "s__sleep", json!({}));
    first.sent().await;
    let mut second = start_call(&host, "s__sleep", json!({}));
    let waits = second.news.recv().await.expect("it says that it waits");
    assert!(matches!(&waits, CallNews::Log(line) if line.contains("waits")), "{waits:?}");
    second.cancel.cancel();
    let second = second.finish().await;
    assert_eq!((second.result.outcome, second.wire().len()), (ToolOutcome::Cancelled, 0));
    assert_eq!(first.finish().await.text(), "slept");
    assert_eq!(call_plain(&host, "s__sleep").await.text(), "slept");
    host.close().await;
}
