//! What reading a reply costs: 10,000 chunks through parser and mapping beside `serde_json` alone on the same bytes, and
//! the memory that a stream of 50 MB takes.
#![expect(clippy::print_stdout, reason = "the figures are what it is for")]
#![expect(clippy::unwrap_used, reason = "whatever goes wrong is to end the benchmark")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use lectern_cloud::{Provider, decode};
use serde_json::{Value, json};

const CHUNKS: usize = 10_000;
const ROUNDS: usize = 15;
/// As a socket gives them.
const PIECE: usize = 16 << 10;
const LONG: usize = 50 << 20;

/// Counts what is allocated at once.
struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: everything is handed to the system's allocator; only the sizes are counted.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = NOW.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        MOST.fetch_max(now, Ordering::Relaxed);
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

fn gemini(number: usize) -> Value {
    let text = format!("Chunk {number}: \"quoted\", größer, 漢字, and some more words of an answer.\n");
    json!({
        "candidates": [{"content": {"role": "model", "parts": [{"text": text}]}, "index": 0, "safetyRatings": [
            {"category": "HARM_CATEGORY_HATE_SPEECH", "probability": "NEGLIGIBLE"}]}],
        "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": number, "totalTokenCount": 9 + number},
        "modelVersion": "gemini-3.5-flash", "responseId": "J5-HaL6iL9OVhMIPkuG6iA8",
    })
}

fn openai(number: usize) -> Value {
    json!({
        "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_790_000_000, "model": "qwen3",
        "choices": [{"index": 0, "delta": {"content": format!("word{number} ")}, "logprobs": null, "finish_reason": null}],
    })
}

fn stream(chunk: fn(usize) -> Value, count: usize) -> Vec<u8> {
    (0..count).flat_map(|number| format!("data: {}\r\n\r\n", chunk(number)).into_bytes()).collect()
}

fn best(mut work: impl FnMut()) -> Duration {
    work();
    let one = |_| {
        let begun = Instant::now();
        work();
        begun.elapsed()
    };
    (0..ROUNDS).map(one).min().unwrap()
}

fn compare(name: &str, provider: Provider, chunk: fn(usize) -> Value) {
    let bytes = stream(chunk, CHUNKS);
    let bodies: Vec<Vec<u8>> = (0..CHUNKS).map(|number| chunk(number).to_string().into_bytes()).collect();
    let alone = best(|| {
        for body in &bodies {
            std::hint::black_box(serde_json::from_slice::<Value>(body).unwrap());
        }
    });
    let ours = best(|| {
        let decoded = decode::pieces(provider, bytes.chunks(PIECE));
        assert!(!decoded.text.is_empty());
    });
    let rate = bytes.len() as f64 / 1e6 / ours.as_secs_f64();
    println!(
        "{name}: {CHUNKS} chunks, {:.1} MB: {:.1} ms ({rate:.0} MB/s); serde_json alone {:.1} ms; ratio {:.2}",
        bytes.len() as f64 / 1e6,
        ours.as_secs_f64() * 1e3,
        alone.as_secs_f64() * 1e3,
        ours.as_secs_f64() / alone.as_secs_f64(),
    );
}

/// The deltas are dropped as they come, as a reader does that passes them on.
fn memory(name: &str, provider: Provider, chunk: fn(usize) -> Value) {
    let one = stream(chunk, 1_000);
    let (before, mut passed) = (NOW.load(Ordering::Relaxed), 0);
    MOST.store(before, Ordering::Relaxed);
    let mut watch = decode::Watch::new(provider);
    while passed < LONG {
        for piece in one.chunks(PIECE) {
            watch.push(piece).unwrap();
        }
        passed += one.len();
    }
    let most = MOST.load(Ordering::Relaxed) - before;
    println!(
        "{name}: a stream of {:.0} MB passes with at most {:.0} kB more in use",
        passed as f64 / 1e6,
        most as f64 / 1e3
    );
    assert!(most < 1 << 20, "{most} bytes");
}

fn main() {
    compare("Gemini", Provider::Gemini, gemini);
    compare("OpenAI-compatible", Provider::OpenAi, openai);
    memory("Gemini", Provider::Gemini, gemini);
    memory("OpenAI-compatible", Provider::OpenAi, openai);
}
