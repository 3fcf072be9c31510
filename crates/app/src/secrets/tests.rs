//! The keyring with stores and an environment of a test's own.

use super::*;

fn unavailable() -> SecretsError {
    SecretsError::Unavailable("none here".into())
}

#[test]
fn each_kind_of_secret_has_its_variable() {
    for (key, variable) in [
        ("secret:github/token", Some("LECTERN_SECRET_GITHUB_TOKEN")),
        ("input:id", Some("LECTERN_INPUT_ID")),
        ("provider-my-work", Some("LECTERN_PROVIDER_MY_WORK")),
        ("other:x", None),
        ("plain", None),
    ] {
        assert_eq!(variable_of(key).as_deref(), variable, "{key}");
    }
}

#[tokio::test]
async fn without_a_keyring_a_secret_lasts_as_long_as_the_session() {
    let keyring = Keyring::without(unavailable(), Box::new(|_| None));
    assert_eq!(keyring.keep("provider-a", "geheim").await, Ok(Kept::ForThisSession(unavailable())));
    assert!(keyring.is_for_this_session("provider-a"));
    assert_eq!(keyring.get("provider-a").await, Ok(Some("geheim".to_owned())));
    assert!(!format!("{keyring:?}").contains("geheim"));
    keyring.delete("provider-a").await.unwrap();
    assert!(!keyring.is_for_this_session("provider-a"));
    assert_eq!(keyring.get("provider-a").await, Err(unavailable()));
}

#[tokio::test]
async fn the_environment_wins_over_the_keyring() {
    let open = || keyring_core::mock::Store::new().map(|store| store as Arc<CredentialStore>);
    let variable = |name: &str| (name == "LECTERN_PROVIDER_A").then(|| "of the environment".to_owned());
    let keyring = Keyring::with(Box::new(open), Box::new(variable));
    assert_eq!(keyring.keep("provider-a", "kept").await, Ok(Kept::InKeyring));
    assert_eq!(keyring.get("provider-a").await, Ok(Some("of the environment".to_owned())));
    assert_eq!(keyring.keep("provider-b", "kept").await, Ok(Kept::InKeyring));
    assert_eq!(keyring.get("provider-b").await, Ok(Some("kept".to_owned())));
}
