//! Reads what a model file says of itself, before llama.cpp sees it.
//!
//! llama.cpp aborts or hangs on about a dozen kinds of broken files; what can be found out without it is found
//! here. Invariant: pure reading. Any bytes whatever give a header or an error, in bounded time and memory.

mod check;
mod fault;
mod info;
mod projector;
mod read;
mod shape;

pub use fault::{FileFault, ModelFileError};
pub(crate) use info::USUAL_CONTEXT;
pub use info::{ModelFileInfo, read_info};
pub use projector::{ProjectorInfo, projector_beside, read_projector};
pub use read::{Array, Header, TensorInfo, Value};
pub use shape::{AttentionLayer, ModelShape};
