//! Resources, prompts and completions of servers that others wrote.

mod support;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use lectern_core::{Nobody, Part, ServerId, WireDirection};
use lectern_mcp::{AccessError, CompletionOf, Host, PromptRole, ServerConfig, ServerNews, ServerState};
use serde_json::json;
use support::*;

/// A real server-everything, or none, said loudly.
async fn everything() -> Option<(Host, ServerId)> {
    let clients = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/clients");
    let path = clients.join("node_modules/.bin/mcp-server-everything");
    if !path.exists() {
        eprintln!("\n!!! SKIPPED: run `npm ci` in {}\n", clients.display());
        return None;
    }
    Some((host_with(ServerConfig::new("all", path.to_str()?, ["stdio"])).await, "all".into()))
}

fn named(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn resources_are_listed_and_read() {
    let Some((host, id)) = everything().await else { return };
    let resources = host.resources(&id).await.unwrap();
    assert!(!resources.is_empty());
    let read = host.read_resource(&id, &resources[0].uri, Arc::new(Nobody)).await.unwrap();
    assert!(read[0].text.is_some(), "{read:?}");
    let templates = host.resource_templates(&id).await.unwrap();
    let text = templates.iter().find(|template| template.uri_template.contains("text")).unwrap();
    let blob = templates.iter().find(|template| template.uri_template.contains("blob")).unwrap();
    let uri = text.uri_template.replace("{resourceId}", "1");
    let read = host.read_resource(&id, &uri, Arc::new(Nobody)).await.unwrap();
    assert_eq!((read[0].uri.as_str(), read[0].base64.as_deref()), (uri.as_str(), None));
    let uri = blob.uri_template.replace("{resourceId}", "2");
    let read = host.read_resource(&id, &uri, Arc::new(Nobody)).await.unwrap();
    assert!(read[0].base64.is_some());
    assert!(
        matches!(read[0].clone().part(), Part::Resource(part) if part.text.as_deref().unwrap().contains("not shown"))
    );

    let missing = host.read_resource(&id, "demo://nothing/here", Arc::new(Nobody)).await.unwrap_err();
    assert!(missing.to_string().contains("`all`, resources/read"), "{missing}");
    let unknown = host.resources(&"nobody".into()).await.unwrap_err();
    assert!(matches!(unknown, AccessError::Unknown(_)));
    host.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn prompts_are_listed_filled_in_and_completed() {
    let Some((host, id)) = everything().await else { return };
    let prompts = host.prompts(&id).await.unwrap();
    let args = prompts.iter().find(|prompt| prompt.name == "args-prompt").expect("a prompt with arguments");
    let required: Vec<(&str, bool)> = args.arguments.iter().map(|a| (a.name.as_str(), a.required)).collect();
    assert_eq!(required, [("city", true), ("state", false)]);
    let filled =
        host.get_prompt(&id, "args-prompt", &named(&[("city", "Lyon")]), Arc::new(Nobody)).await.unwrap();
    assert_eq!(filled.messages[0].role, PromptRole::User);
    assert!(matches!(&filled.messages[0].parts[0], Part::Text { text } if text.contains("Lyon")));
    let missing = host.get_prompt(&id, "args-prompt", &named(&[]), Arc::new(Nobody)).await.unwrap_err();
    assert!(missing.to_string().contains("city"), "{missing}");

    let of = CompletionOf::Prompt { name: "completable-prompt".into() };
    let departments = host.complete(&id, &of, "department", "En", &named(&[])).await.unwrap();
    assert_eq!(departments.values, ["Engineering"]);
    let known = named(&[("department", "Engineering")]);
    let names = host.complete(&id, &of, "name", "", &known).await.unwrap();
    assert!(names.values.contains(&"Alice".to_owned()), "{names:?}");
    host.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_subscribed_resource_tells_that_it_changed() {
    let Some((host, id)) = everything().await else { return };
    let mut news = host.server_news();
    let uri = "demo://resource/dynamic/text/1";
    let subscription = host.subscribe_resource(&id, uri).await.unwrap();
    call(&host, "all__toggle-subscriber-updates", json!({})).await;
    let updated = tokio::time::timeout(Duration::from_secs(60), async {
        loop {
            if let Ok(ServerNews::ResourceUpdated(server, uri)) = news.recv().await {
                return (server, uri);
            }
        }
    });
    assert_eq!(updated.await.expect("it tells"), (id, uri.to_owned()));
    drop(subscription);
    host.close().await;
}

/// What is counted of a server, when it is counted.
async fn counted(host: &Host) -> (Option<u32>, Option<u32>) {
    host.counted().await;
    let status = host.status(&"s".into()).expect("a known server");
    (status.resources, status.prompts)
}

fn with_resources(count: &str) -> ServerConfig {
    let mut config = fixture("s", "ok");
    config.program_mut().expect("a program").args.extend(["--resources".to_owned(), count.to_owned()]);
    config
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn resources_and_prompts_are_counted_once_and_again_when_they_change() {
    for mode in ["ok", "legacy", "modern"] {
        let mut config = with_resources("5");
        config.program_mut().unwrap().args[1] = mode.to_owned();
        let host = host_with(config).await;
        assert_eq!(counted(&host).await, (Some(5), Some(1)), "{mode}");
        let mut news = host.subscribe();
        let more = async {
            call(&host, "s__publish", json!({})).await;
            while host.status(&"s".into()).unwrap().resources != Some(6) {
                news.recv().await.unwrap();
            }
        };
        tokio::time::timeout(Duration::from_secs(60), more).await.expect("the count grows");
        let listed = call(&host, "s__listed", json!({})).await;
        assert_eq!(listed.text(), "2", "{mode}: listed at the start and after the change");
        host.stop(&"s".into()).await.unwrap();
        assert_eq!(counted(&host).await, (None, None), "{mode}");
        host.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_never_lists_its_resources_is_ready_all_the_same() {
    let host = host_with(with_resources("never")).await;
    assert_eq!(state(&host, "s"), ServerState::Ready);
    assert_eq!(host.status(&"s".into()).unwrap().resources, None, "not counted yet");
    assert_eq!(call(&host, "s__echo", json!({"text": "hi"})).await.text(), "Echo: hi");
    host.close().await;

    let host = host_with(fixture("s", "ok")).await;
    assert_eq!(counted(&host).await, (Some(0), Some(0)), "nothing is declared");
    host.close().await;
}

/// How often the host asked a server for something.
fn asked(host: &Host, method: &str) -> usize {
    let all = host.traffic(&"s".into(), 0).expect("a known server").messages;
    let sent = all.iter().filter(|message| message.direction == WireDirection::Sent);
    sent.filter(|message| message.method.as_deref() == Some(method)).count()
}

async fn until(host: &Host, method: &str, times: usize) {
    let reached = async {
        while asked(host, method) < times {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), reached).await.expect(method);
}

async fn updated(news: &mut tokio::sync::broadcast::Receiver<ServerNews>) {
    let told = tokio::time::timeout(Duration::from_secs(60), news.recv()).await;
    assert_eq!(
        told.expect("in time").expect("news"),
        ServerNews::ResourceUpdated("s".into(), "note:///a".into())
    );
}

fn with_news(mode: &str) -> ServerConfig {
    let mut config = fixture("s", mode);
    config.program_mut().expect("a program").args.push("--news".into());
    config
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_subscription_survives_the_death_of_its_server() {
    let host = host_with(with_news("legacy")).await;
    let mut news = host.server_news();
    let subscription = host.subscribe_resource(&"s".into(), "note:///a").await.unwrap();
    updated(&mut news).await;
    call(&host, "s__die", json!({})).await;
    until(&host, "resources/subscribe", 2).await;
    // The server tells at once, and the host that there may have been something.
    updated(&mut news).await;
    updated(&mut news).await;
    drop(subscription);
    until(&host, "resources/unsubscribe", 1).await;
    host.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_sent_away_listens_again() {
    let host = host_with(with_news("modern")).await;
    // For changes of the tools; who is ready sends it in a moment.
    until(&host, "subscriptions/listen", 1).await;
    let subscription = host.subscribe_resource(&"s".into(), "note:///a").await.unwrap();
    // Once it ended in good order, once it was cancelled.
    until(&host, "subscriptions/listen", 4).await;
    drop(subscription);
    until(&host, "notifications/cancelled", 1).await;
    host.close().await;
}
