//! Loads the part of a model that sees, and says what the context needs for it.
//!
//! Invariant: a model whose part does not load is not loaded without it: its user was promised that it sees.

use llama_cpp_2::llama_backend::LlamaBackend;
use llama_cpp_2::model::LlamaModel;

use super::ABORT;
use super::loading::with_log;
use super::session::BATCH;
use super::threads::Threads;
use crate::native::{Sight, SightOptions, recent_log};
use crate::protocol::{Load, WorkerError};

/// Places of an image in models that read it as a whole: Gemma's largest is 1,120.
pub(crate) const WHOLE_IMAGE: u32 = 1152;

/// Loads the file of the settings, when there is one.
pub(super) fn load_sight<'model>(
    load: &Load,
    model: &'model LlamaModel,
    backend: &LlamaBackend,
) -> Result<Option<Sight<'model>>, WorkerError> {
    let Some(path) = &load.projector else { return Ok(None) };
    let _ = recent_log();
    let machine = Threads::chosen(&load.speed, model.size());
    let gpu = backend.supports_gpu_offload() && load.speed.gpu_layers != Some(0);
    let options = SightOptions { threads: machine.batch_threads, gpu };
    Sight::load(path, model, options, ABORT.flag()).map(Some).map_err(|error| {
        if ABORT.is_set() {
            return WorkerError::Cancelled;
        }
        let reason = with_log(&error.0);
        WorkerError::Load {
            reason: format!("its part for images `{}` cannot be used: {reason}", path.display()),
        }
    })
}

/// Tokens of one batch.
pub(super) fn batch_for(sight: Option<&Sight<'_>>) -> u32 {
    if sight.is_some_and(Sight::needs_whole_images) { WHOLE_IMAGE } else { BATCH }
}
