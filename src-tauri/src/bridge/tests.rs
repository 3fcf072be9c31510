use std::sync::{Arc, Mutex};

use futures::channel::mpsc;
use lectern_core::TurnOutcome;
use serde_json::Value;

use super::*;

/// A page that remembers what it got and when, and a turn that feeds it.
struct Stage {
    turn: mpsc::UnboundedSender<Event>,
    seen: Arc<Mutex<Vec<(Duration, String)>>>,
    done: tokio::task::JoinHandle<()>,
}

impl Stage {
    fn set(listening: impl Fn(usize) -> Listening + Send + 'static) -> Self {
        let (turn, events) = mpsc::unbounded();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (page, begin) = (seen.clone(), Instant::now());
        let done = tokio::spawn(forward(events, move |json| {
            let mut seen = page.lock().unwrap();
            seen.push((begin.elapsed(), json));
            listening(seen.len())
        }));
        Self { turn, seen, done }
    }

    fn happens(&self, seq: u64, kind: EventKind) {
        let event = Event {
            conversation: "c".into(),
            turn: "t".into(),
            seq,
            at: "2026-11-20T22:30:00Z".parse().unwrap(),
            kind,
        };
        let _ = self.turn.unbounded_send(event);
    }

    fn text(&self, seq: u64, text: &str) {
        self.happens(seq, EventKind::TextDelta { text: text.to_owned() });
    }

    /// The batches so far: when, and the `seq` of each event.
    fn batches(&self) -> Vec<(Duration, Vec<u64>)> {
        let seqs = |json: &String| {
            let events: Vec<Value> = serde_json::from_str(json).unwrap();
            events.iter().map(|event| event["seq"].as_u64().unwrap()).collect()
        };
        self.seen.lock().unwrap().iter().map(|(at, json)| (*at, seqs(json))).collect()
    }
}

async fn pass(millis: u64) {
    tokio::time::sleep(Duration::from_millis(millis)).await;
}

fn finished() -> EventKind {
    EventKind::TurnFinished { outcome: TurnOutcome::Completed }
}

#[tokio::test(start_paused = true)]
async fn deltas_wait_for_one_frame_and_cross_together() {
    let stage = Stage::set(|_| Listening::Yes);
    for seq in 0..3 {
        stage.text(seq, "word ");
        pass(10).await;
    }
    pass(100).await;
    assert_eq!(stage.batches(), [(FRAME, vec![0, 1, 2])]);
}

#[tokio::test(start_paused = true)]
async fn anything_else_crosses_at_once_and_takes_the_deltas_along() {
    let stage = Stage::set(|_| Listening::Yes);
    stage.text(0, "a");
    pass(5).await;
    stage.text(1, "b");
    stage.happens(2, finished());
    pass(1).await;
    let batches = stage.batches();
    assert_eq!(batches.len(), 1);
    assert_eq!(batches[0].1, [0, 1, 2]);
    assert!(batches[0].0 < FRAME);
}

#[tokio::test(start_paused = true)]
async fn a_quiet_turn_sends_nothing() {
    let stage = Stage::set(|_| Listening::Yes);
    pass(10_000).await;
    assert_eq!(stage.batches(), []);
}

#[tokio::test(start_paused = true)]
async fn no_batch_of_small_events_reaches_the_slow_way() {
    let stage = Stage::set(|_| Listening::Yes);
    let word = "w".repeat(100);
    for seq in 0..500 {
        stage.text(seq, &word);
    }
    stage.happens(500, finished());
    drop(stage.turn);
    stage.done.await.unwrap();
    let seen = stage.seen.lock().unwrap();
    assert!(seen.iter().all(|(_, json)| json.len() < 8192), "{:?}", seen.iter().map(|s| s.1.len()).max());
    let all: Vec<Value> =
        seen.iter().flat_map(|(_, json)| serde_json::from_str::<Vec<Value>>(json).unwrap()).collect();
    let seqs: Vec<_> = all.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs, (0..=500).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn one_event_larger_than_a_batch_still_crosses() {
    let stage = Stage::set(|_| Listening::Yes);
    stage.text(0, "a");
    stage.text(1, &"x".repeat(50_000));
    stage.text(2, "b");
    pass(100).await;
    let seqs: Vec<u64> = stage.batches().into_iter().flat_map(|(_, seqs)| seqs).collect();
    assert_eq!(seqs, [0, 1, 2]);
}

#[tokio::test(start_paused = true)]
async fn what_still_waits_crosses_when_the_events_end() {
    let Stage { turn, seen, done } = Stage::set(|_| Listening::Yes);
    let stage = Stage { turn: turn.clone(), seen: seen.clone(), done: tokio::spawn(async {}) };
    stage.text(0, "last words");
    drop((turn, stage.turn));
    done.await.unwrap();
    assert_eq!(seen.lock().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_to_a_page_that_went_away() {
    let stage = Stage::set(|count| if count < 2 { Listening::Yes } else { Listening::No });
    for seq in 0..4 {
        stage.happens(seq, EventKind::Notice { code: "n".into(), message: String::new() });
        pass(1).await;
    }
    assert_eq!(stage.batches().len(), 2);
    assert!(stage.done.is_finished());
}
