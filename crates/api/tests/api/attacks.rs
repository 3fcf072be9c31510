//! What nobody should send. Each gets the documented error, and the next request works.

use std::time::Duration;

use lectern_api::{ApiOptions, Key, Limits, Scope};
use lectern_core::testing::{ScriptedModel, says};
use reqwest::header::{HOST, ORIGIN};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::house::{House, Plan, error, question, with};

/// A server whose model always answers.
fn plan() -> Plan {
    Plan { model: ScriptedModel::new([says("still here")]).repeating(), ..Plan::of([]) }
}

async fn works(house: &House) {
    let answer = house.completion(&question("hi")).await;
    assert_eq!(answer["choices"][0]["message"]["content"], "still here");
}

/// What a server answers to these bytes: the status, and the body as far as it is JSON.
async fn raw(house: &House, bytes: &[u8]) -> (u16, Value) {
    let mut stream = TcpStream::connect(house.server.address()).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    let mut answer = Vec::new();
    let _ = tokio::time::timeout(Duration::from_secs(60), stream.read_to_end(&mut answer)).await.unwrap();
    let text = String::from_utf8_lossy(&answer);
    let status = text.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default();
    let body = text.split_once("\r\n\r\n").map(|(_, body)| body).unwrap_or_default();
    (status, serde_json::from_str(body).unwrap_or_default())
}

#[tokio::test]
async fn without_a_good_key_nothing_is_served() {
    let limited = Key::fresh("limited").with_scopes([Scope::Approvals]);
    let house = Plan { others: vec![limited.clone()], ..plan() }.build().await;
    let url = format!("{}/v1/models", house.server.url());
    let without = house.client.get(&url).send().await.unwrap();
    assert_eq!(without.headers()["www-authenticate"], "Bearer");
    let (status, said) = error(without).await;
    assert_eq!(
        (status, &said["code"], &said["type"]),
        (401, &json!("missing_api_key"), &json!("authentication_error"))
    );
    for wrong in ["sk-lectern-wrong", "", &house.key.secret()[..40], &format!("{}x", house.key.secret())] {
        let (status, said) = error(house.client.get(&url).bearer_auth(wrong).send().await.unwrap()).await;
        assert_eq!(status, 401, "{said}");
    }
    let asked = house.client.post(format!("{}/v1/chat/completions", house.server.url()));
    let (status, said) =
        error(asked.bearer_auth(limited.secret()).json(&question("hi")).send().await.unwrap()).await;
    assert_eq!((status, &said["code"]), (403, &json!("insufficient_scope")));
    works(&house).await;
    // A revoked key is refused from then on.
    house.keys.replace([limited]);
    let (status, _) = error(house.get("/v1/models").send().await.unwrap()).await;
    assert_eq!(status, 401);
}

#[tokio::test]
async fn other_hosts_and_origins_are_refused() {
    let listed = "http://localhost:3000";
    let options = ApiOptions { origins: vec![listed.parse().unwrap()], ..ApiOptions::default() };
    let house = Plan { options, ..plan() }.build().await;
    for host in ["evil.example", "127.0.0.1.nip.io", "192.168.1.1"] {
        let (status, said) = error(house.get("/v1/models").header(HOST, host).send().await.unwrap()).await;
        assert_eq!((status, &said["code"]), (403, &json!("host_not_allowed")), "{host}");
    }
    for origin in ["https://evil.example", "null", "http://localhost:3001", "not an origin"] {
        let (status, said) =
            error(house.get("/v1/models").header(ORIGIN, origin).send().await.unwrap()).await;
        assert_eq!((status, &said["code"]), (403, &json!("origin_not_allowed")), "{origin}");
    }
    let page = house.get("/v1/models").header(ORIGIN, listed).send().await.unwrap();
    assert_eq!(
        (page.status().as_u16(), &page.headers()["access-control-allow-origin"]),
        (200, &listed.parse().unwrap())
    );
    let url = format!("{}/v1/chat/completions", house.server.url());
    let preflight = house.client.request(reqwest::Method::OPTIONS, url);
    let preflight = preflight
        .header(ORIGIN, listed)
        .header("access-control-request-method", "POST")
        .header("access-control-request-headers", "authorization,content-type");
    let allowed = preflight.send().await.unwrap();
    assert_eq!(allowed.status(), 200);
    assert!(allowed.headers()["access-control-allow-headers"].to_str().unwrap().contains("authorization"));
    works(&house).await;
}

#[tokio::test]
async fn bodies_that_are_no_requests_are_refused() {
    let house = plan().build().await;
    let deep = format!("{{\"messages\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (deep.into_bytes(), "invalid_json"),
        (b"{\"messages\":[{\"role\":\"user\",\"content\":\"\xff\xfe\"}]}".to_vec(), "invalid_json"),
        (b"".to_vec(), "invalid_json"),
        (b"{".to_vec(), "invalid_json"),
        (b"null".to_vec(), "invalid_type"),
        (b"{\"messages\":[{\"role\":\"user\",\"content\":\"\\ud800\"}]}".to_vec(), "invalid_json"),
    ];
    for (body, code) in cases {
        let asked = house.post("/v1/chat/completions").header("content-type", "application/json");
        let (status, said) = error(asked.body(body).send().await.unwrap()).await;
        assert_eq!((status, &said["code"]), (400, &json!(code)), "{said}");
    }
    let asked = house.post("/v1/chat/completions").header("content-type", "text/plain");
    let (status, said) = error(asked.body(question("hi").to_string()).send().await.unwrap()).await;
    assert_eq!((status, &said["code"]), (415, &json!("unsupported_media_type")));
    let messages: Vec<Value> = (0..10_000).map(|_| json!({"role": "user", "content": "x"})).collect();
    let (status, said) = house.refusal(&with(question("hi"), json!({"messages": messages}))).await;
    assert_eq!(
        (status, &said["code"], &said["param"]),
        (400, &json!("array_above_max_length"), &json!("messages"))
    );
    works(&house).await;
}

#[tokio::test]
async fn a_body_of_a_hundred_megabytes_is_refused_by_its_size() {
    let house = plan().build().await;
    let asked = house.post("/v1/chat/completions").header("content-type", "application/json");
    let (status, said) = error(asked.body(vec![b' '; 100 << 20]).send().await.unwrap()).await;
    assert_eq!((status, &said["code"]), (413, &json!("request_too_large")));
    works(&house).await;
}

#[tokio::test]
async fn addresses_and_methods_that_are_not_there_are_errors_too() {
    let house = plan().build().await;
    for path in ["/v1/nothing", "/../etc/passwd", "/v1/models/%00%ff", "/v1/models/..%2f..%2fsettings.json"] {
        let (status, _) = error(house.get(path).send().await.unwrap()).await;
        assert!(matches!(status, 400 | 404), "{path} {status}");
    }
    let response = house.get("/v1/chat/completions").send().await.unwrap();
    // RFC 9110, section 15.5.6: a 405 says what is allowed.
    assert_eq!(response.headers()["allow"], "POST");
    let (status, said) = error(response).await;
    assert_eq!((status, &said["code"]), (405, &json!("method_not_allowed")));
    works(&house).await;
}

#[tokio::test]
async fn floods_of_headers_are_refused() {
    let house = plan().build().await;
    let head =
        format!("GET /v1/models HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n", house.server.address());
    let many: String = (0..100).map(|number| format!("X-{number}: y\r\n")).collect();
    let long = format!("X-Long: {}\r\n", "y".repeat(40 << 10));
    for flood in [many, long] {
        let (status, body) = raw(&house, format!("{head}{flood}\r\n").as_bytes()).await;
        assert_eq!((status, &body["error"]["code"]), (431, &json!("headers_too_large")));
    }
    // Beyond that the connection itself is given up.
    let endless: String = (0..2_000).map(|number| format!("X-{number}: y\r\n")).collect();
    let (status, _) = raw(&house, format!("{head}{endless}\r\n").as_bytes()).await;
    assert!(matches!(status, 0 | 431), "{status}");
    works(&house).await;
}

#[tokio::test]
async fn who_sends_slowly_is_cut_and_nobody_waits_for_it() {
    let brief = Duration::from_millis(300);
    let limits = Limits { head_time: brief, body_time: brief, ..Limits::default() };
    let house = Plan { options: ApiOptions { limits, ..ApiOptions::default() }, ..plan() }.build().await;
    let mut idle = Vec::new();
    for _ in 0..50 {
        let mut stream = TcpStream::connect(house.server.address()).await.unwrap();
        stream.write_all(b"GET /v1/models HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ").await.unwrap();
        idle.push(stream);
    }
    works(&house).await;
    for mut stream in idle {
        // The end of the stream, or an error of the connection: in any case not for ever.
        let mut rest = Vec::new();
        let _ = tokio::time::timeout(Duration::from_secs(60), stream.read_to_end(&mut rest)).await.unwrap();
    }
    let (address, secret) = (house.server.address(), house.key.secret());
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {secret}\r\n\
         Content-Type: application/json\r\nContent-Length: 1000\r\nConnection: close\r\n\r\n{{\"messages\":"
    );
    let (status, body) = raw(&house, head.as_bytes()).await;
    assert_eq!((status, &body["error"]["code"]), (408, &json!("request_timeout")));
    works(&house).await;
}

#[tokio::test]
async fn too_much_at_once_is_told_to_wait() {
    let limits = Limits { burst: 3.0, per_second: 0.000_1, ..Limits::default() };
    let other = Key::fresh("other");
    let options = ApiOptions { limits, ..ApiOptions::default() };
    let house = Plan { options, others: vec![other.clone()], ..plan() }.build().await;
    for _ in 0..3 {
        assert_eq!(house.get("/v1/models").send().await.unwrap().status(), 200);
    }
    let refused = house.get("/v1/models").send().await.unwrap();
    assert_eq!(refused.headers()["retry-after"], "1");
    let (status, said) = error(refused).await;
    assert_eq!(
        (status, &said["code"], &said["type"]),
        (429, &json!("rate_limit_exceeded"), &json!("rate_limit_error"))
    );
    // Another key is not held back.
    let url = format!("{}/v1/models", house.server.url());
    assert_eq!(house.client.get(url).bearer_auth(other.secret()).send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn a_stream_too_many_is_refused_until_one_ends() {
    use lectern_core::testing::Beat;
    let limits = Limits { concurrent: 1, ..Limits::default() };
    let plan = Plan {
        options: ApiOptions { limits, ..ApiOptions::default() },
        ..Plan::of([vec![
            Beat::Delta(lectern_core::Delta::Text("a".to_owned())),
            Beat::Wait(Duration::from_secs(600)),
        ]])
    };
    let house = plan.build().await;
    let open = house.ask(&with(question("hi"), json!({"stream": true}))).await;
    assert_eq!(open.status(), 200);
    let (status, said) = house.refusal(&question("hi")).await;
    assert_eq!((status, &said["code"]), (429, &json!("too_many_concurrent")));
    drop(open);
    loop {
        if house.get("/v1/models").send().await.unwrap().status() == 200 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
