//! The border to llama.cpp: every line of unsafe code that runs a model.
//!
//! Invariant: what leaves this module is safe to use in any order. A C++ exception becomes an error value; an
//! abort of llama.cpp ends the process, which is why it is called from the worker only.

#[cfg(not(feature = "vision"))]
mod blind;
mod chat;
mod context;
mod ffi;
#[cfg(feature = "portable-cpu")]
mod library;
mod log;
mod predictor;
mod sampler;
#[cfg(test)]
pub(crate) mod samples;
#[cfg(feature = "vision")]
mod sight;

#[cfg(not(feature = "vision"))]
pub(crate) use blind::{Piece, Pixels, Seen, Sight, SightOptions};
pub(crate) use chat::{Applied, Format, ParsedCall, ParsedMessage, Templates};
pub(crate) use context::{Context, ContextOptions, DecodeError, Part, Purpose, Row, Tile};
#[cfg(feature = "portable-cpu")]
pub(crate) use library::{load_library, score_of};
pub(crate) use log::{capture_log, recent_log};
pub(crate) use predictor::Predictor;
pub(crate) use sampler::{Sampler, SamplerOptions};
#[cfg(feature = "vision")]
pub(crate) use sight::{Piece, Pixels, Seen, Sight, SightOptions};

use llama_cpp_2::model::LlamaModel;
use llama_cpp_sys_2::llama_model;

/// What llama.cpp or its chat library said no to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NativeError(pub String);

/// The pointer inside the wrapper.
fn raw(model: &LlamaModel) -> *mut llama_model {
    const _: () = assert!(size_of::<LlamaModel>() == size_of::<*mut llama_model>());
    // SAFETY: `LlamaModel` is `repr(transparent)` over a non-null pointer to the model.
    unsafe { *std::ptr::from_ref(model).cast::<*mut llama_model>() }
}
