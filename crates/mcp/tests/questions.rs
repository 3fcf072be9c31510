//! What servers ask in the middle of a call: the user, the model, the folders.

mod support;

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use lectern_core::{
    Asker, AssistantMessage, FinishReason, Part, Question, QuestionAnswer, Reply, Sample, ServerId,
    ToolOutcome, Usage, form,
};
use lectern_mcp::{Answers, Host, HostOptions, Root, ServerConfig};
use serde_json::{Value, json};
use support::*;
use tokio_util::sync::CancellationToken;

/// Answers as told and remembers what it was asked.
#[derive(Debug, Default)]
struct Person {
    asked: Mutex<Vec<Question>>,
    declines: bool,
    /// Thinks before it answers.
    thinks: Duration,
}

impl Person {
    fn questions(&self) -> Vec<Question> {
        self.asked.lock().expect("never poisoned").clone()
    }
}

impl Asker for Person {
    fn ask(&self, _: ServerId, question: Question, cancel: CancellationToken) -> BoxFuture<'static, Reply> {
        self.asked.lock().expect("never poisoned").push(question.clone());
        let (declines, thinks) = (self.declines, self.thinks);
        async move {
            tokio::select! {
                () = tokio::time::sleep(thinks) => {}
                () = cancel.cancelled() => return Reply::Answer(QuestionAnswer::Cancelled),
            }
            if declines {
                return Reply::Answer(QuestionAnswer::Declined);
            }
            match question {
                Question::Form { fields, .. } => {
                    let mut content = form::defaults(&fields);
                    for field in form::without_default(&fields) {
                        content.insert(field.name.clone(), json!("Ada"));
                    }
                    Reply::Answer(QuestionAnswer::Accepted { content: Some(content) })
                }
                Question::Url { .. } | Question::SamplingReply { .. } => {
                    Reply::Answer(QuestionAnswer::Accepted { content: None })
                }
                Question::Sampling { request, .. } => {
                    let said = format!("heard {} messages", request.messages.len());
                    Reply::Sample(Box::new(Sample {
                        message: AssistantMessage {
                            parts: vec![Part::Text { text: said }],
                            ..AssistantMessage::default()
                        },
                        model: "tester".into(),
                        finish: FinishReason::Stop,
                        usage: Usage::default(),
                    }))
                }
            }
        }
        .boxed()
    }
}

fn asking() -> HostOptions {
    HostOptions {
        answers: Answers { elicitation: true, sampling: true },
        roots: vec![Root { uri: "file:///notes".into(), name: Some("Notes".into()) }].into(),
        ..quick()
    }
}

/// A real server-everything, or none, said loudly.
async fn everything() -> Option<Host> {
    let clients = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/clients");
    let path = clients.join("node_modules/.bin/mcp-server-everything");
    if !path.exists() {
        eprintln!("\n!!! SKIPPED: run `npm ci` in {}\n", clients.display());
        return None;
    }
    let config = ServerConfig::new("all", path.to_str()?, ["stdio"]);
    let host = started([config], asking()).await;
    // It offers the tools that ask once it knows what the client can do.
    let mut news = host.subscribe();
    let wanted = "all__trigger-sampling-request";
    while !lectern_core::ToolProvider::tools(&host).iter().any(|tool| tool.name.as_str() == wanted) {
        tokio::time::timeout(Duration::from_secs(60), news.recv()).await.expect("its tools change").ok();
    }
    Some(host)
}

async fn asked_call(host: &Host, tool: &str, arguments: Value, person: &Arc<Person>) -> Called {
    start_asking_call(host, tool, arguments, Arc::clone(person) as Arc<dyn Asker>).finish().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_everything_gets_its_form_its_visit_and_its_sample() {
    let Some(host) = everything().await else { return };
    let person = Arc::new(Person::default());

    let form = asked_call(&host, "all__trigger-elicitation-request", json!({}), &person).await;
    assert_eq!(form.result.outcome, ToolOutcome::Succeeded, "{}", form.text());
    let Some(Question::Form { fields, .. }) = person.questions().pop() else { panic!("no form") };
    assert!(fields.len() > 8, "{fields:#?}");
    assert!(form.text().contains("\"action\": \"accept\"") && form.text().contains("Ada"), "{}", form.text());

    let visit = json!({"url": "https://example.org/sign-in?a=1"});
    let visited = asked_call(&host, "all__trigger-url-elicitation", visit, &person).await;
    assert!(visited.text().contains("completed"), "{}", visited.text());
    assert!(
        matches!(person.questions().pop(), Some(Question::Url { url, .. }) if url == "https://example.org/sign-in?a=1")
    );

    // The same, told by an error: consent, then "done", then the call again.
    let visit = json!({"url": "https://example.org/b", "errorPath": true});
    let visited = asked_call(&host, "all__trigger-url-elicitation", visit, &person).await;
    assert_eq!(visited.result.outcome, ToolOutcome::Succeeded, "{}", visited.text());
    assert_eq!(person.questions().len(), 5, "{:#?}", person.questions());

    let sample = json!({"prompt": "Say hello", "maxTokens": 50});
    let sampled = asked_call(&host, "all__trigger-sampling-request", sample, &person).await;
    assert!(sampled.text().contains("heard 1 messages"), "{}", sampled.text());

    let roots = asked_call(&host, "all__get-roots-list", json!({}), &person).await;
    assert!(roots.text().contains("file:///notes"), "{}", roots.text());
    host.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_everything_takes_a_no() {
    let Some(host) = everything().await else { return };
    let person = Arc::new(Person { declines: true, ..Person::default() });
    let form = asked_call(&host, "all__trigger-elicitation-request", json!({}), &person).await;
    assert!(form.text().contains("decline"), "{}", form.text());
    let sample = json!({"prompt": "Say hello"});
    let sampled = asked_call(&host, "all__trigger-sampling-request", sample, &person).await;
    assert_eq!(sampled.result.outcome, ToolOutcome::Failed, "{}", sampled.text());
    assert!(sampled.text().contains("rejected"), "{}", sampled.text());
    host.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_time_of_the_user_is_not_the_servers() {
    let Some(host) = everything().await else { return };
    let mut config = host.config(&"all".into()).unwrap();
    config.timeout_s = Some(2);
    host.set(config).await;
    host.settled().await;
    let person = Arc::new(Person { thinks: Duration::from_secs(4), ..Person::default() });
    let visit = json!({"url": "https://example.org/slow"});
    let visited = asked_call(&host, "all__trigger-url-elicitation", visit, &person).await;
    assert!(visited.text().contains("completed"), "{}", visited.text());
    host.close().await;
}
