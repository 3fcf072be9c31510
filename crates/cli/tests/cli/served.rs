//! A running `lectern serve`, asked over plain HTTP.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command};

use serde_json::Value;

use crate::lectern::Lectern;

/// A server that runs, and is killed when it is dropped: the hard way, as a crash would.
pub struct Serving {
    pub child: Child,
    pub address: String,
    pub key: String,
}

impl Serving {
    pub fn start(lectern: &Lectern, args: &[&str]) -> Self {
        let args = ["serve", "--port", "0", "--json"].into_iter().chain(args.iter().copied());
        let mut child = lectern.start(args);
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let said: Value = serde_json::from_str(&line).unwrap();
        let address = said["url"].as_str().unwrap().strip_prefix("http://").unwrap().to_owned();
        Self { child, address, key: said["key"].as_str().unwrap().to_owned() }
    }

    /// Sends a request, whose answer can be read as it comes.
    pub fn send(&self, method: &str, path: &str, key: &str, body: Option<&Value>) -> TcpStream {
        let body = body.map(Value::to_string).unwrap_or_default();
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {key}\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            self.address,
            body.len()
        );
        stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
        stream
    }

    /// The status and the body that a request gets.
    pub fn request(&self, method: &str, path: &str, key: &str, body: Option<&Value>) -> (u16, String) {
        let mut answer = String::new();
        self.send(method, path, key, body).read_to_string(&mut answer).unwrap();
        let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        (status, answer.split_once("\r\n\r\n").unwrap().1.to_owned())
    }

    /// The same with the server's own key; null for a body that is no JSON.
    pub fn json(&self, method: &str, path: &str, body: Option<&Value>) -> (u16, Value) {
        let (status, body) = self.request(method, path, &self.key, body);
        (status, serde_json::from_str(&body).unwrap_or(Value::Null))
    }

    /// Ctrl-C, and the code that it ends with.
    pub fn interrupt(mut self) -> Option<i32> {
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
