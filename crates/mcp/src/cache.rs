//! What a server gave with a time to live (MCP 2026-07-28, `ttlMs`).
//!
//! Invariant: bounded. Nothing outlives its time, its connection, or the server's word that it changed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

/// Results that are kept.
const MOST_ENTRIES: usize = 128;
/// Bytes of one result that is kept.
const MOST_BYTES: usize = 1 << 20;
/// A longer time is cut: a server may be wrong about the future.
const LONGEST: Duration = Duration::from_secs(3_600);

/// The results of one connection.
#[derive(Default)]
pub(crate) struct Cache(Mutex<HashMap<Key, Entry>>);

/// What was asked: the method, and what it was about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) method: &'static str,
    pub(crate) about: String,
}

struct Entry {
    result: Arc<Value>,
    until: Instant,
}

impl Cache {
    /// A result that still holds.
    pub(crate) fn get(&self, key: &Key) -> Option<Arc<Value>> {
        let mut entries = self.entries();
        match entries.get(key) {
            Some(entry) if entry.until > Instant::now() => Some(Arc::clone(&entry.result)),
            Some(_) => {
                entries.remove(key);
                None
            }
            None => None,
        }
    }

    /// Keeps a result for as long as it says, if it says so.
    pub(crate) fn keep(&self, key: Key, result: &Value) {
        let Some(time) = time_to_live(result) else { return };
        if crate::outcome::size(result) > MOST_BYTES {
            return;
        }
        let mut entries = self.entries();
        let now = Instant::now();
        if entries.len() >= MOST_ENTRIES {
            entries.retain(|_, entry| entry.until > now);
        }
        if entries.len() >= MOST_ENTRIES {
            let soonest = entries.iter().min_by_key(|(_, entry)| entry.until).map(|(key, _)| key.clone());
            soonest.and_then(|key| entries.remove(&key));
        }
        entries.insert(key, Entry { result: Arc::new(result.clone()), until: now + time });
    }

    /// Forgets the results of these methods.
    pub(crate) fn forget(&self, methods: &[&str]) {
        self.entries().retain(|key, _| !methods.contains(&key.method));
    }

    // A std mutex: nothing awaits while it is held.
    fn entries(&self) -> MutexGuard<'_, HashMap<Key, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How long a result says that it holds; none when it must not be kept.
pub(crate) fn time_to_live(result: &Value) -> Option<Duration> {
    let millis = result.get("ttlMs").or_else(|| result.pointer("/_meta/ttlMs"))?.as_u64()?;
    (millis > 0).then(|| Duration::from_millis(millis).min(LONGEST))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn key(about: &str) -> Key {
        Key { method: "tools/call", about: about.into() }
    }

    #[tokio::test(start_paused = true)]
    async fn results_are_kept_as_long_as_they_say() {
        let cache = Cache::default();
        cache.keep(key("a"), &json!({"ttlMs": 1_000, "x": 1}));
        cache.keep(key("b"), &json!({"ttlMs": 0}));
        cache.keep(key("c"), &json!({"x": 1}));
        assert_eq!(cache.get(&key("a")).as_deref(), Some(&json!({"ttlMs": 1_000, "x": 1})));
        assert_eq!((cache.get(&key("b")), cache.get(&key("c"))), (None, None));
        tokio::time::advance(Duration::from_millis(1_001)).await;
        assert_eq!(cache.get(&key("a")), None);
    }

    #[tokio::test(start_paused = true)]
    async fn the_cache_is_bounded_and_can_be_told_to_forget() {
        let cache = Cache::default();
        for n in 0..1_000 {
            cache.keep(key(&n.to_string()), &json!({"ttlMs": 1_000 + n}));
        }
        assert_eq!(cache.entries().len(), MOST_ENTRIES);
        assert!(cache.get(&key("999")).is_some());
        cache.keep(key("large"), &json!({"ttlMs": 9_000, "x": "x".repeat(2 << 20)}));
        assert!(cache.get(&key("large")).is_none());
        cache.forget(&["tools/call"]);
        assert!(cache.get(&key("999")).is_none());
    }
}
