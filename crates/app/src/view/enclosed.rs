//! Images and documents that go along with a message.
//!
//! Invariant: the page names them by an id that the engine gave; their bytes reach it as a small preview only.

use lectern_core::Blob;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::Problem;

/// An image or a document that waits to be sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/enclosed.ts")]
pub struct Enclosure {
    /// Its id; good until it was sent, or for a month.
    pub id: String,
    /// The name of its file; none when it was pasted.
    pub name: Option<String>,
    /// What it is sent as: `image/png`, `image/jpeg` or `application/pdf`.
    pub mime: String,
    /// Pixels as it is sent; 0 for a document.
    pub width: u32,
    /// Pixels as it is sent; 0 for a document.
    pub height: u32,
    /// A small picture of it; none for a document.
    pub preview: Option<Blob>,
}

/// What came of several files.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/enclosed.ts")]
pub struct Enclosures {
    /// Those that wait to be sent now.
    pub taken: Vec<Enclosure>,
    /// Why the others can't be sent.
    pub refused: Vec<Problem>,
}
