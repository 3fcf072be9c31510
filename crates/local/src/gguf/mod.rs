//! Reads what a model file says of itself, before llama.cpp sees it.
//!
//! llama.cpp aborts or hangs on about a dozen kinds of broken files; what can be found out without it is found
//! here. Invariant: pure reading. Any bytes whatever give a header or an error, in bounded time and memory.

mod check;
mod fault;
mod info;
mod projector;
mod projector_shape;
mod read;
mod shape;

pub use fault::{FileFault, ModelFileError};
pub(crate) use info::USUAL_CONTEXT;
pub use info::{DraftFault, ModelFileInfo, read_info};
pub use projector::{ProjectorChoice, ProjectorInfo, projector_beside, projectors_beside, read_projector};
pub use projector_shape::ProjectorShape;
pub use read::{Array, Header, TensorInfo, Value};
pub use shape::{AheadLayer, AttentionLayer, ModelShape};
