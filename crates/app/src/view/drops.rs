//! Files that are dragged over the window.
//!
//! Invariant: the page learns names, never paths; what it adds is what the user let go of.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// What happens to files that are dragged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/drops.ts")]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum DropNews {
    /// They are over the window.
    Over {
        /// The names of those that are models by their ending.
        models: Vec<String>,
        /// The names of those that a message can take along.
        images: Vec<String>,
        /// The names of those that may be a service account's key.
        keys: Vec<String>,
        /// How many there are besides.
        others: u32,
    },
    /// They have left it.
    Left,
    /// The user has let go of them.
    Dropped {
        /// The names of those that are models by their ending.
        models: Vec<String>,
        /// The names of those that a message can take along.
        images: Vec<String>,
        /// The names of those that may be a service account's key.
        keys: Vec<String>,
        /// How many there are besides.
        others: u32,
    },
}
