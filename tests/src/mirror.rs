//! A mirror of Hugging Face on a real socket: one repository, whose files come as slowly as a test wants.
//!
//! Invariant: nothing here talks to the real one; the API is played from its documented shape.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// Bytes that are sent at once.
const PIECE: usize = 16 * 1024;

/// A running mirror; it ends with the test's process.
pub struct Mirror {
    /// Its address, e.g. `http://127.0.0.1:4711`.
    pub url: String,
    shared: Arc<Shared>,
}

struct Shared {
    repository: String,
    files: Vec<(String, Vec<u8>)>,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// No byte from this one on is sent.
    gate: usize,
    /// The `Range` header of each request for a file; empty where there was none.
    ranges: Vec<String>,
}

impl Mirror {
    /// Offers these files; nothing is held back.
    pub fn start(repository: &str, files: Vec<(String, Vec<u8>)>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("its number"));
        let state = Mutex::new(State { gate: usize::MAX, ranges: Vec::new() });
        let repository = repository.to_owned();
        let shared = Arc::new(Shared { repository, files, state, changed: Condvar::new() });
        let served = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&served);
                std::thread::spawn(move || shared.serve(&stream));
            }
        });
        Self { url, shared }
    }

    /// Sends no byte of a file from this one on, until the gate is moved.
    pub fn hold_from(&self, byte: usize) {
        self.shared.state().gate = byte;
        self.shared.changed.notify_all();
    }

    /// Holds nothing back any more.
    pub fn let_go(&self) {
        self.hold_from(usize::MAX);
    }

    /// The `Range` header of each request for a file, in order; empty where there was none.
    pub fn ranges(&self) -> Vec<String> {
        self.shared.state().ranges.clone()
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One request for each connection.
    fn serve(&self, stream: &TcpStream) {
        let mut lines = BufReader::new(stream).lines();
        let Some(Ok(first)) = lines.next() else { return };
        let headers: Vec<String> = lines.map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
        let range = headers.iter().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("range").then(|| value.trim().to_owned())
        });
        let mut words = first.split(' ');
        let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let path = path.split('?').next().unwrap_or_default();
        // Whoever went away misses nothing.
        let _ = self.answer(stream, method, path, range.as_deref());
    }

    fn answer(
        &self,
        mut stream: &TcpStream,
        method: &str,
        path: &str,
        range: Option<&str>,
    ) -> std::io::Result<()> {
        if path == format!("/api/models/{}/tree/main", self.repository) {
            let body = self.listing().to_string();
            let length = body.len();
            return write!(
                stream,
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
            );
        }
        let prefix = format!("/{}/resolve/main/", self.repository);
        let file =
            path.strip_prefix(&prefix).and_then(|name| self.files.iter().find(|(known, _)| known == name));
        let Some((_, bytes)) = file else {
            return write!(
                stream,
                "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
            );
        };
        let from = range.and_then(|range| range.strip_prefix("bytes=")?.split('-').next()?.parse().ok());
        let from = from.unwrap_or(0_usize).min(bytes.len());
        let status = if range.is_some() { "206 Partial Content" } else { "200 OK" };
        let (etag, left, last) = (hash(bytes), bytes.len() - from, bytes.len().saturating_sub(1));
        write!(
            stream,
            "HTTP/1.1 {status}\r\netag: \"{etag}\"\r\naccept-ranges: bytes\r\ncontent-length: {left}\r\n\
             content-range: bytes {from}-{last}/{}\r\nconnection: close\r\n\r\n",
            bytes.len()
        )?;
        if method == "HEAD" {
            return Ok(());
        }
        self.state().ranges.push(range.unwrap_or_default().to_owned());
        self.send(stream, bytes, from)
    }

    /// Sends as far as the gate lets it.
    fn send(&self, mut stream: &TcpStream, bytes: &[u8], from: usize) -> std::io::Result<()> {
        let mut at = from;
        while at < bytes.len() {
            let end = {
                let closed = |state: &mut State| state.gate <= at;
                let state = self.changed.wait_while(self.state(), closed);
                state.unwrap_or_else(PoisonError::into_inner).gate.min(at + PIECE).min(bytes.len())
            };
            stream.write_all(&bytes[at..end])?;
            at = end;
        }
        stream.flush()
    }

    fn listing(&self) -> Value {
        let files = self.files.iter().map(|(path, bytes)| {
            let size = bytes.len();
            json!({ "type": "file", "path": path, "size": size, "lfs": { "oid": hash(bytes), "size": size } })
        });
        let readme = json!({ "type": "file", "path": "README.md", "size": 12 });
        files.chain([readme]).collect()
    }
}

fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
