//! A fixture server behind an address, and what a test tells it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

/// A running server. Dropping it kills it.
pub struct Remote {
    child: Child,
    address: String,
    args: Vec<String>,
}

impl Remote {
    /// Starts it on a free port. `args` are those of `fixture-server`, e.g. `--mode legacy`.
    ///
    /// # Panics
    /// When it does not start; so do the other methods when it does not answer: the test could not go on.
    pub fn start(args: &[&str]) -> Self {
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        let (child, address) = spawn("127.0.0.1:0", &args);
        Self { child, address, args }
    }

    /// Where it speaks MCP.
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Makes it fail at requests of a method (all if empty), so many times.
    pub fn fault(&self, kind: &str, on: &str, times: u64) {
        self.fault_to(kind, on, times, Value::Null);
    }

    /// As [`Self::fault`], with the target of `redirect` or the number of `status`.
    pub fn fault_to(&self, kind: &str, on: &str, times: u64, to: impl Into<Value>) {
        self.tell("/fault", &json!({"fault": kind, "on": on, "times": times, "to": to.into()}));
    }

    /// Nothing goes wrong any more.
    pub fn behave(&self) {
        self.tell("/fault", &Value::Null);
    }

    /// Lets it forget its sessions, as a restart does.
    pub fn forget_sessions(&self) {
        self.tell("/forget", &Value::Null);
    }

    /// What it was asked: `verb`, `headers`, `message`.
    pub fn seen(&self) -> Vec<Value> {
        let body = self.ask("GET /seen HTTP/1.1\r\nconnection: close\r\n\r\n", &[]);
        serde_json::from_slice(&body).expect("what was seen")
    }

    /// Kills it.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Kills it and starts it again at the same address; it remembers nothing.
    pub fn restart(&mut self) {
        self.kill();
        (self.child, self.address) = spawn(&self.address, &self.args);
    }

    fn tell(&self, path: &str, order: &Value) {
        let body = order.to_string();
        let head = format!("POST {path} HTTP/1.1\r\ncontent-length: {}\r\n\r\n", body.len());
        self.ask(&head, body.as_bytes());
    }

    /// The body of the answer.
    fn ask(&self, head: &str, body: &[u8]) -> Vec<u8> {
        let mut stream = TcpStream::connect(&self.address).expect("the fixture listens");
        stream.write_all(&[head.as_bytes(), body].concat()).expect("the fixture reads");
        let mut reader = BufReader::new(stream);
        let mut length = 0;
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).expect("the fixture answers");
            match line.trim_end().split_once(": ") {
                Some(("content-length", value)) => length = value.parse().expect("a length"),
                Some(_) => {}
                None if line.starts_with("HTTP/") => {}
                None => break,
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).expect("the whole answer");
        body
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        self.kill();
    }
}

fn spawn(address: &str, args: &[String]) -> (Child, String) {
    let mut command = Command::new(crate::binary());
    command.args(["--http", address]).args(args).stdout(Stdio::piped()).stdin(Stdio::null());
    let mut child = command.spawn().expect("fixture-server");
    let mut line = String::new();
    let stdout = child.stdout.take().expect("a pipe");
    BufReader::new(stdout).read_line(&mut line).expect("the address");
    let address = line.trim().trim_start_matches("http://").trim_end_matches("/mcp").to_owned();
    assert!(!address.is_empty(), "fixture-server did not start");
    (child, address)
}
