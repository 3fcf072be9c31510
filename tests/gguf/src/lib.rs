//! Makes small GGUF files for tests: a byte vocabulary and random weights from a seed.
//!
//! Invariant: no network, no Python, no clock; the same recipe and seed give the same bytes.

mod broken;
mod file;
mod model;

pub use broken::{Broken, Shape, broken};
pub use file::{Array, File, Tensor, Value};
pub use model::{CHATML, CHATML_TOOLS, Recipe, SPECIAL_TOKENS};
