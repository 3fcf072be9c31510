//! Makes GGUF files: small ones for tests (a byte vocabulary, random weights from a seed), a large one for benchmarks.
//!
//! Invariant: no network, no Python, no clock; the same recipe and seed give the same bytes.

mod broken;
mod file;
mod model;
mod projector;
mod proportions;
mod quoting;
mod scripted;

pub use broken::{Broken, Shape, broken};
pub use file::{Array, File, Tensor, Value};
pub use model::{CHATML, CHATML_TOOLS, Recipe, SPECIAL_TOKENS};
pub use projector::{AROUND_IMAGES, Family, Lens};
pub use proportions::{Architecture, Predicts, Proportions, kind};
pub use quoting::{QUOTED_WORDS, QuotingModel, Size};
pub use scripted::scripted;
