//! Where the answers of one request go: a stream of events, or one JSON object.

use std::io::Write;
use std::net::TcpStream;
use std::sync::{Arc, Mutex};

use serde_json::Value;

use super::message::{head, respond};
use crate::Outlet;

/// A stream of events: each line that is written becomes one.
pub struct Sse {
    stream: TcpStream,
    line: Vec<u8>,
}

impl Sse {
    /// Sends the head of the answer.
    pub fn begin(stream: &TcpStream, headers: &[(&str, String)]) -> Option<Self> {
        let fixed = [("content-type", "text/event-stream"), ("transfer-encoding", "chunked")];
        let head =
            head(200, fixed.into_iter().chain(headers.iter().map(|(name, value)| (*name, value.as_str()))));
        let mut stream = stream.try_clone().ok()?;
        stream.write_all(&head).ok()?;
        Some(Self { stream, line: Vec::new() })
    }

    /// The same stream for somebody else.
    pub fn another(&self) -> Option<Self> {
        Some(Self { stream: self.stream.try_clone().ok()?, line: Vec::new() })
    }

    fn chunk(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
        chunk.extend_from_slice(bytes);
        chunk.extend_from_slice(b"\r\n");
        self.stream.write_all(&chunk)
    }

    /// Sends a comment; false when nobody listens any more.
    pub fn ping(&mut self) -> bool {
        self.chunk(b": still here\n\n").is_ok()
    }
}

impl Write for Sse {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(part);
            if part.ends_with(b"\n") {
                let line = std::mem::take(&mut self.line);
                self.chunk(&[b"event: message\ndata: ", &line[..], b"\n"].concat())?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.stream.flush()
    }
}

impl Outlet for Sse {
    fn is_heard(&mut self) -> bool {
        self.ping()
    }

    fn finish(&mut self) -> bool {
        self.stream.write_all(b"0\r\n\r\n").is_ok()
    }
}

/// Keeps what is written until the answer can be sent as a whole.
#[derive(Clone, Default)]
pub struct Collected(Arc<Mutex<Vec<u8>>>);

impl Collected {
    /// Sends the message that answers the request, as one JSON object.
    pub fn respond(&self, stream: &TcpStream, headers: &[(&str, &str)], id: &Value) -> bool {
        let all = self.0.lock().expect("no panic").clone();
        let answers = |line: &&[u8]| {
            // What is no JSON at all was meant as the answer.
            serde_json::from_slice::<Value>(line).map_or(true, |message| message["id"] == *id)
        };
        let lines: Vec<&[u8]> = all.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).collect();
        let body = lines.iter().copied().find(answers).unwrap_or_default();
        let headers: Vec<_> = [("content-type", "application/json")].iter().chain(headers).copied().collect();
        respond(stream, 200, &headers, body)
    }
}

impl Write for Collected {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no panic").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Outlet for Collected {
    fn is_heard(&mut self) -> bool {
        true
    }

    fn finish(&mut self) -> bool {
        true
    }
}
