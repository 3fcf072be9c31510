//! What the API costs: the memory of a stream that waits, and the frames that pass in a second beside a bare echo of
//! server-sent events by axum, in the same process, on the same sockets.
#![expect(clippy::print_stdout, reason = "the figures are what it is for")]
#![expect(clippy::unwrap_used, reason = "whatever goes wrong is to end the benchmark")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use axum::response::Sse;
use axum::response::sse::Event;
use axum::routing::post;
use axum::{Json, Router};
use futures::future::{BoxFuture, FutureExt, join_all};
use futures::{Stream, StreamExt, stream};
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use lectern_api::{ApiOptions, Backend, Key, Keys, Limits, ModelCard, Server};
use lectern_app::Answering;
use lectern_app::view::Problem;
use lectern_core::testing::{Beat, Reply, ScriptedModel, ScriptedTools};
use lectern_core::{
    ChatModel, ConversationId, Delta, ExposurePolicy, FinishReason, ModelId, PermissionBook, Policy,
    Sampling, Store, ThinkingOptions, ToolMode, ToolProvider,
};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const STREAMS: usize = 200;
const FRAMES: usize = 500;
const ROUNDS: usize = 7;
/// What a stream that waits may take at most.
const MOST: usize = 200_000;

/// Counts what is allocated at once.
struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);

// SAFETY: everything is handed to the system's allocator; only the sizes are counted.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        NOW.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

struct Scripted(Arc<ScriptedModel>, Store, tempfile::TempDir);

impl Backend for Scripted {
    fn models(&self) -> Vec<ModelCard> {
        Vec::new()
    }

    fn open(&self, _: Option<ModelId>) -> BoxFuture<'static, Result<Answering, Problem>> {
        let answering = Answering {
            id: "scripted".into(),
            model: Arc::clone(&self.0) as Arc<dyn ChatModel>,
            tool_mode: ToolMode::Native,
            sampling: Sampling::default(),
            thinking: ThinkingOptions::default(),
            exposure: ExposurePolicy::default(),
            others: Default::default(),
            system: None,
            largest_context: None,
            max_steps: 20,
            starter: false,
        };
        std::future::ready(Ok(answering)).boxed()
    }

    fn tools(&self) -> Arc<dyn ToolProvider> {
        Arc::new(ScriptedTools::new())
    }

    fn tools_settled(&self) -> BoxFuture<'static, ()> {
        std::future::ready(()).boxed()
    }

    fn permissions(&self) -> Arc<PermissionBook> {
        Arc::new(PermissionBook::new(Policy::default()))
    }

    fn store(&self) -> Store {
        self.1.clone()
    }

    fn folder(&self) -> std::path::PathBuf {
        self.2.path().to_owned()
    }

    fn forget(&self, _: Vec<ConversationId>) -> BoxFuture<'static, ()> {
        std::future::ready(()).boxed()
    }
}

async fn serving(reply: Reply) -> (Server, Key) {
    let model = ScriptedModel::new([reply]).repeating();
    let backend = Scripted(Arc::new(model), Store::in_memory().unwrap(), tempfile::tempdir().unwrap());
    let key = Key::fresh("bench");
    let limits = Limits { burst: 1e9, per_second: 1e9, ..Limits::default() };
    let options = ApiOptions { limits, ..ApiOptions::default() };
    let server = Server::start(Arc::new(backend), Keys::new([key.clone()]), options).await.unwrap();
    (server, key)
}

/// The bare thing: as many frames as ours, each what the request said.
async fn echo(Json(body): Json<Value>) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let frame = body["frame"].as_str().unwrap_or_default().to_owned();
    let frames = stream::iter((0..FRAMES).map(move |_| frame.clone()));
    let done = stream::iter(["[DONE]".to_owned()]);
    Sse::new(frames.chain(done).map(|text| Ok(Event::default().data(text))))
}

async fn echoing() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let router = Router::new().route("/", post(echo));
        while let Ok((stream, _)) = listener.accept().await {
            let _ = stream.set_nodelay(true);
            let service = TowerToHyperService::new(router.clone());
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    });
    address
}

fn request(address: SocketAddr, path: &str, secret: &str, body: &Value) -> Vec<u8> {
    let body = body.to_string();
    format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {secret}\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// All streams from their first byte to their last; the time, and the bytes of all.
async fn all(address: SocketAddr, request: &[u8]) -> (Duration, usize) {
    let one = || async {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(request).await.unwrap();
        let (mut buffer, mut bytes, mut last) = (vec![0; 64 << 10], 0, Vec::new());
        loop {
            let count = stream.read(&mut buffer).await.unwrap();
            if count == 0 {
                break;
            }
            bytes += count;
            last.extend_from_slice(&buffer[..count]);
            last.drain(..last.len().saturating_sub(64));
        }
        assert!(String::from_utf8_lossy(&last).contains("[DONE]"), "{}", String::from_utf8_lossy(&last));
        bytes
    };
    let begun = Instant::now();
    let bytes = join_all((0..STREAMS).map(|_| one())).await.into_iter().sum();
    (begun.elapsed(), bytes)
}

async fn throughput() {
    let words = (0..FRAMES).map(|number| Beat::Delta(Delta::Text(format!("word{number} "))));
    let (server, key) =
        serving(words.chain([Beat::Delta(Delta::Finished(FinishReason::Stop))]).collect()).await;
    let asked = json!({"model": null, "stream": true, "messages": [{"role": "user", "content": "hi"}]});
    let ours = request(server.address(), "/v1/chat/completions", key.secret(), &asked);
    let bare = echoing().await;
    let choice =
        json!({"index": 0, "delta": {"content": "word123 "}, "logprobs": null, "finish_reason": null});
    let frame = json!({
        "id": format!("chatcmpl-{}", "0".repeat(32)), "object": "chat.completion.chunk", "created": 1_790_000_000,
        "model": "scripted", "choices": [choice],
    });
    let theirs = request(bare, "/", "", &json!({"frame": frame.to_string()}));
    let (mut best, mut best_bare) = ((Duration::MAX, 0), (Duration::MAX, 0));
    for _ in 0..ROUNDS {
        best = best.min(all(server.address(), &ours).await);
        best_bare = best_bare.min(all(bare, &theirs).await);
    }
    let rate = |(time, _): (Duration, usize)| (STREAMS * FRAMES) as f64 / time.as_secs_f64();
    println!(
        "{STREAMS} streams of {FRAMES} frames at once: {:.0} frames/s ({:.1} MB); a bare SSE echo of axum {:.0} \
         frames/s ({:.1} MB); ratio {:.2}",
        rate(best),
        best.1 as f64 / 1e6,
        rate(best_bare),
        best_bare.1 as f64 / 1e6,
        rate(best) / rate(best_bare),
    );
    server.end().await;
}

/// The process' memory as the system counts it, in bytes.
fn resident() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().strip_suffix(" kB")?.trim().parse::<usize>().ok()? << 10)
}

/// The client's side is in it: a socket and a buffer of a kilobyte.
async fn memory() {
    let word = Beat::Delta(Delta::Text("Once".to_owned()));
    let (server, key) = serving(vec![word, Beat::Wait(Duration::from_secs(3_600))]).await;
    let asked = json!({"stream": true, "messages": [{"role": "user", "content": "hi"}]});
    let asked = request(server.address(), "/v1/chat/completions", key.secret(), &asked);
    let open = |count| join_all((0..count).map(|_| idle(server.address(), &asked)));
    // What the first ones make is made once.
    drop(open(20).await);
    let warm = open(20).await;
    let (before, resident_before) = (NOW.load(Ordering::Relaxed), resident());
    let streams = open(STREAMS).await;
    let each = NOW.load(Ordering::Relaxed).saturating_sub(before) / STREAMS;
    let system = resident().zip(resident_before).map(|(now, then)| now.saturating_sub(then) / STREAMS);
    println!(
        "{STREAMS} streams that wait: {:.1} kB each allocated, {:.1} kB each resident (at most {} kB)",
        each as f64 / 1e3,
        system.unwrap_or_default() as f64 / 1e3,
        MOST / 1_000,
    );
    assert!(each < MOST && system.unwrap_or_default() < MOST, "a stream that waits takes too much");
    drop((warm, streams));
}

async fn idle(address: SocketAddr, request: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request).await.unwrap();
    let (mut buffer, mut seen) = ([0; 1_024], Vec::new());
    while !String::from_utf8_lossy(&seen).contains("Once") {
        let count = stream.read(&mut buffer).await.unwrap();
        assert_ne!(count, 0, "{}", String::from_utf8_lossy(&seen));
        seen.extend_from_slice(&buffer[..count]);
    }
    stream
}

#[tokio::main]
async fn main() {
    memory().await;
    throughput().await;
}
