//! A real HTTP server that misbehaves in each way that a provider does.

use std::time::Duration;

use futures::StreamExt;
use lectern_cloud::credentials::Mint;
use lectern_cloud::{
    Credentials, Limits, OpenAiConfig, OpenAiModel, OpenAiOptions, SignInError, Token, Tokens,
};
use lectern_core::{ChatModel, Delta, FinishReason, ModelErrorCode};
use lectern_fake_provider::tls::Tls;
use lectern_fake_provider::{Answer, Piece, Server, google_error};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::gemini::{developer, vertex};
use crate::support::{all, ask, error_of, info, text_of};

/// Generous, so that a slow machine does not decide; what is waited for in a test is short.
pub fn limits() -> Limits {
    Limits {
        connect: Duration::from_secs(20),
        first_byte: Duration::from_secs(60),
        read: Duration::from_secs(60),
        total: Duration::from_secs(120),
        attempts: 4,
        pause: Duration::from_millis(20),
        longest_pause: Duration::from_secs(60),
    }
}

fn said(text: &str, finish: Option<&str>) -> Value {
    let mut chunk =
        json!({"candidates": [{"content": {"role": "model", "parts": [{"text": text}]}, "index": 0}]});
    if let Some(finish) = finish {
        chunk["candidates"][0]["finishReason"] = json!(finish);
    }
    chunk
}

fn good() -> Answer {
    Answer::events(&[said("Hello ", None), said("world", Some("STOP"))])
}

/// `(after_ms, attempt, reason)` of each pause that was told.
fn pauses(deltas: &[Result<Delta, lectern_core::ModelError>]) -> Vec<(u64, u32, ModelErrorCode)> {
    let pause = |delta: &Result<Delta, _>| match delta {
        Ok(Delta::Retrying { after_ms, attempt, reason, .. }) => Some((*after_ms, *attempt, *reason)),
        _ => None,
    };
    deltas.iter().filter_map(pause).collect()
}

#[tokio::test]
async fn a_rate_limit_is_waited_for_as_long_as_it_says() {
    let details = json!([
        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "0.3s"},
        {"@type": "type.googleapis.com/google.rpc.QuotaFailure",
         "violations": [{"quotaId": "GenerateRequestsPerMinutePerProjectPerModel"}]},
    ]);
    let busy = Answer::json(
        429,
        &json!({"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "Zu viele.", "details": details}}),
    );
    let server = Server::script(vec![busy, good()]).await;
    let begun = std::time::Instant::now();
    let deltas = all(&developer(&server.url(), limits()), ask("hi")).await;
    assert_eq!(text_of(&deltas), "Hello world");
    let [(after, 1, ModelErrorCode::RateLimited)] = pauses(&deltas)[..] else { panic!("{deltas:?}") };
    assert!((300..=320).contains(&after), "{after}");
    assert!(begun.elapsed() >= Duration::from_millis(300));
    assert_eq!(server.seen().len(), 2);
}

#[tokio::test]
async fn a_daily_quota_is_final_and_a_long_wait_is_told() {
    let failure = |id: &str, delay: &str| {
        let details = json!([
            {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": id}]},
            {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay},
            {"@type": "type.googleapis.com/google.rpc.Help",
             "links": [{"description": "d", "url": "https://cloud.google.com/quota"}]},
        ]);
        Answer::json(
            429,
            &json!({"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "details": details}}),
        )
    };
    let server =
        Server::script(vec![failure("GenerateRequestsPerDayPerProjectPerModel-FreeTier", "1s")]).await;
    let error = error_of(&all(&developer(&server.url(), limits()), ask("hi")).await);
    assert_eq!((error.code, server.seen().len()), (ModelErrorCode::QuotaExhausted, 1), "{error:?}");
    assert!(error.hint.unwrap().contains("https://cloud.google.com/quota"));

    let server = Server::script(vec![failure("PerMinute", "600s")]).await;
    let error = error_of(&all(&developer(&server.url(), limits()), ask("hi")).await);
    assert_eq!((error.code, server.seen().len()), (ModelErrorCode::RateLimited, 1));
    assert_eq!(error.detail.unwrap()["wait_ms"], 600_000);
}

#[tokio::test]
async fn an_overload_is_tried_again_and_then_given_up() {
    let overload = google_error(503, "UNAVAILABLE", "过载");
    let server = Server::script(vec![overload.clone(), google_error(500, "INTERNAL", ""), good()]).await;
    let deltas = all(&developer(&server.url(), limits()), ask("hi")).await;
    assert_eq!((text_of(&deltas).as_str(), pauses(&deltas).len()), ("Hello world", 2));

    let server = Server::script(vec![overload]).await;
    let deltas = all(&developer(&server.url(), limits()), ask("hi")).await;
    assert_eq!((error_of(&deltas).code, server.seen().len()), (ModelErrorCode::Provider, 4));
    assert_eq!(pauses(&deltas).len(), 3);
}

struct Counting(std::sync::atomic::AtomicUsize);

impl Mint for Counting {
    fn mint(&self) -> futures::future::BoxFuture<'_, Result<Token, SignInError>> {
        Box::pin(async {
            let number = self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            Ok(Token {
                secret: format!("token-{number}").into(),
                expires: None,
                quota_project: Some("payer".into()),
            })
        })
    }
}

#[tokio::test]
async fn a_refused_token_is_renewed_once() {
    let tokens = || Credentials::Tokens(std::sync::Arc::new(Tokens::new(Counting(0.into()))));
    let refusal = google_error(401, "UNAUTHENTICATED", "expirado");
    let server = Server::script(vec![refusal.clone(), good()]).await;
    let deltas = all(&vertex(&server.url(), tokens(), limits()), ask("hi")).await;
    assert_eq!(text_of(&deltas), "Hello world");
    let sent: Vec<String> =
        server.seen().iter().map(|seen| seen.header("authorization").to_owned()).collect();
    assert_eq!(sent, ["Bearer token-0", "Bearer token-1"]);
    assert!(server.seen().iter().all(|seen| seen.header("x-goog-user-project") == "payer"));
    assert!(pauses(&deltas).is_empty());

    let server = Server::script(vec![refusal]).await;
    let error = error_of(&all(&vertex(&server.url(), tokens(), limits()), ask("hi")).await);
    assert_eq!((error.code, server.seen().len()), (ModelErrorCode::Unauthorized, 2));
}

#[tokio::test]
async fn a_stream_that_breaks_after_text_is_incomplete_and_never_begun_anew() {
    let mut cut = Answer::events(&[said("one ", None), said("two ", None), said("three", Some("STOP"))]);
    cut = cut.then(Piece::Pause(Duration::from_millis(50))).then(Piece::Cut);
    let server = Server::script(vec![cut, good()]).await;
    let deltas = all(&developer(&server.url(), limits()), ask("hi")).await;
    assert_eq!(text_of(&deltas), "one two three");
    let error = error_of(&deltas);
    assert_eq!((error.code, server.seen().len()), (ModelErrorCode::Incomplete, 1));
    assert!(error.hint.is_some());
}

#[tokio::test]
async fn a_stream_that_breaks_before_text_is_tried_again() {
    let mut cut = Answer::events(&[json!({"usageMetadata": {"promptTokenCount": 3}})]);
    cut = cut.then(Piece::Pause(Duration::from_millis(20))).then(Piece::Cut);
    let server = Server::script(vec![cut, good()]).await;
    let deltas = all(&developer(&server.url(), limits()), ask("hi")).await;
    assert_eq!((text_of(&deltas).as_str(), pauses(&deltas).len()), ("Hello world", 1));
}

#[tokio::test]
async fn a_page_of_html_is_named_as_one() {
    let page = "<!DOCTYPE html>\n<title>Error 404 (Not Found)!!1</title>\n<p>data: x";
    let server = Server::script(vec![Answer::of(404, "text/html; charset=UTF-8", page)]).await;
    let model = vertex(&server.url(), Credentials::Key("k".into()), limits());
    let error = error_of(&all(&model, ask("hi")).await);
    assert_eq!(error.code, ModelErrorCode::NotAvailableHere);
    assert!(error.message.contains("europe-west1"), "{error}");
    // A sign-in page of a network, with a status that says all is well.
    let server = Server::script(vec![Answer::of(200, "text/html", page)]).await;
    let error = error_of(&all(&developer(&server.url(), limits()), ask("hi")).await);
    assert_eq!(error.detail.unwrap()["kind"], "no_answer");
}

#[tokio::test]
async fn a_slow_drip_arrives_whole() {
    let body = format!("data: {}\r\n\r\n", said("ö", Some("STOP")));
    let mut answer = Answer { status: 200, headers: Vec::new(), pieces: Vec::new() };
    let (drip, rest) = body.as_bytes().split_at(4);
    for byte in drip {
        answer = answer.then(Piece::Bytes(vec![*byte])).then(Piece::Pause(Duration::from_secs(1)));
    }
    for byte in rest {
        answer = answer.then(Piece::Bytes(vec![*byte]));
    }
    let server = Server::script(vec![answer]).await;
    let deltas = all(&developer(&server.url(), limits()), ask("hi")).await;
    assert_eq!(text_of(&deltas), "ö", "{deltas:?}");
}

#[tokio::test]
async fn a_stall_ends_by_the_limit_and_is_told_as_what_it_is() {
    let limits = Limits { read: Duration::from_millis(300), attempts: 2, ..limits() };
    let server = Server::script(vec![Answer::events(&[said("Half", None)]).then(Piece::Stall)]).await;
    let deltas = all(&developer(&server.url(), limits), ask("hi")).await;
    assert_eq!(text_of(&deltas), "Half");
    let error = error_of(&deltas);
    assert_eq!(error.code, ModelErrorCode::Incomplete);
    assert_eq!(error.detail.unwrap()["kind"], "timed_out");
    // Something came, and nothing that could be shown: it is asked for once more.
    let ping = Answer::of(200, "text/event-stream", ": ping\n\n").then(Piece::Stall);
    let server = Server::script(vec![ping, good()]).await;
    assert_eq!(text_of(&all(&developer(&server.url(), limits), ask("hi")).await), "Hello world");
}

#[tokio::test]
async fn a_server_that_has_not_begun_is_waited_for_and_not_given_the_prompt_again() {
    let headers = Answer { status: 200, headers: Vec::new(), pieces: vec![] };
    let slow = headers.clone().then(Piece::Pause(Duration::from_secs(4)));
    let slow = good().pieces.into_iter().fold(slow, Answer::then);
    let server = Server::script(vec![slow]).await;
    let patient = Limits { read: Duration::from_secs(2), ..limits() };
    assert_eq!(text_of(&all(&developer(&server.url(), patient), ask("hi")).await), "Hello world");

    let short = Limits { first_byte: Duration::from_millis(300), ..limits() };
    let server = Server::script(vec![headers.then(Piece::Stall), good()]).await;
    let error = error_of(&all(&developer(&server.url(), short), ask("hi")).await);
    assert_eq!((error.code, server.seen().len()), (ModelErrorCode::Unreachable, 1));
    assert_eq!(error.detail.unwrap()["stage"], "waiting");
}

#[tokio::test]
async fn redirects_are_followed_at_home_only() {
    let elsewhere = Server::script(vec![good()]).await;
    let server = Server::start(std::sync::Arc::new(|seen| match seen.path.as_str() {
        "/moved" => good(),
        _ => Answer::of(307, "text/plain", "").header("location", "/moved"),
    }))
    .await;
    let deltas = all(&developer(&server.url(), limits()), ask("hi")).await;
    assert_eq!(text_of(&deltas), "Hello world");
    let seen = server.seen();
    assert_eq!((seen[1].method.as_str(), seen[1].json()), ("POST", seen[0].json()));
    assert_eq!(seen[1].header("x-goog-api-key"), "secret-key-1");

    for status in [301, 307] {
        let away = Answer::of(status, "text/plain", "").header("location", &elsewhere.url());
        let server = Server::script(vec![away]).await;
        let error = error_of(&all(&developer(&server.url(), limits()), ask("hi")).await);
        assert_eq!(error.detail.unwrap()["kind"], "moved");
        assert!(elsewhere.seen().is_empty(), "the key went elsewhere");
    }
}

#[tokio::test]
async fn a_compressed_body_and_a_wrong_content_type_are_read() {
    use std::io::Write;
    let body = format!("data: {}\n\n", said("zipped", Some("STOP")));
    let mut zip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    zip.write_all(body.as_bytes()).unwrap();
    let zipped =
        Answer::of(200, "text/event-stream", zip.finish().unwrap()).header("content-encoding", "gzip");
    let server = Server::script(vec![zipped]).await;
    assert_eq!(text_of(&all(&developer(&server.url(), limits()), ask("hi")).await), "zipped");
    assert!(server.seen()[0].header("accept-encoding").contains("gzip"));

    let server = Server::script(vec![Answer::of(200, "application/octet-stream", body)]).await;
    assert_eq!(text_of(&all(&developer(&server.url(), limits()), ask("hi")).await), "zipped");
    let whole = Answer::json(200, &json!([said("no ", None), said("stream", Some("STOP"))]));
    let server = Server::script(vec![whole]).await;
    assert_eq!(text_of(&all(&developer(&server.url(), limits()), ask("hi")).await), "no stream");
}

#[tokio::test]
async fn cancel_closes_the_connection_at_once_also_in_a_pause() {
    let server = Server::script(vec![Answer::events(&[said("Half", None)]).then(Piece::Stall)]).await;
    let cancel = CancellationToken::new();
    let mut stream = developer(&server.url(), limits()).stream(ask("hi"), cancel.clone());
    assert_eq!(stream.next().await, Some(Ok(Delta::Text("Half".to_owned()))));
    assert_eq!(server.open(), 1);
    cancel.cancel();
    assert_eq!(stream.next().await, Some(Ok(Delta::Finished(FinishReason::Cancelled))));
    assert_eq!(stream.next().await, None);
    let closed = async {
        while server.open() > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), closed).await.unwrap();

    let patient = Limits { pause: Duration::from_secs(50), ..limits() };
    let server = Server::script(vec![google_error(503, "UNAVAILABLE", "")]).await;
    let cancel = CancellationToken::new();
    let mut stream = developer(&server.url(), patient).stream(ask("hi"), cancel.clone());
    assert!(matches!(stream.next().await, Some(Ok(Delta::Retrying { .. }))));
    cancel.cancel();
    assert_eq!(stream.next().await, Some(Ok(Delta::Finished(FinishReason::Cancelled))));
}

#[tokio::test]
async fn a_key_that_the_server_repeats_is_in_no_error() {
    let echo = json!({"error": {"code": 400, "status": "INVALID_ARGUMENT", "message": "Bad key secret-key-1",
        "details": [{"@type": "x/google.rpc.ErrorInfo", "reason": "OTHER", "metadata": {"key": "secret-key-1"}},
                    {"@type": "x/google.rpc.DebugInfo", "detail": "secret-key-1"}]}});
    let server = Server::script(vec![Answer::json(400, &echo)]).await;
    let error = error_of(&all(&developer(&server.url(), limits()), ask("hi")).await);
    assert_eq!(error.code, ModelErrorCode::BadRequest);
    assert!(!format!("{error:?}").contains("secret-key"), "{error:?}");
}

#[tokio::test]
async fn a_wrong_model_is_told_with_names_that_are_like_it() {
    let server = Server::start(std::sync::Arc::new(|seen| match seen.method.as_str() {
        "GET" => Answer::json(
            200,
            &json!({"models": [{"name": "models/gemini-3.5-flash"}, {"name": "models/veo-9"}]}),
        ),
        _ => google_error(404, "NOT_FOUND", "kein Modell"),
    }))
    .await;
    let error = error_of(&all(&developer(&server.url(), limits()), ask("hi")).await);
    assert_eq!(error.code, ModelErrorCode::ModelNotFound);
    assert!(error.hint.unwrap().contains("gemini-3.5-flash"));
}

#[tokio::test]
async fn a_list_on_several_pages_is_read_to_its_end() {
    let server = Server::start(std::sync::Arc::new(|seen| {
        let model = |name: &str| json!({"name": name, "supportedGenerationMethods": ["generateContent"]});
        match seen.query.rsplit_once("pageToken=").map(|(_, token)| token) {
            None => Answer::json(200, &json!({"models": [model("models/a")], "nextPageToken": "p/2"})),
            Some("p%2F2") => Answer::json(200, &json!({"models": [model("models/b"), model("models/a")]})),
            Some(other) => google_error(400, "INVALID_ARGUMENT", other),
        }
    }))
    .await;
    let listed = developer(&server.url(), limits()).models().await.unwrap();
    assert_eq!(listed.iter().map(|one| one.id.as_str()).collect::<Vec<_>>(), ["a", "b"]);
}

#[tokio::test]
async fn nobody_at_the_address_is_told_at_once() {
    let server = Server::script(vec![good()]).await;
    let url = server.url();
    drop(server);
    let closed = async {
        while tokio::net::TcpStream::connect(url.trim_start_matches("http://")).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), closed).await.unwrap();
    let base = url::Url::parse(&url).unwrap();
    let options = OpenAiOptions::of(&base);
    let config = OpenAiConfig {
        info: info("m"),
        model: "m".to_owned(),
        base,
        credentials: Credentials::None,
        options,
        limits: limits(),
    };
    let deltas = all(&OpenAiModel::new(config).unwrap(), ask("hi")).await;
    let error = error_of(&deltas);
    assert_eq!((error.code, deltas.len()), (ModelErrorCode::Unreachable, 1), "{error:?}");
}

#[tokio::test]
async fn what_the_project_lacks_is_told_with_its_link() {
    let link =
        "https://console.developers.google.com/apis/api/aiplatform.googleapis.com/overview?project=p-1";
    let details = json!([
        {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "SERVICE_DISABLED", "domain": "googleapis.com",
         "metadata": {"service": "aiplatform.googleapis.com", "consumer": "projects/p-1", "activationUrl": link}},
        {"@type": "type.googleapis.com/google.rpc.LocalizedMessage", "locale": "de-DE", "message": "Nicht aktiviert."},
    ]);
    let disabled =
        json!({"error": {"code": 403, "status": "PERMISSION_DENIED", "message": "aus", "details": details}});
    let server = Server::script(vec![Answer::json(403, &disabled)]).await;
    let error = error_of(&all(&vertex(&server.url(), Credentials::None, limits()), ask("hi")).await);
    assert_eq!((error.code, server.seen().len()), (ModelErrorCode::NotEnabled, 1));
    assert!(error.hint.unwrap().contains(link));
    assert!(error.message.contains("aiplatform.googleapis.com"));
}

#[tokio::test]
async fn a_refused_login_is_told_by_what_was_shown() {
    struct Withdrawn;
    impl Mint for Withdrawn {
        fn mint(&self) -> futures::future::BoxFuture<'_, Result<Token, SignInError>> {
            Box::pin(async { Err(SignInError::Expired("invalid_grant".to_owned())) })
        }
    }
    let server = Server::script(vec![google_error(401, "UNAUTHENTICATED", "non")]).await;
    for (credentials, kind) in [
        (Credentials::None, "key_missing"),
        (Credentials::key(" k "), "bad_key"),
        (Credentials::tokens(Counting(0.into())), "signed_out"),
        (Credentials::tokens(Withdrawn), "signed_out"),
    ] {
        let error = error_of(&all(&vertex(&server.url(), credentials, limits()), ask("hi")).await);
        assert_eq!(
            (error.code, &error.detail.unwrap()["kind"]),
            (ModelErrorCode::Unauthorized, &json!(kind))
        );
    }
    assert_eq!(server.seen()[1].header("x-goog-api-key"), "k");
}

#[tokio::test]
async fn an_unknown_path_is_no_unknown_model() {
    for body in [json!({"detail": "Not Found"}).to_string(), "404 page not found".to_owned(), String::new()] {
        let server = Server::script(vec![Answer::of(404, "text/plain", body)]).await;
        let error = error_of(&all(&developer(&server.url(), limits()), ask("hi")).await);
        assert_eq!(error.detail.unwrap()["kind"], "wrong_location");
        assert!(error.hint.unwrap().contains("address"));
    }
}

#[tokio::test]
async fn a_connection_is_used_again() {
    let server = Server::script(vec![good()]).await;
    let model = developer(&server.url(), limits());
    for _ in 0..5 {
        assert_eq!(text_of(&all(&model, ask("hi")).await), "Hello world");
    }
    assert_eq!((server.seen().len(), server.connections()), (5, 1));
}

#[tokio::test]
async fn a_certificate_that_nobody_trusts_is_told_at_once() {
    let server = Server::script(vec![good()]).await;
    let tls = Tls::before(&server, "localhost").await;
    let deltas = all(&developer(&tls.url(), limits()), ask("hi")).await;
    let error = error_of(&deltas);
    // One delta: it is not asked again in vain.
    assert_eq!((error.code, deltas.len()), (ModelErrorCode::Unreachable, 1), "{error:?}");
    assert!(error.message.contains("the certificate of localhost:"), "{error:?}");
    assert!(error.hint.unwrap().contains("SSL_CERT_FILE"));
    assert!(server.seen().is_empty());
}
