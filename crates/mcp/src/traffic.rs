//! Every JSON-RPC message of one server, both ways, as far as there is room.
//!
//! Invariant: neither the number of messages kept nor their bytes grow without a limit; what was cut says so; nothing
//! leaves here unmasked; recording waits for no server. Nothing is written to disk unless somebody asked for it: what
//! tools return may be private, and a file outlives the conversation that it came from.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lectern_core::{Timestamp, WireDirection};
use serde::Serialize;
use serde_json::Value;

use crate::log::RotatingFile;
use crate::mask::Mask;

/// Messages that are kept.
const KEPT_MESSAGES: usize = 1_000;
/// Bytes that all kept messages may have together.
const KEPT_BYTES: usize = 4 << 20;
/// Bytes of one message that are kept, more or less: what is cut is replaced by a note.
const MESSAGE_BYTES: usize = 64 << 10;
/// Bytes of one text inside a message that are kept.
const TEXT_BYTES: usize = 32 << 10;
/// How far behind a cut a secret may reach.
const LONGEST_SECRET: usize = 8 << 10;

/// One message, secrets masked.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TrafficMessage {
    /// Counts from 1 for each server, without a gap, over all its processes.
    pub number: u64,
    /// When it passed.
    pub at: Timestamp,
    /// Which way.
    pub direction: WireDirection,
    /// The JSON-RPC id; none for a notification.
    pub id: Option<Value>,
    /// The method; of a reply that of its request, when that is known.
    pub method: Option<String>,
    /// Its length before anything was cut, in bytes of JSON.
    pub bytes: usize,
    /// The message; long texts in it are cut with a note.
    pub message: Value,
}

/// Messages from a number on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TrafficPage {
    /// Oldest first. A gap before the first one means that older ones are gone.
    pub messages: Vec<TrafficMessage>,
    /// What to ask for next: the number of the last message that there was.
    pub next: u64,
}

/// The traffic of one server, over all its processes.
#[derive(Default)]
pub(crate) struct Traffic {
    kept: Mutex<Kept>,
    mask: Mask,
}

#[derive(Default)]
struct Kept {
    ring: VecDeque<Record>,
    bytes: usize,
    last: u64,
    file: Option<RotatingFile>,
}

/// Kept as text: a tree of values takes many times the room.
struct Record {
    at: Timestamp,
    direction: WireDirection,
    bytes: usize,
    id: Option<Value>,
    /// Whether it is a request or a notification; the method is its own then.
    asks: bool,
    method: Option<Arc<str>>,
    text: Box<[u8]>,
}

impl Kept {
    /// What a reply answers: the newest request with its id that went the other way.
    fn answered(&self, direction: WireDirection, id: &Value) -> Option<Arc<str>> {
        let asks =
            |record: &&Record| record.asks && record.direction != direction && record.id.as_ref() == Some(id);
        self.ring.iter().rev().filter(asks).find_map(|record| record.method.clone())
    }
}

impl Traffic {
    /// Kept in memory, and in `dir`, if there is one, as `name.traffic.jsonl` and `name.traffic.jsonl.1`.
    pub(crate) fn new(dir: Option<&Path>, name: &str, mask: Mask) -> Self {
        let file = dir.map(|dir| RotatingFile::new(dir.join(format!("{name}.traffic.jsonl"))));
        Self { kept: Mutex::new(Kept { file, ..Kept::default() }), mask }
    }

    /// A new process begins: a disk that was full may have room again.
    pub(crate) fn begin(&self) {
        if let Some(file) = &mut self.kept().file {
            file.try_again();
        }
    }

    /// Adds one message. `text` is what passed, where that is at hand: it is not written a second time.
    pub(crate) fn record(&self, direction: WireDirection, message: &Value, text: Option<&[u8]>) {
        let (text, bytes) = match text {
            // Nothing in it can be too long.
            Some(text) if text.len() <= TEXT_BYTES => (text.to_vec(), text.len()),
            Some(_) | None => shortened(message, &self.mask),
        };
        // An id longer than this is nobody's that anybody would look for.
        let id = message.get("id").filter(|id| id.as_str().is_none_or(|id| id.len() <= 256)).cloned();
        let method = message.get("method").and_then(Value::as_str);
        let method = method.map(|method| Arc::from(prefix(method, 256)));
        let mut kept = self.kept();
        let asks = method.is_some();
        let method = method.or_else(|| kept.answered(direction, id.as_ref()?));
        let record = Record { at: Timestamp::now(), direction, bytes, id, asks, method, text: text.into() };
        kept.bytes += record.text.len();
        kept.last += 1;
        let number = kept.last;
        if let Some(file) = &mut kept.file {
            let line = serde_json::to_string(&self.read(number, &record)).unwrap_or_default();
            file.text(&(line + "\n"));
        }
        kept.ring.push_back(record);
        while kept.ring.len() > KEPT_MESSAGES || kept.bytes > KEPT_BYTES {
            let Some(oldest) = kept.ring.pop_front() else { break };
            kept.bytes -= oldest.text.len();
        }
    }

    /// The messages after this number; 0 for all that are kept.
    pub(crate) fn after(&self, number: u64) -> TrafficPage {
        let kept = self.kept();
        let first = kept.last + 1 - kept.ring.len() as u64;
        let numbered = (first..).zip(&kept.ring).filter(|(own, _)| *own > number);
        let messages: Vec<TrafficMessage> = numbered.map(|(own, record)| self.read(own, record)).collect();
        TrafficPage { messages, next: kept.last }
    }

    fn read(&self, number: u64, record: &Record) -> TrafficMessage {
        let message = serde_json::from_slice(&record.text).unwrap_or(Value::Null);
        let message = self.mask.value(message);
        TrafficMessage {
            number,
            at: record.at,
            direction: record.direction,
            id: record.id.clone(),
            method: record.method.as_deref().map(str::to_owned),
            bytes: record.bytes,
            message,
        }
    }

    // A std mutex: nothing awaits while it is held.
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The message as JSON with its long parts cut, and how long it was.
fn shortened(message: &Value, mask: &Mask) -> (Vec<u8>, usize) {
    let mut writer = Writer { out: Vec::with_capacity(256), cut: false, mask };
    writer.value(message);
    if !writer.cut {
        let bytes = writer.out.len();
        return (writer.out, bytes);
    }
    let mut counted = Counter(0);
    // A value always serialises, and counting does not fail.
    let _ = serde_json::to_writer(&mut counted, message);
    (writer.out, counted.0)
}

struct Counter(usize);

impl std::io::Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Writes JSON until there is no room; then notes take the place of what is left. Always valid JSON.
struct Writer<'a> {
    out: Vec<u8>,
    cut: bool,
    mask: &'a Mask,
}

impl Writer<'_> {
    fn value(&mut self, value: &Value) {
        match value {
            Value::String(text) => self.text(text),
            Value::Array(items) if items.is_empty() || self.has_room() => self.array(items),
            Value::Array(items) => self.note(&format!("[… {} items cut]", items.len())),
            Value::Object(fields) if fields.is_empty() || self.has_room() => self.object(fields),
            Value::Object(fields) => self.note(&format!("[… {} fields cut]", fields.len())),
            Value::Null | Value::Bool(_) | Value::Number(_) => self.json(value),
        }
    }

    fn array(&mut self, items: &[Value]) {
        self.out.push(b'[');
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                self.out.push(b',');
            }
            if !self.has_room() {
                self.note(&format!("[… {} items cut]", items.len() - index));
                break;
            }
            self.value(item);
        }
        self.out.push(b']');
    }

    fn object(&mut self, fields: &serde_json::Map<String, Value>) {
        let outermost = self.out.is_empty();
        self.out.push(b'{');
        let mut left_out = 0_usize;
        let mut first = true;
        for (name, value) in fields {
            // What a message is and belongs to may stand behind its long part.
            let wanted = outermost && matches!(name.as_str(), "jsonrpc" | "id" | "method");
            if !wanted && !self.has_room() {
                left_out += 1;
                continue;
            }
            if !std::mem::take(&mut first) {
                self.out.push(b',');
            }
            self.text(name);
            self.out.push(b':');
            self.value(value);
        }
        if left_out > 0 {
            self.out.extend_from_slice(if first { "\"…\":" } else { ",\"…\":" }.as_bytes());
            self.note(&format!("[{left_out} fields cut]"));
        }
        self.out.push(b'}');
    }

    fn text(&mut self, text: &str) {
        if text.len() <= TEXT_BYTES && (text.len() < 256 || self.has_room()) {
            self.json(text);
            return;
        }
        let room = if self.has_room() { TEXT_BYTES } else { 64 };
        // Masked before it is cut: half a secret would not be found later.
        let kept = self.mask.text(prefix(text, room + LONGEST_SECRET));
        let kept = prefix(&kept, room);
        self.note(&format!("{kept}[… {} bytes in all]", text.len()));
    }

    fn note(&mut self, note: &str) {
        self.cut = true;
        self.json(note);
    }

    fn json<T: Serialize + ?Sized>(&mut self, value: &T) {
        // A text or a number always serialises, and memory takes everything.
        let _ = serde_json::to_writer(&mut self.out, value);
    }

    fn has_room(&self) -> bool {
        self.out.len() < MESSAGE_BYTES
    }
}

fn prefix(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn messages_have_numbers_without_a_gap_and_the_oldest_go() {
        let traffic = Traffic::new(None, "x", Mask::default());
        for id in 1..=KEPT_MESSAGES + 10 {
            traffic.record(WireDirection::Sent, &json!({"jsonrpc": "2.0", "id": id, "method": "ping"}), None);
        }
        let page = traffic.after(0);
        assert_eq!((page.messages.len(), page.next), (KEPT_MESSAGES, KEPT_MESSAGES as u64 + 10));
        assert_eq!((page.messages[0].number, &page.messages[0].id), (11, &Some(json!(11))));
        assert_eq!(page.messages[0].method.as_deref(), Some("ping"));
        assert_eq!(traffic.after(page.next), TrafficPage { messages: vec![], next: page.next });
        assert_eq!(traffic.after(page.next - 1).messages.len(), 1);
    }

    #[test]
    fn a_huge_message_keeps_its_id_and_says_what_was_cut() {
        let traffic = Traffic::new(None, "x", Mask::default());
        let many: Vec<Value> = (0..200_000).map(|n| json!({"n": n})).collect();
        let message = json!({"result": {"text": "ü".repeat(10 << 20), "many": many}, "error": {"a": "b"}, "jsonrpc": "2.0", "id": 7});
        traffic.record(WireDirection::Received, &message, None);
        let page = traffic.after(0);
        let [kept] = &page.messages[..] else { panic!() };
        assert_eq!((kept.bytes, &kept.id), (message.to_string().len(), &Some(json!(7))));
        let text = kept.message.to_string();
        assert!(text.len() < 2 * MESSAGE_BYTES, "{}", text.len());
        assert!(text.contains("[… 20971520 bytes in all]"));
        assert!(text.contains("items cut]"));
    }

    #[test]
    fn a_reply_has_the_method_of_its_request() {
        let traffic = Traffic::default();
        traffic.record(WireDirection::Sent, &json!({"id": 1, "method": "tools/list"}), None);
        traffic.record(WireDirection::Received, &json!({"id": 1, "method": "roots/list"}), None);
        traffic.record(WireDirection::Sent, &json!({"id": 1, "result": {}}), None);
        traffic.record(WireDirection::Received, &json!({"id": 1, "result": {}}), None);
        traffic.record(WireDirection::Received, &json!({"id": 2, "result": {}}), None);
        let methods: Vec<_> = traffic.after(2).messages.into_iter().map(|message| message.method).collect();
        assert_eq!(methods, [Some("roots/list".to_owned()), Some("tools/list".to_owned()), None]);
    }

    #[test]
    fn many_fields_do_not_grow_without_a_limit() {
        let traffic = Traffic::default();
        let fields: serde_json::Map<String, Value> =
            (0..300_000).map(|n| (format!("f{n}"), json!(n))).collect();
        traffic.record(WireDirection::Received, &Value::Object(fields), None);
        assert!(traffic.kept().bytes < 2 * MESSAGE_BYTES);
    }

    #[test]
    fn many_large_messages_stay_within_the_limit() {
        let traffic = Traffic::new(None, "x", Mask::default());
        for _ in 0..500 {
            traffic.record(
                WireDirection::Received,
                &json!({"result": vec!["x".repeat(TEXT_BYTES); 20]}),
                None,
            );
        }
        let kept = traffic.kept();
        assert!(kept.bytes <= KEPT_BYTES && kept.bytes > KEPT_BYTES / 2, "{}", kept.bytes);
    }

    #[test]
    fn a_secret_is_hidden_also_where_a_text_is_cut() {
        let mut config = crate::ServerConfig::new("x", "x", [""; 0]);
        config.program_mut().unwrap().env.insert("API_TOKEN".into(), "swordfish".into());
        let traffic = Traffic::new(None, "x", Mask::of(&config));
        let text = format!("{}swordfish{}", "x".repeat(TEXT_BYTES - 4), "y".repeat(1_000));
        traffic.record(WireDirection::Sent, &json!({"params": {"short": "a swordfish", "long": text}}), None);
        let message = traffic.after(0).messages[0].message.to_string();
        assert!(!message.contains("swor"), "{}", &message[message.len() - 300..]);
        assert!(message.contains("a ••••••"));
    }

    #[test]
    fn what_is_kept_on_disk_is_masked_too() {
        let dir = tempfile::tempdir().unwrap();
        let mut config = crate::ServerConfig::new("x", "x", [""; 0]);
        config.program_mut().unwrap().env.insert("API_TOKEN".into(), "swordfish".into());
        let traffic = Traffic::new(Some(dir.path()), "x", Mask::of(&config));
        traffic.record(WireDirection::Sent, &json!({"id": 1, "method": "m", "params": "a swordfish"}), None);
        let mut file = crate::LogFile::of_traffic(dir.path(), &"x".into());
        let line: Value = serde_json::from_str(&file.tail(5).unwrap()[0]).unwrap();
        assert_eq!(
            (&line["number"], &line["direction"], &line["method"]),
            (&json!(1), &json!("sent"), &json!("m"))
        );
        assert_eq!(line["message"], json!({"id": 1, "method": "m", "params": "a ••••••"}));
    }
}
