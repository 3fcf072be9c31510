//! The ways to a remote model: TLS with HTTP/2, a proxy of the environment, the account of a machine in Google's cloud.

use lectern_core::TurnOutcome;
use lectern_fake_provider::tls::{Proxy, Tls};
use lectern_fake_provider::vertex::{Step, Vertex};
use serde_json::{Value, json};

use crate::lectern::{Lectern, Ran};
use crate::providers::{REPLY, endpoint, runtime};

/// Nobody's proxy but the test's, and no other list of what goes past it.
const NO_PROXY: [(&str, &str); 8] = [
    ("HTTP_PROXY", ""),
    ("http_proxy", ""),
    ("HTTPS_PROXY", ""),
    ("https_proxy", ""),
    ("ALL_PROXY", ""),
    ("all_proxy", ""),
    ("NO_PROXY", ""),
    ("no_proxy", ""),
];

fn run(lectern: &Lectern, more: &[(&str, &str)], args: &[&str]) -> Ran {
    lectern.run_within(&[&NO_PROXY[..], more].concat(), "", args)
}

fn endpoint_at(lectern: &Lectern, url: &str) {
    let settings =
        json!({"providers": [{"id": "e", "kind": "openai_compatible", "sign_in": "none", "base_url": url}]});
    lectern.write("settings.json", &settings.to_string());
}

#[test]
fn a_server_behind_tls_is_asked_with_http_2_when_it_is_trusted() {
    let runtime = runtime();
    let lectern = Lectern::new();
    let (server, tls) = runtime.block_on(async {
        let server = endpoint(None).await;
        let tls = Tls::before(&server, "localhost").await;
        (server, tls)
    });
    let certificate = tls.write_certificate(lectern.home());
    endpoint_at(&lectern, &tls.url());
    let ask = ["ask", "--model", "e/tiny", "hello"];
    // Whom the system does not trust is sent nothing.
    let refused = run(&lectern, &[], &ask);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.err.contains("certificate"), "{refused:?}");
    assert!(server.seen().is_empty());

    let trusting = [("SSL_CERT_FILE", certificate.to_str().unwrap())];
    let asked = run(&lectern, &trusting, &ask);
    assert_eq!(asked.code, Some(0), "{asked:?}");
    assert!(asked.out.contains(REPLY), "{asked:?}");
    assert_eq!(tls.protocols().last().map(String::as_str), Some("h2"));
}

#[test]
fn a_proxy_of_the_environment_opens_a_tunnel() {
    let runtime = runtime();
    let lectern = Lectern::new();
    let (server, tls, proxy) = runtime.block_on(async {
        let server = endpoint(None).await;
        let tls = Tls::before(&server, "models.test").await;
        (server, tls, Proxy::start().await)
    });
    let certificate = tls.write_certificate(lectern.home());
    endpoint_at(&lectern, &tls.url());
    let proxy_url = proxy.url();
    let through = [("SSL_CERT_FILE", certificate.to_str().unwrap()), ("HTTPS_PROXY", proxy_url.as_str())];
    let asked = run(&lectern, &through, &["ask", "--model", "e/tiny", "hello"]);
    assert_eq!(asked.code, Some(0), "{asked:?}");
    assert!(asked.out.contains(REPLY), "{asked:?}");
    let authority = tls.url().replace("https://", "");
    assert_eq!(proxy.asked(), [format!("CONNECT {authority}")]);
    // What is said inside of the tunnel is the server's and ours alone.
    assert_eq!(tls.protocols(), ["h2"]);
    assert_eq!(server.seen().len(), 1);
}

#[test]
fn a_proxy_passes_plain_requests_on_and_never_those_to_this_computer() {
    let runtime = runtime();
    let lectern = Lectern::new();
    let (server, proxy) = runtime.block_on(async { (endpoint(None).await, Proxy::start().await) });
    let far = server.url().replace("127.0.0.1", "models.test");
    let through = [("HTTP_PROXY", proxy.url())];
    let through = through.each_ref().map(|(name, value)| (*name, value.as_str()));
    let ask = ["ask", "--model", "e/tiny", "hello"];
    endpoint_at(&lectern, &far);
    let asked = run(&lectern, &through, &ask);
    assert_eq!(asked.code, Some(0), "{asked:?}");
    assert_eq!(proxy.asked(), [format!("POST {}", far.replace("http://", ""))]);

    endpoint_at(&lectern, &server.url());
    let asked = run(&lectern, &through, &ask);
    assert_eq!(asked.code, Some(0), "{asked:?}");
    assert_eq!((proxy.asked().len(), server.seen().len()), (1, 2));
}

#[test]
fn a_proxy_that_is_not_there_is_said() {
    let lectern = Lectern::new();
    endpoint_at(&lectern, "https://models.test/v1");
    let nobody = [("HTTPS_PROXY", "http://lena:s3cr@t@127.0.0.1:9")];
    let asked = run(&lectern, &nobody, &["ask", "--model", "e/tiny", "hello"]);
    assert_eq!(asked.code, Some(1), "{asked:?}");
    assert!(asked.err.contains("models.test (through the proxy 127.0.0.1:9)"), "{asked:?}");
    assert!(asked.err.contains("HTTPS_PROXY"), "{asked:?}");
    // Who we are to the proxy is nobody's business.
    for secret in ["lena", "s3cr", "t@127"] {
        assert!(!asked.err.contains(secret), "{asked:?}");
    }
}

#[test]
fn a_machine_in_googles_cloud_signs_in_as_itself() {
    let runtime = runtime();
    let lectern = Lectern::new();
    let steps = vec![
        Step::default().calls("notes__search_notes", &json!({"query": "heron"})),
        Step::says(&["Nineteen."]).signed_end(),
    ];
    let fake = runtime.block_on(Vertex::start(steps));
    let url = fake.server.url();
    let host = url.replace("http://", "");
    let machine = [("GCE_METADATA_HOST", host.as_str())];
    let login = ["models", "login", "vertex", "--metadata", "--project", "p-1", "--base-url", &url, "--json"];
    // Elsewhere there is no such account, and nothing is written down.
    let elsewhere = run(&lectern, &[("GCE_METADATA_HOST", "127.0.0.1:9")], &login);
    assert_eq!(elsewhere.code, Some(1), "{elsewhere:?}");
    assert!(elsewhere.err.contains("machines in Google's cloud"), "{elsewhere:?}");

    let signed_in = run(&lectern, &machine, &login);
    assert_eq!(signed_in.code, Some(0), "{signed_in:?}");
    let signed_in: Value = serde_json::from_str(&signed_in.out).unwrap();
    assert_eq!(signed_in["provider"]["login"]["place"], "machine");

    let asked = run(&lectern, &machine, &["ask", "--yes", "--model", "vertex/gemini-3.5-flash", "Herons?"]);
    assert_eq!(asked.code, Some(0), "{asked:?}");
    assert!(asked.out.contains("Nineteen."), "{asked:?}");
    assert_eq!(fake.refusals(), Vec::<String>::new());
    let seen = fake.server.seen();
    let tokens: Vec<_> = seen.iter().filter(|seen| seen.path.starts_with("/computeMetadata/")).collect();
    // Once to see that there is an account, once for both steps.
    assert_eq!((tokens.len(), seen.len()), (2, 4));
    assert!(tokens.iter().all(|seen| seen.header("metadata-flavor") == "Google"));
    let text = [asked.out, asked.err].concat();
    assert!(!text.contains("ya29."), "{text}");

    // Moved to another machine, the question is kept and the reason said.
    let args = ["ask", "--json", "--model", "vertex/gemini-3.5-flash", "Herons?"];
    let moved = run(&lectern, &[("GCE_METADATA_HOST", "127.0.0.1:9")], &args);
    let last: lectern_core::Event = serde_json::from_str(moved.out.lines().last().unwrap()).unwrap();
    let lectern_core::EventKind::TurnFinished { outcome: TurnOutcome::Failed { error }, .. } = last.kind
    else {
        panic!("{moved:?}");
    };
    assert!(error.hint.is_some(), "{error:?}");
}
