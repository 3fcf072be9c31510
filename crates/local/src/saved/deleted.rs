//! Conversations that were deleted while a model may still know them.
//!
//! Invariant: a model that saves what it knows is told of every deletion first, also one that nobody can ask any more.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The deleted conversations of an application, for all its models. Clones are the same list.
#[derive(Clone, Debug, Default)]
pub struct Deleted(Arc<Mutex<List>>);

// A std mutex: nothing awaits while it is held.
#[derive(Debug, Default)]
struct List {
    /// How many deletions there were.
    count: u64,
    /// The number of each.
    numbers: HashMap<String, u64>,
}

impl Deleted {
    /// A conversation was deleted.
    pub fn add(&self, conversation: &str) {
        let mut list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        list.count += 1;
        let number = list.count;
        list.numbers.insert(conversation.to_owned(), number);
    }

    /// It came back, and may be saved again.
    pub fn remove(&self, conversation: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).numbers.remove(conversation);
    }

    /// What was deleted behind the deletion of this number, and the number of the last one.
    pub(crate) fn since(&self, number: u64) -> (Vec<String>, u64) {
        let list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let new = list.numbers.iter().filter(|(_, of)| **of > number).map(|(name, _)| name.clone());
        (new.collect(), list.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_deletion_is_told_once_and_not_when_it_was_taken_back() {
        let deleted = Deleted::default();
        deleted.add("a");
        deleted.clone().add("b");
        deleted.remove("a");
        let (names, told) = deleted.since(0);
        assert_eq!((names, told), (vec!["b".to_owned()], 2));
        assert_eq!(deleted.since(told), (vec![], 2));
        deleted.add("a");
        assert_eq!(deleted.since(told), (vec!["a".to_owned()], 3));
    }
}
