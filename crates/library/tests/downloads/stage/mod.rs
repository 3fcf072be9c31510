//! A server on a real socket that behaves as it is told, request by request.
//!
//! The hub's API is played from its documented shape: nothing here talks to the real one.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lectern_library::{DownloadOptions, Downloads, Reserve, Retry, Token, WebOptions};
use sha2::{Digest, Sha256};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// How one request is answered.
#[derive(Clone, Debug)]
pub enum Act {
    /// As HTTP wants it.
    Serve,
    /// The whole file, whatever was asked for.
    NoRange,
    /// 206 from the first byte, whatever was asked for.
    WrongRange,
    /// Ends the connection after so many bytes.
    CutAfter(usize),
    /// Says nothing more after so many bytes.
    HangAfter(usize),
    /// So many bytes, then waits for a word of [`Stage::go_on`], then the rest.
    HoldAfter(usize),
    /// Without a length, in chunks.
    Chunked,
    /// In chunks whose end never comes.
    ChunkedCut(usize),
    /// Says that it is compressed.
    Gzip,
    /// Does as if nothing had changed.
    IgnoreIfRange,
    /// A status with headers and a body.
    Status(u16, Vec<(&'static str, String)>, String),
}

/// A file of the server.
#[derive(Clone)]
pub struct Held {
    pub bytes: Arc<Vec<u8>>,
    pub etag: Option<String>,
    pub acts: VecDeque<Act>,
}

/// A request as it came.
#[derive(Clone, Debug)]
pub struct Asked {
    pub path: String,
    pub headers: BTreeMap<String, String>,
}

#[derive(Default)]
struct Shared {
    files: BTreeMap<String, Held>,
    asked: Vec<Asked>,
}

/// The server.
#[derive(Clone)]
pub struct Stage {
    pub address: String,
    shared: Arc<Mutex<Shared>>,
    going_on: Arc<tokio::sync::Notify>,
}

impl Stage {
    pub async fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let stage = Self { address, shared: Arc::default(), going_on: Arc::default() };
        let serving = stage.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serving.clone().serve(stream));
            }
        });
        stage
    }

    pub fn hold(&self, path: &str, bytes: &[u8], acts: impl IntoIterator<Item = Act>) {
        let etag = Some(format!("\"{}\"", &sha256(bytes)[..16]));
        let held = Held { bytes: Arc::new(bytes.to_vec()), etag, acts: acts.into_iter().collect() };
        self.shared.lock().unwrap().files.insert(path.to_owned(), held);
    }

    pub fn change(&self, path: &str, change: impl FnOnce(&mut Held)) {
        change(self.shared.lock().unwrap().files.get_mut(path).unwrap());
    }

    /// A repository as the hub lists it; its files are held too.
    pub fn repository(&self, name: &str, files: &[(&str, &[u8])]) {
        let list: Vec<serde_json::Value> = files
            .iter()
            .map(|(path, bytes)| {
                self.hold(&format!("/{name}/resolve/main/{path}"), bytes, []);
                serde_json::json!({"type": "file", "oid": "0", "size": bytes.len(), "path": path,
                    "lfs": {"oid": sha256(bytes), "size": bytes.len(), "pointerSize": 135}})
            })
            .collect();
        self.list(name, &serde_json::to_string(&list).unwrap());
    }

    pub fn list(&self, name: &str, body: &str) {
        let path = format!("/api/models/{name}/tree/main?recursive=true");
        self.hold(&path, body.as_bytes(), []);
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.shared.lock().unwrap().asked.clone()
    }

    pub fn asked_for(&self, part: &str) -> Vec<Asked> {
        self.asked().into_iter().filter(|asked| asked.path.contains(part)).collect()
    }

    /// Lets what is held go on, now or when it gets there.
    pub fn go_on(&self) {
        self.going_on.notify_one();
    }

    async fn serve(self, stream: TcpStream) {
        let (reader, mut writer) = stream.into_split();
        let mut lines = BufReader::new(reader).lines();
        while let Some(asked) = read_head(&mut lines).await {
            let held = {
                let mut shared = self.shared.lock().unwrap();
                shared.asked.push(asked.clone());
                shared.files.get_mut(&asked.path).map(|held| {
                    let act = held.acts.pop_front().unwrap_or(Act::Serve);
                    (held.clone(), act)
                })
            };
            let Some((held, act)) = held else {
                let _ = writer.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n").await;
                continue;
            };
            if !self.answer(&mut writer, &asked, &held, act).await {
                return;
            }
        }
    }

    /// False when the connection ends.
    async fn answer(
        &self,
        writer: &mut (impl AsyncWriteExt + Unpin),
        asked: &Asked,
        held: &Held,
        act: Act,
    ) -> bool {
        let from = wanted_from(asked, held, &act);
        let body = &held.bytes[from.unwrap_or(0).min(held.bytes.len())..];
        let mut head = match (&act, from) {
            (Act::Status(status, _, _), _) => format!("HTTP/1.1 {status} As Told\r\n"),
            (_, Some(from)) if from >= held.bytes.len() => {
                let head = format!(
                    "HTTP/1.1 416 Range Not Satisfiable\r\nContent-Range: bytes */{}\r\nContent-Length: 0\r\n\r\n",
                    held.bytes.len()
                );
                return writer.write_all(head.as_bytes()).await.is_ok();
            }
            (_, Some(from)) => format!(
                "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes {from}-{}/{}\r\n",
                held.bytes.len() - 1,
                held.bytes.len()
            ),
            (_, None) => "HTTP/1.1 200 OK\r\n".to_owned(),
        };
        if let Some(etag) = &held.etag {
            head.push_str(&format!("ETag: {etag}\r\n"));
        }
        let length = format!("Content-Length: {}\r\n\r\n", body.len());
        match act {
            Act::Status(_, headers, text) => {
                for (name, value) in headers {
                    head.push_str(&format!("{name}: {value}\r\n"));
                }
                head.push_str(&format!("Content-Length: {}\r\n\r\n{text}", text.len()));
                writer.write_all(head.as_bytes()).await.is_ok()
            }
            Act::Serve | Act::NoRange | Act::WrongRange | Act::IgnoreIfRange => {
                send(writer, &(head + &length), body).await
            }
            Act::Gzip => send(writer, &(head + "Content-Encoding: gzip\r\n" + &length), body).await,
            Act::CutAfter(bytes) => {
                send(writer, &(head + &length), &body[..bytes.min(body.len())]).await;
                false
            }
            Act::HangAfter(bytes) => {
                send(writer, &(head + &length), &body[..bytes.min(body.len())]).await;
                std::future::pending().await
            }
            Act::HoldAfter(bytes) => {
                send(writer, &(head + &length), &body[..bytes]).await;
                self.going_on.notified().await;
                send(writer, "", &body[bytes..]).await
            }
            Act::Chunked => chunked(writer, &head, body, true).await,
            Act::ChunkedCut(bytes) => chunked(writer, &head, &body[..bytes], false).await,
        }
    }
}

fn wanted_from(asked: &Asked, held: &Held, act: &Act) -> Option<usize> {
    let range = asked.headers.get("range")?;
    let from: usize = range.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok()?;
    let same = asked.headers.get("if-range").is_none_or(|mark| Some(mark) == held.etag.as_ref());
    match act {
        Act::NoRange => None,
        Act::WrongRange => Some(0),
        Act::IgnoreIfRange => Some(from),
        _ => same.then_some(from),
    }
}

async fn send(writer: &mut (impl AsyncWriteExt + Unpin), head: &str, body: &[u8]) -> bool {
    writer.write_all(head.as_bytes()).await.is_ok()
        && writer.write_all(body).await.is_ok()
        && writer.flush().await.is_ok()
}

async fn chunked(writer: &mut (impl AsyncWriteExt + Unpin), head: &str, body: &[u8], ends: bool) -> bool {
    let head = format!("{head}Transfer-Encoding: chunked\r\n\r\n");
    let mut all = head.into_bytes();
    for chunk in body.chunks(1000) {
        all.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        all.extend_from_slice(chunk);
        all.extend_from_slice(b"\r\n");
    }
    if ends {
        all.extend_from_slice(b"0\r\n\r\n");
    }
    writer.write_all(&all).await.is_ok() && writer.flush().await.is_ok() && ends
}

async fn read_head(lines: &mut tokio::io::Lines<BufReader<tokio::net::tcp::OwnedReadHalf>>) -> Option<Asked> {
    let first = lines.next_line().await.ok()??;
    let path = first.split(' ').nth(1)?.to_owned();
    let mut headers = BTreeMap::new();
    loop {
        let line = lines.next_line().await.ok()??;
        let Some((name, value)) = line.split_once(':') else { return Some(Asked { path, headers }) };
        headers.insert(name.trim().to_ascii_lowercase(), value.trim().to_owned());
    }
}

/// A file that begins as a model does and is the same for the same seed.
pub fn model(seed: u64, bytes: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(2).wrapping_add(1);
    let mut all = b"GGUF".to_vec();
    while all.len() < bytes {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        all.push((state >> 56) as u8);
    }
    all
}

pub fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Downloads into a folder, from a hub, without patience.
pub fn downloads(folder: &std::path::Path, hub: &str, token: Option<&'static str>) -> Downloads {
    Downloads::open(options(folder, hub, token)).unwrap()
}

pub fn options(folder: &std::path::Path, hub: &str, token: Option<&'static str>) -> DownloadOptions {
    let token = token
        .map(|token| -> Token { Arc::new(move || Box::pin(std::future::ready(Some(token.to_owned())))) });
    DownloadOptions {
        folder: folder.to_owned(),
        web: WebOptions { hub: hub.parse().unwrap(), token, silence: Duration::from_millis(1500) },
        retry: Retry { tries: 4, first: Duration::from_millis(10), longest: Duration::from_millis(50) },
        reserve: Reserve(0),
        at_once: 2,
    }
}
