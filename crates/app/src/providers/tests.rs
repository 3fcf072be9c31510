//! Logins against a server that gives tokens.

use futures::future::join_all;
use lectern_cloud::Credentials;
use lectern_fake_provider::vertex::Vertex;
use lectern_mcp::{Secrets, SecretsError};

use super::*;
use crate::secrets::Keyring;
use crate::settings::{Login, Settings};
use crate::view::{LoginView, ProviderDraft, ProviderOptions, SecretPlace};

async fn signed_in_to(fake: &Vertex) -> (Providers, ProviderEntry) {
    let keyring = Keyring::without(SecretsError::Unavailable("none here".into()), Box::new(|_| None));
    let draft = ProviderDraft {
        kind: ProviderKind::Vertex,
        name: None,
        project: None,
        location: None,
        base_url: Some(fake.server.url()),
        sign_in: None,
        options: ProviderOptions::default(),
    };
    let entry = add(&mut Settings::default(), draft).unwrap();
    let account = fake.service_account().to_string();
    let (secret, _) = secret::Secret::of_service_account(&account, &origin_of(&entry).unwrap()).unwrap();
    keyring.set(&entry.secret_name(), &secret.to_text()).await.unwrap();
    (Providers::new(keyring, None), entry)
}

#[tokio::test]
async fn many_models_at_once_ask_for_one_token() {
    let fake = Vertex::start(Vec::new()).await;
    let (providers, entry) = signed_in_to(&fake).await;
    let one = || async {
        let signed_in = providers.signed_in(&entry).await.unwrap();
        assert_eq!(signed_in.project.as_deref(), Some("p-1"));
        let Credentials::Tokens(tokens) = signed_in.credentials else { panic!("no tokens") };
        tokens.token(None).await.unwrap()
    };
    join_all((0..20).map(|_| one())).await;
    assert_eq!(fake.server.seen().len(), 1);
    // Whoever signs in anew, or changes the provider, is somebody else.
    providers.forget(&entry.id);
    one().await;
    assert_eq!(fake.server.seen().len(), 2);
}

#[tokio::test]
async fn a_secret_is_not_used_for_another_address() {
    let fake = Vertex::start(Vec::new()).await;
    let (providers, entry) = signed_in_to(&fake).await;
    let moved = ProviderEntry { base_url: Some("https://elsewhere.example".into()), ..entry };
    let problem = providers.signed_in(&moved).await.err().unwrap();
    assert_eq!(problem.code, "address_changed");
    assert!(fake.server.seen().is_empty());
}

#[tokio::test]
async fn who_signed_in_until_the_end_is_told_as_long_as_the_secret_is_there() {
    let fake = Vertex::start(Vec::new()).await;
    let (providers, entry) = signed_in_to(&fake).await;
    let account =
        |providers: &Providers| match provider_view(&entry, &Settings::default(), providers.seen(&entry))
            .login
        {
            LoginView::SignedIn { account, place: SecretPlace::Session, .. } => account,
            other => panic!("{other:?}"),
        };
    assert_eq!(account(&providers), None);
    let login = Login {
        account: Some("lena@example.org".into()),
        project: None,
        agreed: None,
        at: lectern_core::clock::now(),
    };
    providers.signed_in_for_session(&entry.id, Some(login));
    // Another name for the provider is no other login.
    providers.forget(&entry.id);
    assert_eq!(account(&providers).as_deref(), Some("lena@example.org"));
    providers.environment().delete(&entry.secret_name()).await.unwrap();
    let view = provider_view(&entry, &Settings::default(), providers.seen(&entry));
    assert_eq!(view.login, LoginView::SignedOut);
}
