//! What is being asked of providers, so that the page can stop it.
//!
//! Invariant: a question is known by its name for as long as it is asked and no longer; asking the same again stops the
//! one before.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

/// Questions that can be stopped, by their names.
#[derive(Default)]
pub struct Asking(Mutex<HashMap<String, CancellationToken>>);

/// A question; over when this is dropped.
pub struct Asked<'a> {
    all: &'a Asking,
    name: String,
    cancel: CancellationToken,
}

impl Asking {
    /// Begins a question.
    pub fn begin(&self, name: String) -> Asked<'_> {
        let cancel = CancellationToken::new();
        if let Some(before) = self.state().insert(name.clone(), cancel.clone()) {
            before.cancel();
        }
        Asked { all: self, name, cancel }
    }

    /// Stops a question; one that is over stays over.
    pub fn stop(&self, name: &str) {
        if let Some(cancel) = self.state().remove(name) {
            cancel.cancel();
        }
    }

    fn state(&self) -> MutexGuard<'_, HashMap<String, CancellationToken>> {
        // A std mutex: nothing awaits while it is held, and nothing in here can panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Asked<'_> {
    /// Fires when the question is to be stopped.
    pub fn cancel(&self) -> CancellationToken {
        self.cancel.clone()
    }
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        // One that was stopped may have been asked again under the same name.
        if !self.cancel.is_cancelled() {
            self.all.state().remove(&self.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_stopped_by_its_name_and_only_while_it_is_asked() {
        let asking = Asking::default();
        let first = asking.begin("models ollama".to_owned());
        let other = asking.begin("test qwen".to_owned());
        asking.stop("models ollama");
        assert!(first.cancel().is_cancelled());
        assert!(!other.cancel().is_cancelled());
        drop(other);
        assert!(asking.state().is_empty());
    }

    #[test]
    fn asking_again_stops_the_one_before_and_keeps_the_new_one() {
        let asking = Asking::default();
        let first = asking.begin("a".to_owned());
        let second = asking.begin("a".to_owned());
        assert!(first.cancel().is_cancelled());
        drop(first);
        asking.stop("a");
        assert!(second.cancel().is_cancelled());
    }
}
