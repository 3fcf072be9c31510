//! What this machine can carry: its hardware, the test of a model, advice.
//!
//! Invariant: the hardware is read once; a test never runs beside another one.

use std::path::Path;

use lectern_core::ModelId;

use super::super::Engine;
use crate::view::{BenchView, HardwareView, ModelDetails, Problem};

impl Engine {
    /// What this machine has.
    pub async fn hardware(&self) -> Result<HardwareView, Problem> {
        Err(Problem::new("not_yet", "the hardware can't be read yet"))
    }

    /// Everything about a model file before it is loaded; the need for memory with so many tokens of context, or with
    /// as many as it would be used with.
    pub async fn model_details(&self, path: &Path, _context: Option<u32>) -> Result<ModelDetails, Problem> {
        Err(Problem::new("not_yet", format!("{}: this can't be done yet", path.display())))
    }

    /// Tests for about five seconds how fast a model is here, and remembers it.
    pub async fn bench_model(&self, id: &ModelId) -> Result<BenchView, Problem> {
        Err(Problem::new("not_yet", format!("{id}: this can't be done yet")))
    }
}
