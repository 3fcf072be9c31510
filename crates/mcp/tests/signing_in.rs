//! Servers that want to know who asks: what opens, what is kept, what is renewed, and who never sees a token.

#[path = "support/door.rs"]
mod door;
mod support;

use std::sync::Arc;

use door::{Door, Yes};
use lectern_core::{ServerId, ToolOutcome};
use lectern_mcp::secrets::{MemorySecrets, Secrets};
use lectern_mcp::{FailureCode, Host, HostOptions, ServerConfig, ServerState, SignInError, Transport};
use serde_json::json;
use support::*;

fn with(secrets: &Arc<MemorySecrets>) -> HostOptions {
    HostOptions { secrets: Some(Arc::clone(secrets) as Arc<dyn Secrets>), ..quick() }
}

async fn host_at(door: &Door, secrets: &Arc<MemorySecrets>) -> Host {
    started([ServerConfig::remote("s", door.url())], with(secrets)).await
}

async fn sign_in(host: &Host) -> Result<(), SignInError> {
    host.sign_in(&ServerId::from("s"), Arc::new(Yes)).await
}

async fn knocks(host: &Host) {
    assert_eq!(call(host, "s__knock", json!({})).await.text(), "come in");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_opens_until_the_user_wants_it_and_then_only_once() {
    let (door, secrets) = (Door::open().await, Arc::new(MemorySecrets::default()));
    let host = host_at(&door, &secrets).await;
    assert_eq!(state(&host, "s"), ServerState::NeedsSignIn);
    assert_eq!(door.count("/authorize"), 0);

    sign_in(&host).await.unwrap();
    assert_eq!(state(&host, "s"), ServerState::Ready);
    knocks(&host).await;
    let asked = door.last("/authorize").fields;
    assert_eq!(asked["code_challenge_method"], "S256");
    assert_eq!(asked["resource"], door.url());
    assert_eq!((asked["scope"].as_str(), asked["client_id"].as_str()), ("notes", "lectern-here"));
    assert!(
        asked["redirect_uri"].starts_with("http://127.0.0.1:") && asked["state"].len() >= 16,
        "{asked:?}"
    );
    let traded = door.last("/token").fields;
    assert_eq!((traded["code"].as_str(), traded["resource"].as_str()), ("the-code", door.url().as_str()));
    assert!(traded["code_verifier"].len() >= 43);
    let status = host.status(&ServerId::from("s")).unwrap();
    assert_eq!(status.signed_in.as_deref(), Some(door.origin.as_str()));
    host.close().await;

    // What is kept names whose it is, and does for the next start.
    assert!(format!("{secrets:?}").contains(&format!("oauth:{}", door.origin)), "{secrets:?}");
    let host = host_at(&door, &secrets).await;
    knocks(&host).await;
    assert_eq!((door.count("/authorize"), door.count("/token")), (1, 1));
    host.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_is_renewed_before_it_ends_and_when_the_server_refuses_it() {
    let (door, secrets) = (Door::open().await, Arc::new(MemorySecrets::default()));
    // It ends within the minute in which it is renewed anyway.
    door.state().lasts = 30;
    let host = host_at(&door, &secrets).await;
    sign_in(&host).await.unwrap();
    let before = door.count("/token");
    knocks(&host).await;
    assert!(door.count("/token") > before, "renewed before it ended");
    assert_eq!(door.last("/token").fields["grant_type"], "refresh_token");

    door.state().lasts = 3_600;
    knocks(&host).await;
    let before = door.count("/token");
    knocks(&host).await;
    assert_eq!(door.count("/token"), before, "one that lasts is left alone");

    door.state().valid.clear();
    knocks(&host).await;
    assert_eq!(door.count("/token"), before + 1, "renewed when it was refused");
    assert_eq!(door.count("/authorize"), 1);
    host.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn when_nothing_helps_the_user_is_asked_and_not_the_browser() {
    let (door, secrets) = (Door::open().await, Arc::new(MemorySecrets::default()));
    let host = host_at(&door, &secrets).await;
    sign_in(&host).await.unwrap();
    door.state().valid.clear();
    door.state().refuses_refresh = true;
    let called = call(&host, "s__knock", json!({})).await;
    assert_eq!(called.result.outcome, ToolOutcome::Failed);
    assert!(called.text().contains("sign in"), "{}", called.text());
    reaches(&host, "s", |state| *state == ServerState::NeedsSignIn).await;
    assert_eq!(door.count("/authorize"), 1);

    door.state().refuses_refresh = false;
    sign_in(&host).await.unwrap();
    knocks(&host).await;
    host.sign_out(&ServerId::from("s")).await.unwrap();
    reaches(&host, "s", |state| *state == ServerState::NeedsSignIn).await;
    assert_eq!(format!("{secrets:?}"), "MemorySecrets([])");
    host.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_needs_more_rights_leads_to_a_visit_that_asks_for_all_of_them() {
    let (door, secrets) = (Door::open().await, Arc::new(MemorySecrets::default()));
    let host = host_at(&door, &secrets).await;
    sign_in(&host).await.unwrap();
    knocks(&host).await;

    door.state().call_needs = Some("write".into());
    let called = call(&host, "s__knock", json!({})).await;
    assert_eq!(called.result.outcome, ToolOutcome::Failed);
    assert!(called.text().contains("more rights for this (write)"), "{}", called.text());
    reaches(&host, "s", |state| *state == ServerState::NeedsSignIn).await;
    assert_eq!(door.count("/authorize"), 1, "nobody is sent to a browser without having asked for it");

    sign_in(&host).await.unwrap();
    assert_eq!(door.last("/authorize").fields["scope"], "notes write");
    knocks(&host).await;
    host.close().await;

    // The new token has it all.
    let host = host_at(&door, &secrets).await;
    knocks(&host).await;
    assert_eq!(door.count("/authorize"), 2);
    host.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_greets_everybody_and_refuses_calls_can_be_signed_in_to() {
    let (door, secrets) = (Door::open().await, Arc::new(MemorySecrets::default()));
    door.state().greets_everybody = true;
    let host = host_at(&door, &secrets).await;
    assert_eq!(state(&host, "s"), ServerState::Ready);
    // Where nothing was refused, nobody is sent to a browser.
    sign_in(&host).await.unwrap();
    assert_eq!(door.count("/authorize"), 0);

    let called = call(&host, "s__knock", json!({})).await;
    assert_eq!(called.result.outcome, ToolOutcome::Failed);
    reaches(&host, "s", |state| *state == ServerState::NeedsSignIn).await;
    sign_in(&host).await.unwrap();
    assert_eq!((door.count("/authorize"), door.last("/authorize").fields["scope"].as_str()), (1, "notes"));
    knocks(&host).await;

    // A token that it does not take any more, and that can't be renewed: the same again.
    door.state().valid.clear();
    door.state().refuses_refresh = true;
    assert_eq!(call(&host, "s__knock", json!({})).await.result.outcome, ToolOutcome::Failed);
    reaches(&host, "s", |state| *state == ServerState::NeedsSignIn).await;
    sign_in(&host).await.unwrap();
    assert_eq!(door.count("/authorize"), 2);
    knocks(&host).await;
    host.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_goes_to_its_own_server_only() {
    let secrets = Arc::new(MemorySecrets::default());
    let (mine, other) = (Door::open().await, Door::open().await);
    let configs = [ServerConfig::remote("s", mine.url()), ServerConfig::remote("other", other.url())];
    let host = started(configs, with(&secrets)).await;
    sign_in(&host).await.unwrap();
    let id = ServerId::from("other");
    let starts = host.status(&id).unwrap().starts;
    host.restart(&id).unwrap();
    while host.status(&id).unwrap().starts == starts {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    reaches(&host, "other", |state| *state == ServerState::NeedsSignIn).await;
    knocks(&host).await;
    assert!(other.count("/mcp") >= 2);
    assert!(other.state().seen.iter().all(|seen| seen.authorization.is_none()), "{:?}", other.state().seen);
    host.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_leads_nobody_into_another_network() {
    let (door, secrets) = (Door::open().await, Arc::new(MemorySecrets::default()));
    for inside in
        ["http://169.254.169.254/latest/meta-data", "https://10.1.2.3/metadata", "file:///etc/passwd"]
    {
        door.state().metadata_at = Some(inside.to_owned());
        let host = host_at(&door, &secrets).await;
        let error = sign_in(&host).await.unwrap_err().to_string();
        assert!(error.contains(inside), "{error}");
        assert_eq!(failure(&host, "s").code, FailureCode::Unauthorized);
        host.close().await;
    }
    assert_eq!(door.count("/authorize"), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_header_of_the_settings_is_used_as_it_is() {
    let (door, secrets) = (Door::open().await, Arc::new(MemorySecrets::default()));
    door.state().valid.push("my-own".into());
    let configured = |token: &str| {
        let mut config = ServerConfig::remote("s", door.url());
        if let Transport::Http(endpoint) = &mut config.transport {
            endpoint.headers.insert("Authorization".into(), format!("Bearer {token}"));
        }
        config
    };
    let host = started([configured("my-own")], with(&secrets)).await;
    knocks(&host).await;
    host.close().await;
    let host = started([configured("a-wrong-one")], with(&secrets)).await;
    let failure = failure(&host, "s");
    assert!(failure.message.contains("`Authorization` header"), "{failure}");
    assert!(!format!("{failure:?}").contains("a-wrong-one"));
    assert_eq!(door.count("/authorize") + door.count("/register"), 0);
    host.close().await;
}
