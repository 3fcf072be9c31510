//! HTTP/1.1 on a bare socket, as much of it as a well-behaved client uses.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use serde_json::Value;

/// One request, whole.
pub struct Request {
    pub verb: String,
    pub path: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Request {
    /// The next request; none when the connection has ended.
    pub fn read(reader: &mut BufReader<TcpStream>) -> Option<Self> {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
        let mut words = line.split_whitespace().map(str::to_owned);
        let (verb, path) = (words.next()?, words.next()?);
        let mut headers = Vec::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let path = path.split('?').next().unwrap_or_default().to_owned();
        let mut request = Self { verb, path, headers, body: Vec::new() };
        let length = request.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        request.body = vec![0; length];
        reader.read_exact(&mut request.body).ok()?;
        Some(request)
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }
}

/// Sends a whole answer; false when the connection is of no use any more.
pub fn respond(mut stream: &TcpStream, status: u16, headers: &[(&str, &str)], body: &[u8]) -> bool {
    let length = body.len().to_string();
    let mut answer = head(status, headers.iter().copied().chain([("content-length", length.as_str())]));
    answer.extend_from_slice(body);
    stream.write_all(&answer).is_ok()
}

/// The first lines of an answer.
pub fn head<'a>(status: u16, headers: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {status} Some Reason\r\n");
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    (head + "\r\n").into_bytes()
}
