//! Every recorded answer gives what `index.json` says, however the network cut it.

use std::path::{Path, PathBuf};

use lectern_cloud::decode::{self, Decoded};
use lectern_cloud::{Provider, recorded};
use serde_json::{Map, Value, json};

use crate::support::Dice;

const CUTS: usize = 200;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded")
}

/// Name, bytes, and what they must give.
pub fn recordings() -> Vec<(String, Vec<u8>, Map<String, Value>)> {
    let index = std::fs::read(folder().join("index.json")).unwrap();
    let index: Map<String, Value> = serde_json::from_slice(&index).unwrap();
    let read = |name: &String| std::fs::read(folder().join(name)).unwrap();
    let all: Vec<_> = index.into_iter().map(|(name, expected)| (read(&name), name, expected)).collect();
    assert_eq!(all.len(), 78);
    all.into_iter()
        .map(|(bytes, name, expected)| (name, bytes, expected.as_object().unwrap().clone()))
        .collect()
}

fn check(name: &str, got: &Decoded, expected: &Map<String, Value>) {
    let length = |key: &str| expected.get(key).map_or(0, |value| value.as_u64().unwrap() as usize);
    assert_eq!(got.text.chars().count(), length("text_len"), "{name}: {}", got.text);
    let head = expected.get("text_head").map_or("", |value| value.as_str().unwrap());
    assert!(got.text.starts_with(head), "{name}: {}", got.text);
    assert_eq!(got.thinking.chars().count(), length("thought_len"), "{name}");
    let calls = expected.get("calls").cloned().unwrap_or_else(|| json!([]));
    let got_calls: Vec<Value> = got
        .calls
        .iter()
        .map(|call| json!({"name": call.name, "args": call.args, "id": call.id, "signed": call.signed}))
        .collect();
    assert_eq!(Value::Array(got_calls), calls, "{name}");
    let word = |key: &str| expected.get(key).map(|value| value.as_str().unwrap());
    assert_eq!(got.finish.as_deref(), word("finish"), "{name}");
    assert_eq!(got.block.as_deref(), word("block"), "{name}");
    assert_eq!(got.model.as_deref(), word("model"), "{name}");
    assert_eq!(got.usage.clone().map(Value::Object), expected.get("usage").cloned(), "{name}");
    let error = got.error.as_ref();
    if let Some(wanted) = expected.get("error") {
        let error = error.unwrap();
        assert_eq!(json!({"code": error.code, "status": error.status}), *wanted, "{name}");
    } else if expected.contains_key("html_error_page") {
        assert!(error.unwrap().html, "{name}: {error:?}");
    } else if !expected.contains_key("not_a_stream") {
        assert!(error.is_none(), "{name}: {error:?}");
    }
}

#[test]
fn every_recording_gives_what_it_must_whole_and_byte_by_byte() {
    for (name, bytes, expected) in recordings() {
        check(&name, &recorded(Provider::Gemini, &bytes, 0), &expected);
        check(&name, &recorded(Provider::Gemini, &bytes, 1), &expected);
    }
}

#[test]
fn every_recording_gives_the_same_at_random_cuts() {
    let mut dice = Dice::new(7);
    for (name, bytes, _) in recordings() {
        let whole = recorded(Provider::Gemini, &bytes, 0);
        for _ in 0..CUTS {
            let cuts = dice.cuts(&bytes);
            assert_eq!(decode::pieces(Provider::Gemini, cuts.iter().copied()), whole, "{name}");
        }
    }
}

#[test]
fn a_blocked_prompt_and_a_withheld_answer_are_what_they_are() {
    let outcome = |part: &str| {
        let (_, bytes, _) = recordings().into_iter().find(|(name, _, _)| name.contains(part)).unwrap();
        recorded(Provider::Gemini, &bytes, 0).outcome
    };
    assert_eq!(outcome("streaming-failure-prompt-blocked-safety.txt"), "blocked");
    assert_eq!(outcome("unary-failure-finish-reason-safety-no-content"), "blocked");
    assert_eq!(outcome("vertexai/streaming-failure-finish-reason-safety"), "filtered");
    assert_eq!(outcome("streaming-failure-empty-content"), "empty_answer");
    assert_eq!(outcome("streaming-success-quotes-escaped"), "provider");
    assert_eq!(outcome("stream-malformed-function-call"), "malformed_call");
    assert_eq!(outcome("stream-calls-spread-over-chunks"), "tool_calls");
    assert_eq!(outcome("unary-failure-quota-exceeded"), "rate_limited");
    assert_eq!(outcome("unary-failure-iam-permission-denied"), "unauthorized");
    assert_eq!(outcome("unary-failure-unknown-model"), "model_not_found");
    assert_eq!(outcome("unary-failure-unsupported-user-location"), "not_available_here");
    assert_eq!(outcome("streaming-failure-error-mid-stream"), "provider");
}

/// Our own parser and the workspace's agree where the latter reads at all.
#[tokio::test]
async fn sse_stream_reads_the_same_except_what_it_drops() {
    use futures::StreamExt;
    let mut less = Vec::new();
    for (name, bytes, expected) in recordings() {
        let Some(chunks) = expected.get("n_chunks").and_then(Value::as_u64) else { continue };
        let body = futures::stream::iter(vec![Ok::<_, std::io::Error>(bytes::Bytes::from(bytes.clone()))]);
        let theirs: Vec<_> = sse_stream::SseByteStream::new(body).collect().await;
        let theirs = theirs.into_iter().filter_map(|event| event.unwrap().data).count() as u64;
        if theirs != chunks {
            less.push(name);
        }
    }
    // The errors that are no events; the first of them stands behind good events.
    assert!(less.iter().any(|name| name.contains("error-mid-stream")), "{less:?}");
}
