//! A plain client of the server's process: lines of JSON, nothing taken for granted.
//! Invariant: every line that the server writes must be a JSON-RPC message, or the test fails.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// Longer than any call may take on a busy machine; it ends a hanging test, it measures nothing.
const PATIENCE: Duration = Duration::from_secs(120);

/// The eras of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// `initialize` with this revision.
    Initialize(&'static str),
    /// `server/discover` and `_meta` with every request.
    Discover,
}

pub struct Client {
    child: Child,
    input: Option<ChildStdin>,
    output: Lines<BufReader<ChildStdout>>,
    era: Era,
    next: u64,
    /// Notifications that came while something else was waited for.
    pub notified: Vec<Value>,
    /// Replies to other requests that came meanwhile.
    replies: Vec<Value>,
}

impl Client {
    /// Starts the server over a folder, without a word of the protocol.
    pub fn start(folder: &Path, era: Era) -> Self {
        let program = Path::new(env!("CARGO_BIN_EXE_vault-serve"));
        let mut command = Command::new(program);
        command
            .arg(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap()).lines();
        let input = child.stdin.take();
        Self { child, input, output, era, next: 0, notified: Vec::new(), replies: Vec::new() }
    }

    /// Starts the server and opens the session.
    pub async fn connect(folder: &Path, era: Era) -> Self {
        let mut client = Self::start(folder, era);
        match era {
            Era::Initialize(version) => {
                let about = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
                let reply = client.request("initialize", about).await;
                assert_eq!(reply["result"]["protocolVersion"], version, "{reply}");
                client.notify("notifications/initialized", json!({})).await;
            }
            Era::Discover => {
                let reply = client.request("server/discover", json!({})).await;
                let versions = reply["result"]["supportedVersions"].as_array().unwrap();
                assert!(versions.contains(&json!("2026-07-28")), "{reply}");
            }
        }
        client
    }

    pub async fn line(&mut self, line: &str) {
        let input = self.input.as_mut().unwrap();
        input.write_all(format!("{line}\n").as_bytes()).await.unwrap();
        input.flush().await.unwrap();
    }

    pub async fn notify(&mut self, method: &str, params: Value) {
        self.line(&json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string()).await;
    }

    /// Sends a request and returns its id without waiting.
    pub async fn send(&mut self, method: &str, mut params: Value) -> u64 {
        self.next += 1;
        if self.era == Era::Discover {
            let meta = params.as_object_mut().unwrap().entry("_meta").or_insert_with(|| json!({}));
            meta["io.modelcontextprotocol/protocolVersion"] = "2026-07-28".into();
            meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
            meta["io.modelcontextprotocol/clientInfo"] = json!({"name": "t", "version": "1"});
        }
        self.line(
            &json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params}).to_string(),
        )
        .await;
        self.next
    }

    pub async fn reply_to(&mut self, id: u64) -> Value {
        loop {
            if let Some(at) = self.replies.iter().position(|reply| reply["id"] == id) {
                return self.replies.remove(at);
            }
            self.receive().await;
        }
    }

    /// Waits for the next notification of a method.
    pub async fn notification(&mut self, method: &str) -> Value {
        loop {
            if let Some(at) = self.notified.iter().position(|message| message["method"] == method) {
                return self.notified.remove(at);
            }
            self.receive().await;
        }
    }

    async fn receive(&mut self) {
        let line =
            tokio::time::timeout(PATIENCE, self.output.next_line()).await.expect("the server is silent");
        let line = line.unwrap().expect("the server ended");
        let message: Value =
            serde_json::from_str(&line).unwrap_or_else(|_| panic!("no JSON on stdout: {line}"));
        assert_eq!(message["jsonrpc"], "2.0", "{line}");
        if message.get("method").is_some() { self.notified.push(message) } else { self.replies.push(message) }
    }

    pub async fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params).await;
        self.reply_to(id).await
    }

    pub async fn call(&mut self, tool: &str, arguments: Value) -> ToolReply {
        let reply = self.request("tools/call", json!({"name": tool, "arguments": arguments})).await;
        ToolReply(reply)
    }

    /// Closes the input and waits for the end of the process.
    pub async fn close(mut self) -> Option<i32> {
        drop(self.input.take());
        let ended = tokio::time::timeout(PATIENCE, self.child.wait()).await.expect("the server does not end");
        ended.unwrap().code()
    }

    /// Waits for the end of the process without closing its input.
    pub async fn ended(&mut self) -> Option<i32> {
        tokio::time::timeout(PATIENCE, self.child.wait())
            .await
            .expect("the server does not end")
            .unwrap()
            .code()
    }
}

#[derive(Debug)]
pub struct ToolReply(pub Value);

impl ToolReply {
    pub fn text(&self) -> &str {
        self.0["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {}", self.0))
    }

    pub fn structured(&self) -> &Value {
        &self.0["result"]["structuredContent"]
    }

    pub fn is_error(&self) -> bool {
        self.0["result"]["isError"] == true
    }
}
