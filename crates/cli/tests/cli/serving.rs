//! `lectern serve`: the real executable, the real starter, real HTTP.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command};

use serde_json::{Value, json};

use crate::lectern::Lectern;

/// A server that runs, and is stopped when it is dropped.
struct Serving {
    child: Child,
    address: String,
    key: String,
}

impl Serving {
    fn start(lectern: &Lectern, args: &[&str]) -> Self {
        let args = ["serve", "--port", "0", "--json"].into_iter().chain(args.iter().copied());
        let mut child = lectern.start(args);
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let said: Value = serde_json::from_str(&line).unwrap();
        let address = said["url"].as_str().unwrap().strip_prefix("http://").unwrap().to_owned();
        Self { child, address, key: said["key"].as_str().unwrap().to_owned() }
    }

    /// The status and the body that a request gets.
    fn request(&self, method: &str, path: &str, key: &str, body: Option<&Value>) -> (u16, String) {
        let body = body.map(Value::to_string).unwrap_or_default();
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {key}\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            self.address,
            body.len()
        );
        stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        (status, answer.split_once("\r\n\r\n").unwrap().1.to_owned())
    }

    fn ask(&self, body: &Value) -> (u16, String) {
        self.request("POST", "/v1/chat/completions", &self.key, Some(body))
    }

    #[cfg(unix)]
    fn interrupt(mut self) -> Option<i32> {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
        self.child.wait().unwrap().code()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
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
