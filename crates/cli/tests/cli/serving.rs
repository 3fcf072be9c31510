//! `lectern serve`: the real executable, the real starter, real HTTP.

#[cfg(unix)]
use std::io::{BufRead, BufReader};

#[cfg(unix)]
use serde_json::{Value, json};

use crate::lectern::Lectern;
#[cfg(unix)]
use crate::served::Serving;

#[cfg(unix)]
impl Serving {
    fn ask(&self, body: &Value) -> (u16, String) {
        self.request("POST", "/v1/chat/completions", &self.key, Some(body))
    }
}

#[cfg(unix)]
#[test]
fn the_starter_serves_when_nothing_is_configured() {
    let lectern = Lectern::new();
    let serving = Serving::start(&lectern, &[]);
    let (status, body) = serving.request("GET", "/v1/models", &serving.key, None);
    let models: Value = serde_json::from_str(&body).unwrap();
    assert_eq!((status, &models["data"][0]["id"]), (200, &json!("starter")));
    let (status, _) = serving.request("GET", "/v1/models", "sk-wrong", None);
    assert_eq!(status, 401);

    let question = json!({"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 20});
    let (status, body) = serving.ask(&question);
    let whole: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(status, 200, "{body}");
    assert_eq!(whole["model"], "starter");
    assert!(whole["usage"]["completion_tokens"].as_u64().unwrap() > 0);

    let mut streamed = question.clone();
    streamed["stream"] = json!(true);
    let (status, body) = serving.ask(&streamed);
    assert_eq!(status, 200);
    assert!(body.contains("chat.completion.chunk") && body.contains("data: [DONE]"), "{body}");
    assert_eq!(serving.interrupt(), Some(0));
}

/// Runs `serve` without `--json` and gives its first line.
#[cfg(unix)]
#[test]
fn people_are_told_the_address_the_key_and_how_to_try_it() {
    let lectern = Lectern::new();
    let mut child = lectern.start(["serve", "--port", "0"]);
    let mut said = String::new();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    while !said.contains("\"messages\"") {
        assert_ne!(lines.read_line(&mut said).unwrap(), 0, "{said}");
    }
    let address = said.lines().find_map(|line| line.strip_prefix("address  http://")).unwrap();
    let key = said.lines().find_map(|line| line.strip_prefix("key      ")).unwrap();
    let serving = Serving { child, address: address.trim_end_matches("/v1").to_owned(), key: key.to_owned() };
    assert_eq!(serving.request("GET", "/v1/models", key, None).0, 200);
    assert!(
        said.contains(&format!("curl http://{address}/chat/completions -H 'Authorization: Bearer {key}'")),
        "{said}"
    );
    let (status, page) = serving.request("GET", "/docs", "", None);
    assert_eq!(status, 200);
    assert!(page.contains("/v1/chat/completions"));
    assert_eq!(serving.interrupt(), Some(0));
}

/// The starter, asked for a note of a vault by a client that names the server.
#[cfg(unix)]
#[test]
fn a_vault_answers_where_a_request_asks_for_it() {
    let lectern = Lectern::new();
    lectern.write("notes/Heat pump.md", "# Heat pump\n\nError E7 means that the filter is blocked.\n");
    let notes = lectern.home().join("notes");
    let serving = Serving::start(&lectern, &["--vault", notes.to_str().unwrap(), "--model", "starter"]);
    let question = json!({
        "model": "starter",
        "messages": [{"role": "user", "content": "What does error E7 on the heat pump mean?"}],
        "tools": [{"type": "mcp", "server_label": "notes"}],
        "tool_choice": "required",
    });
    let (status, body) = serving.ask(&question);
    let whole: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(status, 200, "{body}");
    assert_eq!(whole["choices"][0]["finish_reason"], "stop", "{body}");
    assert!(
        whole["choices"][0]["message"]["content"].as_str().unwrap().contains("filter is blocked"),
        "{body}"
    );
    let elsewhere = json!({"type": "mcp", "server_label": "elsewhere"});
    let mut other = question;
    other["tools"] = json!([elsewhere]);
    let (status, body) = serving.ask(&other);
    assert_eq!(status, 400, "{body}");
    assert_eq!(serving.interrupt(), Some(0));
}

#[test]
fn what_can_not_be_served_is_said_at_once() {
    let lectern = Lectern::new();
    let busy = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = busy.local_addr().unwrap().port().to_string();
    let ran = lectern.run(["serve", "--port", &port]);
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    assert!(ran.err.contains("--port"), "{}", ran.err);
    let ran = lectern.run(["serve", "--port", "0", "--origin", "nonsense"]);
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    let ran = lectern.run(["serve", "--port", "0", "--model", "nobody"]);
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    for wrong in [
        ["--port", "70000"],
        ["--port", "x"],
        ["--bind", "localhost"],
        ["--bind", "256.1.1.1"],
        ["--vault", "/nowhere/at/all"],
        ["--model", "/nowhere/model.gguf"],
        ["--mcp-config", "/nowhere/mcp.json"],
        ["--allow", "everything:yes"],
        ["--max-steps", "0"],
        ["--origin", "null"],
        ["--host", "http://desk.lan"],
        ["--base-url", "http://127.0.0.1:1"],
    ] {
        let ran = lectern.run(["serve", "--json"].into_iter().chain(wrong));
        assert_ne!(ran.code, Some(0), "{wrong:?}");
        assert_eq!(ran.out, "", "{wrong:?}: nothing is served");
        assert!(ran.err.starts_with("error: "), "{wrong:?}: {}", ran.err);
    }
}

#[test]
fn keys_are_not_made_where_they_can_not_be_kept() {
    let lectern = Lectern::new();
    let ran = lectern.run_within(&[("LECTERN_KEYRING", "off")], "", &["serve", "keys", "add", "editor"]);
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    assert_eq!(ran.out, "");
    let ran = lectern.run(["serve", "keys", "revoke", "editor"]);
    assert_eq!(ran.code, Some(2), "{}", ran.err);
}
