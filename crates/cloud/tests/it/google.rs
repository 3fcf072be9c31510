//! Google's logins against a token endpoint that verifies what it gets.

use std::sync::Arc;

use lectern_cloud::credentials::Mint;
use lectern_cloud::credentials::google::{BadCredentials, GoogleLogin, about};
use lectern_cloud::{Credentials, SignInError, Tokens};
use lectern_core::{Delta, FinishReason, ModelErrorCode};
use lectern_fake_provider::vertex::{EMAIL, Step, Vertex};
use lectern_fake_provider::{Answer, Server};
use secrecy::ExposeSecret;
use serde_json::{Value, json};

use crate::endpoint::limits;
use crate::gemini::vertex;
use crate::support::{all, ask, error_of, text_of};

fn login(credentials: &Value) -> GoogleLogin {
    GoogleLogin::from_json(credentials, limits()).unwrap()
}

#[tokio::test]
async fn a_service_account_gets_a_token_for_its_assertion_and_a_new_one_when_it_is_revoked() {
    let fake = Vertex::start(vec![Step::says(&["one"]), Step::says(&["two"])]).await;
    let tokens = Arc::new(Tokens::new(login(&fake.service_account())));
    for expected in ["one", "two"] {
        let model = vertex(&fake.server.url(), Credentials::Tokens(tokens.clone()), limits());
        let deltas = all(&model, ask("hi")).await;
        assert_eq!(text_of(&deltas), expected, "{deltas:?}");
        assert_eq!(deltas.last(), Some(&Ok(Delta::Finished(FinishReason::Stop))));
        fake.revoke();
    }
    let paths: Vec<String> = fake.server.seen().into_iter().map(|seen| seen.path).collect();
    let asked = paths.iter().filter(|path| *path == "/token").count();
    assert_eq!((asked, paths.len()), (2, 5), "{paths:?}");
}

#[tokio::test]
async fn a_key_of_somebody_else_is_refused() {
    let fake = Vertex::start(vec![Step::says(&["one"])]).await;
    let mut account = fake.service_account();
    account["client_email"] = json!("other@p-1.iam.gserviceaccount.com");
    let error = login(&account).mint().await.unwrap_err();
    assert_eq!(error, SignInError::Expired("invalid_grant".to_owned()));
    let model =
        vertex(&fake.server.url(), Credentials::Tokens(Arc::new(Tokens::new(login(&account)))), limits());
    assert_eq!(error_of(&all(&model, ask("hi")).await).code, ModelErrorCode::Unauthorized);
}

#[tokio::test]
async fn a_person_and_a_machine_get_their_tokens() {
    let fake = Vertex::start(vec![Step::says(&["person"]), Step::says(&["machine"])]).await;
    let person = json!({"type": "authorized_user", "client_id": "c", "client_secret": "s", "refresh_token": "1//refresh",
        "quota_project_id": "payer", "token_uri": format!("{}/token", fake.server.url())});
    let host = fake.server.url().replace("http://", "");
    for (expected, login) in
        [("person", login(&person)), ("machine", GoogleLogin::machine(&host, limits()).unwrap())]
    {
        let model = vertex(&fake.server.url(), Credentials::Tokens(Arc::new(Tokens::new(login))), limits());
        assert_eq!(text_of(&all(&model, ask("hi")).await), expected);
    }
    let seen = fake.server.seen();
    assert_eq!(seen[1].header("x-goog-user-project"), "payer");
    assert_eq!(seen[3].header("x-goog-user-project"), "");
    assert_eq!(about(&person).unwrap().kind, "authorized_user");
    assert_eq!(about(&fake.service_account()).unwrap().account.unwrap(), EMAIL);
}

#[tokio::test]
async fn answers_of_a_token_endpoint_are_read_by_their_codes() {
    let recorded = |name: &str| {
        let path =
            std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded/constructed").join(name);
        serde_json::from_slice::<Value>(&std::fs::read(path).unwrap()).unwrap()
    };
    let answers = [
        Answer::json(200, &recorded("token-success.json")),
        Answer::json(400, &recorded("token-invalid-grant.json")),
        Answer::json(401, &json!({"error": "invalid_client", "error_description": "s3cret-refresh"})),
        Answer::json(503, &json!({"error": "internal_failure"})),
        Answer::of(200, "text/html", "<html>Sign in to the network</html>"),
    ];
    let server = Server::script(answers.to_vec()).await;
    let person = json!({"type": "authorized_user", "client_id": "c", "client_secret": "s",
        "refresh_token": "s3cret-refresh", "token_uri": server.url()});
    let login = login(&person);
    assert_eq!(login.mint().await.unwrap().secret.expose_secret(), "ya29.fake");
    assert_eq!(login.mint().await.unwrap_err(), SignInError::Expired("invalid_grant".into()));
    let refused = login.mint().await.unwrap_err();
    assert_eq!(refused, SignInError::Refused("invalid_client".into()));
    assert!(!format!("{refused:?} {login:?}").contains("s3cret"));
    for _ in 0..2 {
        assert!(matches!(login.mint().await.unwrap_err(), SignInError::Unreachable { .. }));
    }
}

#[test]
fn credentials_that_are_none_are_named() {
    let refused = |credentials: Value| GoogleLogin::from_json(&credentials, limits()).unwrap_err();
    assert_eq!(refused(json!([])), BadCredentials::NoObject);
    assert_eq!(refused(json!({})), BadCredentials::Missing("type"));
    assert_eq!(refused(json!({"type": "external_account"})), BadCredentials::Kind("external_account".into()));
    let key = |key: &str| json!({"type": "service_account", "client_email": "e", "private_key": key});
    assert_eq!(
        refused(key("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----")),
        BadCredentials::Key
    );
    let mut person =
        json!({"type": "authorized_user", "client_id": "c", "client_secret": "s", "refresh_token": "r"});
    person["token_uri"] = json!("http://elsewhere.example/token");
    assert!(matches!(refused(person), BadCredentials::Address(_)));
}
