//! The peer: llama-cpp-python in a process of its own, driven by `scripts/peer.py`.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

pub struct Peer {
    process: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Peer {
    pub fn start(python: &Path, script: &Path) -> std::io::Result<Self> {
        let mut process = Command::new(python)
            .arg(script)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let missing = || std::io::Error::other("no standard streams");
        let requests = process.stdin.take().ok_or_else(missing)?;
        let answers = BufReader::new(process.stdout.take().ok_or_else(missing)?);
        Ok(Self { process, requests, answers })
    }

    pub fn ask(&mut self, request: &Value) -> Result<Value, String> {
        writeln!(self.requests, "{request}").map_err(|error| error.to_string())?;
        let mut line = String::new();
        self.answers.read_line(&mut line).map_err(|error| error.to_string())?;
        let answer: Value = serde_json::from_str(&line).map_err(|_| "the peer died".to_owned())?;
        match answer.get("error").and_then(Value::as_str) {
            Some(error) => Err(error.to_owned()),
            None => Ok(answer),
        }
    }

    /// A chat completion; the messages and tools are in OpenAI's shape.
    pub fn chat(&mut self, mut request: Value) -> Result<Value, String> {
        request["do"] = json!("chat");
        self.ask(&request)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A number of an answer.
pub fn number(answer: &Value, key: &str) -> f64 {
    answer.get(key).and_then(Value::as_f64).unwrap_or(f64::NAN)
}
